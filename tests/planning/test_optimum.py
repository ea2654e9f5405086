"""In clusters that are small enough to try everything, the planner finds what trying everything finds."""

import itertools
import random
from collections.abc import Iterator, Sequence

from drover.planner.bands import Bands
from drover.planner.goals import DEFAULT_LIMITS, Add, Balance, Drain, Goal
from drover.planner.layout import Layout
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.propose import propose
from tests.planning.clusters import lists_after, pairs, targets_of

Lists = Sequence[tuple[int, ...]]


def small_cluster(seed: int, brokers: int, partitions: int, *, empty: int = 0) -> ClusterModel:
    """Make brokers in up to three racks, the last of them empty, and partitions with two replicas."""
    draw = random.Random(seed)
    racks = draw.choice((("a",), ("a", "b"), ("a", "b", "c")))
    lists = [tuple(draw.sample(range(1, brokers + 1 - empty), 2)) for _ in range(partitions)]
    return ClusterModel.of(
        [Broker(number + 1, racks[number % len(racks)]) for number in range(brokers)],
        [Partition("t", number, each, each[0], each, draw.randint(1, 1000)) for number, each in enumerate(lists)],
    )


class Trial:
    """Measures lists by what the planner is to make small: outside the bands, copied bytes, imbalance."""

    def __init__(self, model: ClusterModel, goal: Goal) -> None:
        self.model = model
        self.leaving = goal.brokers if isinstance(goal, Drain) else ()
        self.layout = Layout(model, DEFAULT_LIMITS, self.leaving)
        if isinstance(goal, Add):
            self.layout.receive_only(goal.brokers)
        self.bands = Bands(self.layout, [], self.layout.receivers, only_fill=isinstance(goal, Add))
        self.only_bands = not isinstance(goal, Drain)

    def measure(self, lists: Lists) -> tuple[float, float, float]:
        layout = self.layout
        count, disk, copied = dict.fromkeys(layout.count, 0), dict.fromkeys(layout.disk, 0), 0
        for partition, replicas in zip(self.model.partitions, lists, strict=True):
            size = partition.size_bytes or 0
            copied += size * len(set(replicas) - set(partition.replicas))
            for broker in replicas:
                count[broker] += 1
                disk[broker] += size
        imbalance = sum(
            layout.count_weight * (count[broker] - layout.shares.count[broker]) ** 2
            + layout.disk_weight * (disk[broker] - layout.shares.disk[broker]) ** 2
            for broker in layout.shares.count
        )
        layout.count, layout.disk = count, disk
        outside = sum(self.bands.outside(broker) for broker in self.bands.receivers) if self.only_bands else 0.0
        return round(outside, 9), copied, imbalance

    def choices(self) -> Iterator[Lists]:
        """Return all lists that break no constraint."""
        return itertools.product(*(self._options(partition) for partition in self.model.partitions))

    def _options(self, partition: Partition) -> list[tuple[int, ...]]:
        present = frozenset(partition.replicas)
        usable = [broker for broker in self.layout.count if broker not in self.leaving]
        both: list[tuple[int, ...]] = list(itertools.combinations(usable, 2))
        if not self.only_bands:
            both = [each for each in both if present - set(self.leaving) <= set(each)]
        fewest = min(pairs(self.model, each) for each in both)
        # Filling a broker does not have to repair what was wrong before.
        filling = self.layout.receives < set(usable)
        worst = max(fewest, pairs(self.model, partition.replicas)) if filling else fewest
        return [
            each for each in both if set(each) - present <= self.layout.receives and pairs(self.model, each) <= worst
        ]


def test_a_drain_of_five_brokers_and_eight_partitions_is_as_even_as_any() -> None:
    for seed in range(60):
        model = small_cluster(seed, 5, 8)
        check(model, Drain((1,)), seed)


def test_filling_a_broker_copies_as_few_bytes_as_any() -> None:
    for seed in range(40):
        check(small_cluster(seed, 4, 6, empty=1), Add((4,)), seed)


def test_balancing_is_as_good_and_copies_as_few_bytes_as_any() -> None:
    for seed in range(25):
        check(small_cluster(seed, 4, 5), Balance(), seed)


def check(model: ClusterModel, goal: Goal, seed: int) -> None:
    trial = Trial(model, goal)
    best = min(trial.measure(lists) for lists in trial.choices())
    proposal = propose(model, goal)
    found = trial.measure(list(lists_after(model, targets_of(proposal)).values()))
    assert found[:2] == best[:2], (seed, goal, found, best)
    assert abs(found[2] - best[2]) < 1e-9, (seed, goal, found, best)
