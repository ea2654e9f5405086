"""No goal leaves a broker above a limit that it could have spared by other places or leaders of what it copies."""

from dataclasses import replace

import numpy as np
import pytest

from drover.planner.goals import DEFAULT_LIMITS, Balance, Drain, Goal, Heal, Limits, Replace, SetReplicationFactor
from drover.planner.layout import Layout
from drover.planner.load_table import LoadTable
from drover.planner.loads import Load, measures_of
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.planner.proposal import Proposal, UnmetCode
from drover.planner.propose import propose
from drover.planner.solving import leaving_of
from tests.planning.clusters import targets_of
from tests.planning.test_loads import loaded_cluster

# So little that a fifth of the brokers is near a limit.
NARROW = 0.09


def narrow_cluster(seed: int, goal: Goal) -> ClusterModel:
    """Make a cluster whose networks are nearly used up; what is healed is dead, and broker 9 has nothing."""
    model = loaded_cluster(seed)
    empty = (
        replace(each, replicas=tuple(6 if broker == 9 else broker for broker in each.replicas))
        for each in model.partitions
    )
    brokers: list[Broker] = []
    for each in model.brokers:
        network = (each.network_in_bytes_per_s or 0) * NARROW
        dead = isinstance(goal, Heal) and each.id in goal.dead
        brokers.append(replace(each, network_in_bytes_per_s=network, network_out_bytes_per_s=network, alive=not dead))
    partitions: list[Partition] = []
    for partition in empty:
        alive = [number for number in partition.replicas if not (isinstance(goal, Heal) and number in goal.dead)]
        partitions.append(replace(partition, leader=alive[0], isr=tuple(alive)))
    return ClusterModel.of(brokers, partitions)


def table_after(model: ClusterModel, goal: Goal, proposal: Proposal) -> LoadTable:
    layout = Layout(model, DEFAULT_LIMITS, leaving_of(model, goal))
    targets = targets_of(proposal)
    for index, partition in enumerate(model.partitions):
        after = targets.get(partition.name, partition.replicas)
        for added in after:
            if added not in partition.replicas:
                layout.append(index, added)
        for removed in partition.replicas:
            if removed not in after:
                layout.drop(index, removed)
        layout.lead(index, after[0])
    return LoadTable(layout, measures_of(model), DEFAULT_LIMITS)


GOALS: tuple[Goal, ...] = (
    Drain((4,)),
    Heal((4,)),
    Replace(6, 9),
    SetReplicationFactor(("t1", "t3"), 4),
    SetReplicationFactor(("t2",), 2),
)


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_no_other_place_of_a_copy_would_spare_a_broker_and_who_is_left_above_is_named(goal: Goal) -> None:
    copies = 0
    for seed in range(4):
        model = narrow_cluster(seed, goal)
        proposal = propose(model, goal)
        table = table_after(model, goal, proposal)
        table.only_limits()
        there = np.argwhere(table.at >= 0)
        rows, places = there[:, 0], there[:, 1]
        copied = table.copied(rows, places)
        rows, places = rows[copied], places[copied]
        copies += len(rows)
        for broker in np.flatnonzero(table.receives).tolist():
            brokers = np.full(len(rows), broker)
            gains = np.where(table.allowed(rows, places, brokers), table.gains(rows, places, brokers), 0.0)
            assert gains.max(initial=0.0) < 1e-6, (seed, goal)
        worse = (table.above_limit() > 0.002) & (table.share > table.before * table.unit + 0.002)
        named = {each.broker for each in proposal.unmet if each.code is UnmetCode.OVERLOADED}
        assert {table.numbers[broker] for broker in np.flatnonzero(worse.any(axis=0))} <= named, (seed, goal)
    assert copies or goal == SetReplicationFactor(("t2",), 2)


def test_a_replacement_with_a_slower_network_is_given_no_more_leaders_than_it_can_bear() -> None:
    disk = (LogDir("/d", 10**12, 5 * 10**11),)
    brokers = [
        Broker(number, log_dirs=disk, network_in_bytes_per_s=1e6, network_out_bytes_per_s=rate, cores=4.0)
        for number, rate in ((1, 2e6), (2, 2e6), (3, 1e6), (4, 1e5))
    ]
    partitions = [
        Partition("t", number, (3, 1 + number % 2), 3, (3, 1 + number % 2), 10**9, 1e4, read_bytes_per_s=2e4)
        for number in range(8)
    ]
    model = ClusterModel.of(brokers, partitions)
    proposal = propose(model, Replace(3, 4))
    assert proposal.complete
    assert all(4 in move.after and 3 not in move.after for move in proposal.moves)
    assert sum(move.after[0] == 4 for move in proposal.moves) == 2


def test_levelling_leaves_no_disk_a_little_above_its_limit_and_what_evens_out_loads_stays() -> None:
    # In this cluster, evening out the other loads takes a disk from below its limit to 38.01 %.
    model, limits = loaded_cluster(4, partitions=60), Limits(limits={Load.DISK: 0.38})
    proposal = propose(model, Balance(), limits)
    totals = {each.id: each.total_bytes or 0 for each in model.brokers}
    shares = {each.broker: each.disk_bytes_after / totals[each.broker] for each in proposal.brokers}
    assert max(shares.values()) <= 0.38
    before, after = (sum(getattr(each, when).outside for each in proposal.loads) for when in ("before", "after"))
    assert after < before / 2


def test_a_limit_that_is_asked_for_holds_where_no_rates_are_known() -> None:
    disk = (LogDir("/d", 1000, 1000),)
    lists = [*((1, 2) for _ in range(4)), *((3, 4) for _ in range(2))]
    model = ClusterModel.of(
        [Broker(number, log_dirs=disk) for number in (1, 2, 3, 4)],
        [Partition("t", number, each, each[0], each, 100) for number, each in enumerate(lists)],
    )
    for shares, fullest in (({}, 500), ({Load.DISK: 0.45}, 400)):
        proposal = propose(model, Drain((4,)), Limits(limits=shares))
        assert max(each.disk_bytes_after for each in proposal.brokers) == fullest, shares


@pytest.mark.parametrize("goal", [Balance(), Drain((1,))], ids=str)
def test_a_network_that_alone_is_known_receives_no_more_than_its_limit(goal: Goal) -> None:
    disk = (LogDir("/d", 10**12, 5 * 10**11),)
    brokers = [Broker(number, log_dirs=disk) for number in (1, 2, 3)]
    slow = Broker(4, log_dirs=disk, network_in_bytes_per_s=100_000)
    partitions = [
        Partition("t", number, (1 + number % 3,), 1 + number % 3, (1 + number % 3,), 10**9, 50_000.0)
        for number in range(12)
    ]
    proposal = propose(ClusterModel.of([*brokers, slow], partitions), goal)
    assert proposal.copies
    assert sum(4 in move.adding for move in proposal.moves) == 1
