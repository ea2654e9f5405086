"""What no plan ever does, on drawn clusters with every kind of broker, load, capacity and limit."""

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from drover.planner.assess import assess
from drover.planner.goals import Add, Balance, Drain, Evacuate, Leaders, Limits, TopicSpread
from drover.planner.loads import Load, weight_of
from drover.planner.model import Broker, BrokerSet, ClusterModel, Partition
from drover.planner.proposal import Proposal, UnmetCode
from drover.planner.propose import propose
from drover.planner.solving import leaving_of
from tests.planning.clusters import faults, random_cluster, random_goals, targets_of

ROUNDING = 1e-6


def drawn(seed: int) -> tuple[ClusterModel, Limits]:
    """Draw a cluster with rates, capacities and brokers that others use, and limits for its plans."""
    draw = random.Random(f"nevers {seed}")
    bare = random_cluster(seed)
    ids = [broker.id for broker in bare.brokers]
    model = replace(
        ClusterModel.of(
            [_able(draw, broker) for broker in bare.brokers],
            [_busy(draw, partition) for partition in bare.partitions],
            reads_from_followers=draw.random() < 0.3,
        ),
        broker_sets=(BrokerSet("some", tuple(draw.sample(ids, draw.randint(1, len(ids)))), ("topic-1",)),),
        min_leaders=(("topic-2", 1),) if draw.random() < 0.3 else (),
    )
    limits = Limits(
        disk_limit=draw.choice((0.5, 0.85, 1.0)),
        limits={Load.NETWORK_IN: draw.choice((0.5, 0.8, 1.0))},
        topic_spread=draw.choice(list(TopicSpread)),
        reorder_all=draw.random() < 0.5,
    )
    return model, limits


def _able(draw: random.Random, broker: Broker) -> Broker:
    return replace(
        broker,
        network_in_bytes_per_s=draw.uniform(1e3, 1e5),
        network_out_bytes_per_s=draw.uniform(1e3, 1e5),
        cores=draw.choice((2.0, 4.0)),
        max_replicas=draw.choice((None, 4, 12)),
        arriving_replicas=draw.choice((0, 0, 0, 2)),
        emptied_by=draw.choice((None,) * 9 + ("plan a",)),
        filled_by=draw.choice((None,) * 9 + ("plan b",)),
        unreachable=draw.random() < 0.05,
        demoted=draw.random() < 0.1,
    )


def _busy(draw: random.Random, partition: Partition) -> Partition:
    return replace(
        partition,
        write_bytes_per_s=draw.choice((None, draw.uniform(0, 5e3), draw.uniform(0, 5e3))),
        read_bytes_per_s=draw.uniform(0, 5e3),
        cpu_cores=draw.uniform(0, 0.2),
    )


def overrun(model: ClusterModel, proposal: Proposal, limits: Limits) -> list[str]:
    """Name what brokers cannot bear in the worst order of copies, in which nothing leaves before all is there."""
    held, copies = Counter[int](), Counter[int]()
    received: dict[int, float] = {}
    arriving: dict[int, float] = {}
    for partition in model.partitions:
        held.update(partition.replicas)
        for broker in partition.replicas:
            received[broker] = received.get(broker, 0.0) + (partition.write_bytes_per_s or 0.0)
    for move in proposal.moves:
        copies.update(move.adding)
        rate = model.partition_by_name[move.topic, move.partition].write_bytes_per_s or 0.0
        for broker in move.adding:
            arriving[broker] = arriving.get(broker, 0.0) + rate
    found = []
    for each in model.brokers:
        most, number = each.max_replicas, each.id
        if most is not None and copies[number] and held[number] + each.arriving_replicas + copies[number] > most:
            found.append(f"{number} has too many replicas")
        able = limits.limit(Load.NETWORK_IN) * (each.network_in_bytes_per_s or 0.0)
        more = arriving.get(number, 0.0)
        if more > ROUNDING and received.get(number, 0.0) + more > able + ROUNDING:
            found.append(f"{number} receives more than its network takes")
    return found


def sends_too_much(model: ClusterModel, proposal: Proposal, limits: Limits) -> list[str]:
    """Name the brokers that would send more than they can if they led what they gain before giving up anything."""
    sent: dict[int, float] = {}
    gained: dict[int, float] = {}
    for partition in model.partitions:
        weight = weight_of(
            Load.NETWORK_OUT,
            partition,
            len(partition.replicas),
            reads_from_followers=model.reads_from_followers,
            measured=True,
        )
        for place, broker in enumerate(partition.replicas):
            sent[broker] = sent.get(broker, 0.0) + (weight.follower if place else weight.leader)
    for move in proposal.moves:
        partition = model.partition_by_name[move.topic, move.partition]
        weight = weight_of(
            Load.NETWORK_OUT,
            partition,
            len(partition.replicas),
            reads_from_followers=model.reads_from_followers,
            measured=True,
        )
        if move.moves_leader:
            gained[move.after[0]] = gained.get(move.after[0], 0.0) + weight.leader - weight.follower
    return [
        f"{each.id} sends more than its network takes"
        for each in model.brokers
        if gained.get(each.id, 0.0) > ROUNDING
        and sent.get(each.id, 0.0) + gained[each.id]
        > limits.limit(Load.NETWORK_OUT) * (each.network_out_bytes_per_s or 0.0) + ROUNDING
    ]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 100_000))
def test_no_plan_breaks_a_never_whatever_the_order_of_its_copies(seed: int) -> None:
    model, limits = drawn(seed)
    for goal in random_goals(seed, model):
        proposal = propose(model, goal, limits)
        assert faults(model, proposal, limits, leaving_of(model, goal)) == [], goal
        assert overrun(model, proposal, limits) == [], goal
        for move in proposal.moves:
            own = model.set_of(move.topic)
            assert own is None or set(move.adding) <= set(own.brokers), (goal, move)
        if isinstance(goal, Add | Balance | Leaders):
            # Those that empty brokers must let somebody lead what these led.
            assert sends_too_much(model, proposal, limits) == [], goal


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 100_000))
def test_the_judge_of_other_plans_finds_no_room_missing_in_a_proposal(seed: int) -> None:
    model, limits = drawn(seed)
    for goal in random_goals(seed, model):
        if isinstance(goal, Drain | Evacuate):
            continue
        problems = assess(model, targets_of(propose(model, goal, limits)), limits).unmet
        never = {UnmetCode.NO_ROOM, UnmetCode.BROKER_SET, UnmetCode.EXCLUDED, UnmetCode.RESERVED, UnmetCode.WRONG_LIST}
        assert not {each.code for each in problems} & never, goal
