"""Partitions gathered into few calls: one is begun at once, and what comes while it is under way shares the next."""

from drover.events.leadership import LeaderOrdersIntended
from drover.events.partitions import TopicPartition
from drover.reconcile.leaders.call_groups import GATHER_MS, WORTH_A_CALL, CallGroups
from drover.reconcile.leaders.elections import Elections
from drover.reconcile.messages import AlterPartitions, ElectLeaders
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from tests.leadership.support import demote, leader
from tests.shard.world import STEP_MS, World

NOW_MS, START_BY_MS = 1000, 2000


def take(made: CallGroups, now_ms: int = NOW_MS, start_by_ms: int = START_BY_MS) -> list[TopicPartition]:
    return list(made.take(now_ms, start_by_ms)[0])


def keys(first: int, count: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("orders", number) for number in range(first, first + count))


def intents(made: World) -> list[LeaderOrdersIntended]:
    return [event for event in made.events() if isinstance(event, LeaderOrdersIntended)]


async def demoted(named: list[TopicPartition], events: int) -> World:
    """List the first replica of each partition, and look until so many events or more intend calls, which are held."""
    made = World()
    made.hold_effects = True
    made.model.create_topic("many", {key.partition: (3, 1, 2) for key in named})
    await made.send(demote(3))
    for _ in range(20):
        if len(intents(made)) >= events:
            break
        await made.run(STEP_MS)
    assert len(intents(made)) >= events
    return made


def with_one_under_way() -> CallGroups:
    made = CallGroups()
    made.put(keys(0, 1))
    assert take(made) == list(keys(0, 1))
    return made


def gathered(made: CallGroups, *wanted: TopicPartition) -> CallGroups:
    made.put(wanted)
    return made


def test_the_first_of_them_wait_for_nothing() -> None:
    made = CallGroups()
    assert (made.due_ms(NOW_MS), take(made)) == (None, [])
    made.put(keys(0, 3))
    assert made.is_due(NOW_MS)
    assert take(made) == list(keys(0, 3))


def test_few_wait_while_a_call_is_under_way_and_share_the_next() -> None:
    made = gathered(gathered(with_one_under_way(), *keys(1, 2)), *keys(3, 2))
    assert take(made) == []
    assert made.due_ms(NOW_MS) == NOW_MS + GATHER_MS
    made.ended(keys(0, 1))
    assert take(made, NOW_MS + 1) == list(keys(1, 4))


def test_as_many_as_are_worth_a_call_wait_for_none() -> None:
    made = gathered(with_one_under_way(), *keys(1, WORTH_A_CALL - 1))
    assert take(made) == []
    gathered(made, *keys(WORTH_A_CALL, 1))
    assert take(made) == list(keys(1, WORTH_A_CALL))


def test_a_call_that_does_not_end_is_waited_for_no_longer_than_a_moment() -> None:
    made = gathered(with_one_under_way(), *keys(1, 1))
    assert take(made) == []
    assert not made.is_due(NOW_MS + GATHER_MS - 1)
    assert made.is_due(NOW_MS + GATHER_MS)
    assert take(made, NOW_MS + GATHER_MS) == list(keys(1, 1))


def test_the_end_of_somebody_elses_call_and_what_was_withdrawn_change_nothing() -> None:
    made = gathered(with_one_under_way(), *keys(1, 1))
    made.ended(keys(7, 1))
    assert take(made) == []
    assert made.withdraw() == list(keys(1, 1))
    made.ended(keys(0, 1))
    assert (made.due_ms(NOW_MS), take(made)) == (None, [])


async def test_what_is_intended_while_a_call_is_under_way_shares_few_calls() -> None:
    named = [TopicPartition("many", number) for number in range(800)]
    made = await demoted(named, 7)
    await made.run(2 * GATHER_MS)
    first, *others = [effect for effect in made.held if isinstance(effect, AlterPartitions)]
    intended = intents(made)
    assert len(first.requests) == len(intended[0].keys)
    assert sum(len(effect.requests) for effect in others) == len(named) - len(first.requests)
    assert len(others) < len(intended) - 1
    made.hold_effects = False
    await made.release_effects()
    await made.run(5000)
    assert {leader(made, key) for key in named} == {1}
    assert not made.state.leaders_under_way


def test_the_time_in_which_there_was_nothing_to_call_for_does_not_count() -> None:
    made = CallGroups()
    assert take(made) == []
    gathered(made, *keys(0, 1))
    assert made.take(NOW_MS + 5000, START_BY_MS + 5000) == (list(keys(0, 1)), START_BY_MS + 5000)


def test_a_call_begins_as_early_as_the_first_of_its_intents_demands() -> None:
    made = gathered(with_one_under_way(), *keys(1, 1))
    assert take(made) == []
    gathered(made, *keys(2, 1))
    assert made.take(NOW_MS + GATHER_MS, START_BY_MS + GATHER_MS) == (list(keys(1, 2)), START_BY_MS)


def test_an_election_that_has_ended_before_its_call_holds_up_no_other() -> None:
    state = ClusterState("local")
    elections = Elections(state, ObservationCache())
    for number in range(2):
        elections.propose(TopicPartition("orders", number))
        assert list(elections.calls(NOW_MS, START_BY_MS)) == []
        assert elections.due_ms(NOW_MS) is None, "it waits for the end of a call that nobody made"


async def test_what_was_gathered_is_called_for_in_time_although_nothing_is_recorded_by_then() -> None:
    named = [TopicPartition("many", number) for number in range(200)]
    made = await demoted(named, 2)
    (first,) = made.held
    assert isinstance(first, AlterPartitions)
    records = len(made.log)
    made.model.advance(GATHER_MS)
    await made.turn()
    assert len(made.log) == records
    (_, second) = made.held
    assert isinstance(second, AlterPartitions)
    assert not any(isinstance(effect, ElectLeaders) for effect in made.held)
    assert set(first.requests) | set(second.requests) == set(named)
    assert second.start_by_ms == first.start_by_ms
