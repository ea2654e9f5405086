"""The figures of a cluster come from the index of its moves, and must equal those of a full scan."""

from collections import defaultdict
from random import Random

import pytest

from drover.client.views.plan_rows import MOST_WAITING_SHOWN, figures
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentUnblocked
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment
from tests.client.log import CLUSTER
from tests.web.scene import Scene, keys, place


def scanned(state: ClusterState, most: int) -> dict[str, tuple[list[int], list[TopicPartition]]]:
    """Count blocked, returning, moving and waiting by plan, and choose what is worth showing."""
    found: dict[str, tuple[list[Reassignment], ...]] = defaultdict(lambda: ([], [], [], []))
    for entry in state.reassignments.values():
        if entry.block is not None:
            rank = 0
        elif entry.is_cancelled:
            rank = 1
        else:
            rank = 2 if entry.in_flight else 3
        found[entry.plan][rank].append(entry)
    return {
        plan: (
            [len(rank) for rank in ranks],
            [one.key for rank in (*ranks[:3], ranks[3][:MOST_WAITING_SHOWN]) for one in rank][:most],
        )
        for plan, ranks in found.items()
    }


def step(scene: Scene, state: ClusterState, random: Random) -> None:
    """Let something happen to one of the moves."""
    entry = state.reassignments[random.choice(list(state.reassignments))]
    if entry.block is not None and random.random() < 0.5:
        scene.say(ReassignmentUnblocked(**place(entry.key)))
    elif not entry.in_flight and entry.block is None and random.random() < 0.7:
        scene.start(entry.key)
    elif not entry.is_cancelled and entry.in_flight and random.random() < 0.3:
        scene.roll_back(entry.key, "ann", "latency alarm")
    elif entry.block is None and not entry.is_cancelled:
        scene.block(entry.key, Blocker.NO_LEADER, "it must return")
    elif entry.in_flight and not entry.is_cancelled:
        scene.complete(entry.key)


@pytest.mark.parametrize("seed", range(5))
def test_the_figures_are_those_of_a_scan_of_all_moves(seed: int) -> None:
    random = Random(seed)
    scene = Scene()
    for plan, topic, throttle in (("first", "orders", None), ("second", "payments", 10_000), ("third", "clicks", None)):
        scene.open_plan(plan, "ann", "drain broker 1", throttle, keys(topic, 12))
    state = scene.writer.fold.state.clusters[CLUSTER]
    for _ in range(60):
        step(scene, state, random)
        state = scene.writer.fold.state.clusters[CLUSTER]
        most = random.choice((1, 4, 8, 40))
        found, expected = figures(state, scene.transfers, scene.at_ms, most), scanned(state, most)
        counted = {
            plan: ([tally.blocked, tally.returning, tally.moving, tally.waiting], tally.shown)
            for plan, tally in found.plans.items()
        }
        assert counted == expected
        total = found.total
        sums = [sum(column) for column in zip(*(counts for counts, _ in expected.values()), strict=True)]
        assert [total.blocked, total.returning, total.moving, total.waiting] == sums
