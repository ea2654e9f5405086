"""Every single change of a proposal is needed: taking it back leaves something worse than it was."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from drover.planner.bands import Bands
from drover.planner.goals import DEFAULT_LIMITS, Add, Balance, Drain, Goal, Leaders, Spread
from drover.planner.layout import Layout
from drover.planner.leading import Leading
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal
from drover.planner.propose import propose
from drover.planner.solving import leaving_of
from tests.planning.clusters import fewest_pairs, lists_after, pairs, random_cluster, random_goals, targets_of

Lists = Mapping[tuple[str, int], tuple[int, ...]]
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Measures lists by what a goal is about; each figure is better the smaller it is."""

    model: ClusterModel
    goal: Goal

    def measure(self, lists: Lists) -> tuple[float, ...]:
        leaving = leaving_of(self.model, self.goal)
        left = sum(broker in leaving for replicas in lists.values() for broker in replicas)
        crowded = sum(
            max(0, pairs(self.model, replicas) - fewest_pairs(self.model, replicas, leaving))
            for replicas in lists.values()
        )
        return (float(left), float(crowded), self._outside(lists), self._leaders_outside(lists))

    def _outside(self, lists: Lists) -> float:
        """Sum up how far brokers are outside the bands that their loads should be in."""
        if not isinstance(self.goal, Add | Balance):
            return 0.0
        layout = Layout(self.model, DEFAULT_LIMITS)
        if isinstance(self.goal, Add):
            layout.receive_only(self.goal.brokers)
        bands = Bands(layout, [], layout.receivers, only_fill=isinstance(self.goal, Add))
        layout.count, layout.disk = dict.fromkeys(layout.count, 0), dict.fromkeys(layout.disk, 0)
        for partition in self.model.partitions:
            for broker in lists[partition.name]:
                layout.count[broker] += 1
                layout.disk[broker] += partition.size_bytes or 0
        return sum(bands.outside(broker) for broker in bands.receivers)

    def _leaders_outside(self, lists: Lists) -> float:
        leading = Leading(Layout(self.model, DEFAULT_LIMITS, leaving_of(self.model, self.goal)), ())
        leaders = Counter(replicas[0] for replicas in lists.values())
        return sum(max(0, leaders[each] - leading.high) + max(0, leading.low - leaders[each]) for each in leading.able)


def taken_back(proposal: Proposal) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Take back each copy alone, and each change of a leader alone."""
    for move in proposal.moves:
        for added in move.adding:
            for removed in move.removing:
                after = tuple(removed if broker == added else broker for broker in move.after)
                yield move.topic, move.partition, after
        if move.moves_leader and move.before[0] in move.after:
            rest = (broker for broker in move.after if broker != move.before[0])
            yield move.topic, move.partition, (move.before[0], *rest)


def test_taking_back_a_single_change_makes_something_worse() -> None:
    tried: Counter[str] = Counter()
    for seed in range(70):
        model = random_cluster(seed, most_partitions=24)
        for goal in random_goals(seed, model):
            if not isinstance(goal, Drain | Add | Balance | Spread | Leaders):
                continue
            proposal = propose(model, goal)
            yardstick = Yardstick(model, goal)
            targets = targets_of(proposal)
            reached = yardstick.measure(lists_after(model, targets))
            for topic, number, after in taken_back(proposal):
                lists = lists_after(model, {**targets, (topic, number): after})
                measured = yardstick.measure(lists)
                worse = any(new > old + ROUNDING for new, old in zip(measured, reached, strict=True))
                assert worse, (seed, goal, topic, number, after, reached, measured)
                tried[type(goal).__name__] += 1
    assert min(tried[kind] for kind in ("Drain", "Add", "Balance", "Spread", "Leaders")) > 20, tried


def test_nothing_moves_in_a_cluster_that_is_as_it_should_be() -> None:
    complete = 0
    for seed in range(40):
        model = random_cluster(seed, most_partitions=24)
        first = propose(model, Balance())
        lists = lists_after(model, targets_of(first))
        if first.complete:
            complete += 1
            assert propose(moved(model, lists), Balance()).empty, seed
    assert complete > 10


def moved(model: ClusterModel, lists: Lists) -> ClusterModel:
    """Return the cluster as it is when a plan is done, with free space as it was, and everybody in sync."""
    return ClusterModel.of(
        model.brokers,
        (
            replace(
                partition, replicas=lists[partition.name], isr=lists[partition.name], leader=lists[partition.name][0]
            )
            if lists[partition.name] != partition.replicas
            else partition
            for partition in model.partitions
        ),
    )
