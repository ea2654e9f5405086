"""The parts of the planner that can be judged alone: racks, fair shares, levels, leaders."""

import itertools
import random
from dataclasses import replace

import pytest

from drover.planner.bands import water_level
from drover.planner.budget import Budget
from drover.planner.goals import DEFAULT_LIMITS, Balance, Drain, Leaders, SetReplicationFactor
from drover.planner.layout import Layout
from drover.planner.leading import Leading
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.propose import propose
from drover.planner.racks import Racks


def brokers(*racks: str | None) -> tuple[Broker, ...]:
    return tuple(Broker(number + 1, rack) for number, rack in enumerate(racks))


def partition(number: int, *replicas: int, size: int = 1, rate: float | None = None) -> Partition:
    return Partition("t", number, replicas, replicas[0], replicas, size, rate)


def test_more_replicas_than_racks_are_spread_evenly() -> None:
    racks = Racks(brokers("a", "a", "a", "b", "b"))
    assert racks.fewest_pairs((1, 2, 3, 4), None) == 2, "two in each"
    assert (racks.excess((1, 2, 3, 4), None), racks.excess((1, 2, 4, 5), None)) == (1, 0)
    model = ClusterModel.of(brokers("a", "a", "a", "b", "b"), [partition(0, 1)])
    (move,) = propose(model, SetReplicationFactor(("t",), 4)).moves
    assert sum(broker <= 3 for broker in move.after) == 2


def test_a_broker_without_a_rack_is_a_rack_of_its_own() -> None:
    racks = Racks(brokers(None, None, "a", "a"))
    assert (racks.pairs((1, 2, 3)), racks.pairs((1, 3, 4))) == (0, 1)


@pytest.mark.parametrize("state", [{"alive": False}, {"excluded": True}, {"held": True}])
@pytest.mark.parametrize("rate", [None, 1e3])
def test_what_stays_on_a_broker_is_not_for_the_others_of_its_rack(state: dict[str, bool], rate: float | None) -> None:
    # Each of nine brokers in three racks has a third of what its rack has: nobody can take what stays on broker 1.
    members = brokers(*"abcabcabc")
    model = ClusterModel.of(
        [replace(members[0], **state), *members[1:]],  # type: ignore[arg-type]  # one flag of a broker, by name
        [
            partition(number, 2 + number % 3 * 3, 3 + number // 3 % 3 * 3, 1 + number // 9 % 3 * 3, rate=rate)
            for number in range(81)
        ],
    )
    shares = Layout(model, DEFAULT_LIMITS).shares
    assert shares.count == pytest.approx(dict.fromkeys(range(2, 10), 27))
    proposal = propose(model, Balance())
    assert not proposal.copies
    named = [each.text for each in proposal.unmet if "replicas" in each.text or "disk" in each.text]
    assert named == []


def test_a_small_rack_has_a_larger_fair_share() -> None:
    # Every partition needs a replica on broker 3, the only one of its rack.
    model = ClusterModel.of(brokers("a", "a", "b"), [partition(number, 1 + number % 2, 3) for number in range(10)])
    shares = Layout(model, DEFAULT_LIMITS).shares
    assert shares.rigid
    assert shares.count == pytest.approx({1: 5, 2: 5, 3: 10})
    assert propose(model, Balance()).copies == 0


def test_the_level_gives_exactly_what_is_asked_for() -> None:
    draw = random.Random(1)
    for _ in range(100):
        loads = [draw.uniform(0, 100) for _ in range(draw.randint(1, 9))]
        amount = draw.uniform(0.1, sum(loads))
        level = water_level(loads, amount)
        assert sum(max(0.0, load - level) for load in loads) == pytest.approx(amount)
    assert water_level([], 1) == water_level([5], 0) == float("inf")


def test_leaders_are_balanced_with_as_few_reorders_as_any() -> None:
    for seed in range(40):
        draw = random.Random(seed)
        lists = [tuple(draw.sample(range(1, 5), 2)) for _ in range(9)]
        model = ClusterModel.of(brokers("a", "b", "c", "d"), [partition(*each) for each in zip_numbers(lists)])
        bounds = Leading(Layout(model, DEFAULT_LIMITS), ())
        best = min(judged(bounds, lists, choice) for choice in itertools.product((0, 1), repeat=len(lists)))
        proposal = propose(model, Leaders())
        assert proposal.copies == 0
        moved = {move.partition: 1 for move in proposal.moves}
        found = judged(bounds, lists, tuple(moved.get(number, 0) for number in range(len(lists))))
        assert found == best, (seed, found, best)


def zip_numbers(lists: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [(number, *replicas) for number, replicas in enumerate(lists)]


def judged(bounds: Leading, lists: list[tuple[int, ...]], choice: tuple[int, ...]) -> tuple[int, int]:
    """Count leaders outside the bounds, and reorders."""
    leaders = dict.fromkeys(bounds.able, 0)
    for replicas, place in zip(lists, choice, strict=True):
        leaders[replicas[place]] += 1
    outside = sum(max(0, number - bounds.high) + max(0, bounds.low - number) for number in leaders.values())
    return outside, sum(choice)


def test_a_replica_that_is_out_of_sync_is_not_made_leader() -> None:
    lists = [Partition("t", number, (1, 2), 1, (1,), 1) for number in range(6)]
    assert propose(ClusterModel.of(brokers("a", "b"), lists), Leaders()).empty


def test_a_replica_that_returns_to_another_place_does_not_lead_there() -> None:
    model = ClusterModel.of(brokers("a", "b", "c", "d"), [Partition("t", 0, (1, 2), 1, (1,), 1)])
    layout = Layout(model, DEFAULT_LIMITS)
    for old, new, first in ((1, 3, 3), (2, 4, 3), (3, 2, 4), (4, 1, 1)):
        layout.replace(0, old, new)
        layout.tidy(0)
        assert layout.first[0] == first
    assert list(layout.changed()) == [], "all is back: an order that nobody asked for would be left"
    assert layout.leaders == {1: 1, 2: 0, 3: 0, 4: 0}


def test_write_rates_count_where_they_are_known() -> None:
    # Broker 1 is drained; sizes and counts do not care where its replicas go, rates do.
    fixed = [partition(0, 2, rate=1000.0), partition(1, 3, rate=0.0)]
    model = ClusterModel.of(brokers("a", "a", "a"), [*fixed, partition(2, 1, rate=900.0), partition(3, 1, rate=10.0)])
    (first, second) = propose(model, Drain((1,))).moves
    assert (first.after, second.after) == ((3,), (2,))


def test_a_part_of_the_work_leaves_the_rest_for_others() -> None:
    budget = Budget(10_000, lambda: False)
    part = budget.part(600)
    assert [part.spend(256), part.spend(256), part.spend(256)] == [True, True, False]
    assert (part.spent, budget.spent, budget.spend(256)) == (True, False, True)
