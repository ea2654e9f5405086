"""The estimate of a plan: when it is recorded, what it covers, and that nothing is decided by it."""

from collections.abc import Sequence

import pytest

from drover.cli.estimate_view import print_taken
from drover.client.history import ValidRecord
from drover.client.views.estimate_rows import Ledger, Taken
from drover.events.partitions import TopicPartition
from drover.events.plans import BrokerBytes, PlanEstimate, PlanEstimated, PlanFinished, Stepping
from drover.reconcile.starts.estimate import Accepted, Around
from drover.reconcile.starts.plan_figures import MOST_FOLLOWED, MOST_PLAYED, PlanFigures
from drover.state.cluster import ClusterState
from drover.state.estimates import together
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter, rollback

KEYS = tuple(TopicPartition("orders", number) for number in range(3))
TARGETS: dict[TopicPartition, Sequence[int] | None] = {KEYS[0]: [1, 2, 4], KEYS[1]: [4, 2, 3]}
SIZE = 1000


def world(*, joins_by_itself: bool = True) -> World:
    made = World(limits=Limits(), joins_by_itself=joins_by_itself)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS}, partition_bytes=SIZE)
    return made


def estimates(made: World) -> list[PlanEstimated]:
    return [event for event in made.events() if isinstance(event, PlanEstimated)]


def taken(made: World, plan: str) -> Taken:
    ledger = Ledger(plan)
    for offset, batch in enumerate(made.batches()):
        ledger.add(ValidRecord(0, offset, batch))
    (found,) = ledger.plans()
    return found


async def test_a_plan_whose_sizes_are_known_is_estimated_once_and_takes_what_was_said() -> None:
    made = world()
    await made.send(alter(TARGETS, plan="friday", throttle_bytes_per_second=100))
    await made.measure()
    await made.finish()
    (found,) = estimates(made)
    assert found.plan == "friday"
    assert found.through == 2
    assert found.estimate == PlanEstimate(
        partitions=2,
        copies=2,
        copied_bytes=2 * SIZE,
        leaders_moved=1,
        steps=2,
        throttle_bytes_per_second=100,
        least_ms=20_000,
        expected_ms=20_000,
        brokers=(BrokerBytes(1, 0, 2 * SIZE), BrokerBytes(4, 2 * SIZE, 0)),
    )
    came = taken(made, "friday")
    assert (came.steps, came.copies, came.copied_bytes, came.leaders_moved) == (2, 2, 2 * SIZE, 1)
    assert came.brokers == found.estimate.brokers
    assert came.ended == came.partitions == found.estimate.partitions
    assert came.took_ms is not None


async def test_people_see_both_columns(capsys: pytest.CaptureFixture[str]) -> None:
    made = world()
    await made.send(alter(TARGETS, plan="friday", throttle_bytes_per_second=100))
    await made.measure()
    print_taken(taken(made, "friday"))
    assert "took so far" in capsys.readouterr().out
    await made.finish()
    print_taken(taken(made, "friday"))
    shown = capsys.readouterr()
    assert "what it took" in shown.out
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["steps", "2", "2"] in rows
    assert ["into", "broker", "4", "2.0", "kB", "2.0", "kB"] in rows
    assert "out of broker 4" not in shown.out


async def test_a_plan_of_which_no_size_is_known_has_no_estimate() -> None:
    made = world()
    await made.send(alter(TARGETS, plan="friday"))
    await made.finish()
    assert estimates(made) == []


async def test_a_plan_that_copies_nothing_has_no_estimate() -> None:
    made = world()
    await made.send(alter({KEYS[0]: [3, 2, 1]}, plan="friday"))
    await made.measure()
    await made.finish()
    assert any(isinstance(event, PlanFinished) for event in made.events())
    assert estimates(made) == []


async def test_more_of_a_plan_is_estimated_when_it_comes_and_the_state_has_the_sum() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({KEYS[0]: [1, 2, 4]}, plan="friday", more=True))
    await made.measure()
    assert estimates(made) == []
    await made.send(alter({KEYS[1]: [4, 2, 3]}, plan="friday"))
    await made.measure()
    await made.send(alter({KEYS[2]: [1, 2, 4]}, plan="friday"))
    await made.measure()
    first, second = estimates(made)
    assert [(one.through, one.estimate.partitions) for one in (first, second)] == [(2, 2), (3, 1)]
    known = made.state.estimates["friday"]
    assert known.through == 3
    assert known.figures == together(first.estimate, second.estimate)
    assert (known.figures.partitions, known.figures.steps) == (3, 3)
    assert known.figures.brokers == (BrokerBytes(1, 0, 3 * SIZE), BrokerBytes(4, 3 * SIZE, 0))


async def test_a_successor_estimates_what_no_estimate_covers_and_nothing_twice() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({KEYS[0]: [1, 2, 4]}, plan="friday"))
    await made.measure()
    await made.send(alter({KEYS[1]: [4, 2, 3]}, plan="saturday"))
    made.crash()
    await made.settle()
    await made.measure()
    assert [one.plan for one in estimates(made)] == ["friday", "saturday"]


async def test_what_ends_before_its_size_is_known_counts_as_unknown() -> None:
    made = world(joins_by_itself=False)
    made.model.create_topic("other", {0: (1, 2, 3)}, partition_bytes=SIZE)
    other = TopicPartition("other", 0)
    await made.send(alter({KEYS[0]: [1, 2, 4], other: [1, 2, 4]}, plan="friday"))
    await made.send(rollback(other))
    await made.run(2000)
    assert other not in made.state.reassignments
    await made.measure()
    (found,) = estimates(made)
    assert (found.estimate.partitions, found.estimate.unknown_sizes, found.estimate.copied_bytes) == (2, 1, SIZE)


async def test_a_plan_is_forgotten_with_its_estimate() -> None:
    made = world()
    await made.send(alter(TARGETS, plan="friday"))
    await made.measure()
    await made.finish()
    assert "friday" in made.state.estimates
    await made.run(1000)
    made.model.advance(25 * 3600 * 1000)
    await made.run(1000)
    assert (made.state.plans, made.state.estimates) == ({}, {})


def figures_of(count: int) -> PlanEstimate:
    figures = PlanFigures()
    for number in range(count):
        figures.add(Accepted(TopicPartition("orders", number), (1, 2), (1, 3), 1, SIZE))
    around = Around(ClusterState(CLUSTER), Limits(), frozenset({1, 2, 3}), {}, {})
    return figures.estimate(Stepping.GROW, SIZE, around)


@pytest.mark.parametrize(
    ("count", "is_followed", "is_played"),
    [(MOST_PLAYED, True, True), (MOST_PLAYED + 1, True, False), (MOST_FOLLOWED + 1, False, False)],
)
def test_of_many_partitions_only_sums_are_told(count: int, *, is_followed: bool, is_played: bool) -> None:
    found = figures_of(count)
    assert (found.partitions, found.copies, found.copied_bytes) == (count, count, count * SIZE)
    assert found.steps == (count if is_followed else None)
    assert found.least_ms == count * 1000
    assert (found.expected_ms is not None) == is_played
