"""Clocks of the log's brokers that are far ahead and then right again: nothing about leaders waits for that time."""

from drover.cli.brokers import Waiting, drained_as_far
from drover.events.leadership import LeaderBalanceEnded, LeadersCounted
from drover.reconcile.leaders.balance import PATIENCE_MS
from drover.reconcile.leaders.survey_reader import SURVEY_EVERY_MS
from drover.reconcile.messages import MAX_AHEAD_MS
from tests.leadership.support import FIRST, balance, demote, leader, restore, world
from tests.shard.world import World

YEAR_MS = 365 * 86_400_000
FOR_MS = 20_000


def counted(made: World) -> int:
    return sum(isinstance(event, LeadersCounted) for event in made.events())


def listed(made: World) -> tuple[int, ...]:
    return made.state.blacklist


def is_balancing(made: World) -> bool:
    return made.state.balance is not None


async def test_a_broker_that_a_clock_ahead_has_listed_for_some_seconds_is_not_listed_for_a_year() -> None:
    made = world()
    await made.run(100)
    made.clock_ahead_ms = YEAR_MS
    await made.send(demote(3, for_ms=FOR_MS))
    made.clock_ahead_ms = 0
    await made.run(FOR_MS - 1000)
    assert listed(made) == (3,)
    await made.run(MAX_AHEAD_MS + SURVEY_EVERY_MS + 2000)
    assert not listed(made)


async def test_a_clock_that_is_behind_for_a_moment_ends_no_listing_early() -> None:
    made = world()
    await made.run(100)
    await made.send(demote(3, for_ms=FOR_MS))
    made.clock_ahead_ms = -YEAR_MS
    await made.send(demote(2))
    await made.run(2000)
    made.clock_ahead_ms = 0
    await made.run(FOR_MS // 2)
    assert listed(made) == (3, 2)
    await made.run(FOR_MS)
    assert listed(made) == (2,)


async def test_leaders_are_not_counted_again_and_again_because_a_clock_ahead_has_listed_a_broker() -> None:
    made = world()
    await made.run(100)
    made.clock_ahead_ms = YEAR_MS
    await made.send(demote(3))
    made.clock_ahead_ms = 0
    await made.run(2 * SURVEY_EVERY_MS)
    before = counted(made)
    await made.run(4 * SURVEY_EVERY_MS)
    assert counted(made) == before


async def test_a_count_by_a_clock_ahead_does_not_end_a_drain_that_comes_after_it() -> None:
    made = world()
    made.clock_ahead_ms = YEAR_MS
    await made.send(demote(3))
    await made.run(5000)
    assert drained_as_far(made.state, 3, made.core.fold.at_ms) is Waiting.IS_DONE
    await made.send(restore(3))
    made.clock_ahead_ms = 0
    await made.send(demote(3))
    assert drained_as_far(made.state, 3, made.core.fold.at_ms) is Waiting.GOES_ON
    await made.run(5000)
    assert drained_as_far(made.state, 3, made.core.fold.at_ms) is Waiting.IS_DONE


async def test_a_balance_that_a_clock_ahead_has_begun_ends_in_its_time() -> None:
    made = world(joins_by_itself=False)
    await made.run(100)
    made.model.stop_broker(3)
    await made.run(1000)
    made.model.start_broker(3)
    made.clock_ahead_ms = YEAR_MS
    await made.send(balance())
    made.clock_ahead_ms = 0
    await made.run(PATIENCE_MS - 10_000)
    assert is_balancing(made)
    await made.run(15_000)
    assert not is_balancing(made)
    assert any(isinstance(event, LeaderBalanceEnded) and event.left for event in made.events())
    assert leader(made, FIRST) != 3
