"""Plans by load: what a broker bears, what is fair, and what no plan breaks."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drover.planner.goals import DEFAULT_LIMITS, Add, Balance, Band, Drain, Evacuate, Goal, Leaders, Limits, TopicSpread
from drover.planner.layout import Layout
from drover.planner.load_table import LoadTable
from drover.planner.loads import Load, Weight, measures_of, weight_of
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.planner.proposal import Proposal, UnmetCode
from drover.planner.propose import propose
from drover.planner.solving import leaving_of
from tests.planning.clusters import faults, lists_after, random_cluster, random_goals, targets_of

TB = 1_000_000_000_000
Lists = Mapping[tuple[str, int], tuple[int, ...]]


def loaded_cluster(seed: int, brokers: int = 9, partitions: int = 120) -> ClusterModel:
    """Make a cluster of three racks, every third broker twice as large, with uneven sizes and rates."""
    draw = random.Random(seed)
    racks = [[number for number in range(1, brokers + 1) if number % 3 == rack] for rack in range(3)]
    made = []
    for number in range(partitions):
        replicas = [draw.choice(rack[: 1 + number % len(rack)]) for rack in racks]
        draw.shuffle(replicas)
        write = draw.lognormvariate(12, 0.8)
        made.append(
            Partition(
                topic=f"t{number % 7}",
                partition=number,
                replicas=tuple(replicas),
                leader=replicas[0],
                isr=tuple(replicas),
                size_bytes=round(write * draw.uniform(1e4, 1e5)),
                write_bytes_per_s=write,
                read_bytes_per_s=write * draw.randint(0, 3),
            )
        )
    used: Counter[int] = Counter()
    for partition in made:
        used.update(dict.fromkeys(partition.replicas, partition.size_bytes or 0))
    unit = sum(used.values()) // brokers
    return ClusterModel.of([_broker(number, unit, used[number]) for number in range(1, brokers + 1)], made)


def _broker(number: int, unit: int, used: int) -> Broker:
    factor = 2 if number % 9 < 3 else 1
    total = max(2 * unit * factor, round(used * 1.1))
    return Broker(
        id=number,
        rack=f"r{number % 3}",
        log_dirs=(LogDir("/data", total, total - used),),
        network_in_bytes_per_s=1e8 * factor,
        network_out_bytes_per_s=2e8 * factor,
        cores=8.0,
    )


def test_a_replica_weighs_what_producers_followers_and_consumers_move() -> None:
    partition = Partition("t", 0, (1, 2, 3), 1, (1, 2, 3), 500, 100.0, read_bytes_per_s=40.0)

    def weight(load: Load, *, followers: bool = False) -> Weight:
        return weight_of(load, partition, 3, reads_from_followers=followers, measured=False)

    assert weight(Load.DISK) == Weight(500, 500)
    assert weight(Load.NETWORK_IN) == Weight(100, 100)
    assert weight(Load.NETWORK_OUT) == Weight(40 + 2 * 100, 0)
    assert weight(Load.NETWORK_OUT, followers=True) == Weight(40 / 3 + 2 * 100, 40 / 3)
    assert weight(Load.LEADER_WRITES) == Weight(100, 0)
    assert (weight(Load.REPLICAS), weight(Load.LEADERS)) == (Weight(1, 1), Weight(1, 0))
    processor = weight(Load.PROCESSOR)
    assert processor.leader == pytest.approx(0.7 * 100 + 0.15 * 240)
    assert processor.follower == pytest.approx(0.15 * 100)
    measured = weight_of(
        Load.PROCESSOR, replace(partition, cpu_cores=2.0), 3, reads_from_followers=False, measured=True
    )
    assert measured.leader == 2.0
    assert measured.follower == pytest.approx(2.0 * 15 / 106)


def test_a_load_that_is_unknown_is_left_out_and_named() -> None:
    model = loaded_cluster(1)
    assert measures_of(model).left_out == ()
    blind = replace(model, brokers=tuple(replace(b, network_out_bytes_per_s=None) for b in model.brokers))
    measures = measures_of(blind)
    assert Load.NETWORK_OUT not in measures.loads
    assert "network_out_bytes_per_s of broker 1, 2, 3, 4, 5, ... is unknown" in measures.left_out[0]
    unread = replace(model, partitions=tuple(replace(p, read_bytes_per_s=None) for p in model.partitions))
    assert {Load.NETWORK_OUT, Load.PROCESSOR}.isdisjoint(measures_of(unread).loads)
    one = replace(model, partitions=(replace(model.partitions[0], write_bytes_per_s=None), *model.partitions[1:]))
    assert measures_of(one).left_out == ("1 partition has no write rate, and counts as none",)
    sizes = [replace(p, write_bytes_per_s=None, read_bytes_per_s=None) for p in model.partitions]
    assert measures_of(ClusterModel.of(model.brokers, sizes)).left_out == ()
    assert propose(blind, Balance()).unknown_loads == measures.left_out


def test_balance_brings_what_is_outside_its_band_into_it() -> None:
    model = loaded_cluster(2)
    proposal = propose(model, Balance())
    before, after = (sum(getattr(each, when).outside for each in proposal.loads) for when in ("before", "after"))
    assert after < before / 4
    named = {each.broker for each in proposal.unmet}
    assert bool(named) == bool(after)
    assert {each.code for each in proposal.unmet} <= {UnmetCode.OVERLOADED, UnmetCode.UNDERLOADED}


def test_orders_come_before_copies() -> None:
    # Broker 1 leads everything; the others could.
    lists = [Partition("t", n, (1, 2, 3), 1, (1, 2, 3), TB // 100, 1e6, read_bytes_per_s=1e6) for n in range(12)]
    disk = (LogDir("/d", TB, TB // 2),)
    model = ClusterModel.of([Broker(n, log_dirs=disk) for n in (1, 2, 3)], lists)
    proposal = propose(model, Balance())
    assert (proposal.copies, proposal.complete) == (0, True)
    assert Counter(after[0] for _, _, after in proposal.targets) == {2: 4, 3: 4}


def penalty(model: ClusterModel, goal: Goal, lists: Lists) -> float:
    """Return what the lists cost by the planner's own measure, without its search."""
    layout = Layout(model, DEFAULT_LIMITS, leaving_of(model, goal))
    for index, partition in enumerate(model.partitions):
        layout.assign(index, list(lists[partition.name]))
        layout.lead(index, lists[partition.name][0])
    table = LoadTable(layout, measures_of(model), DEFAULT_LIMITS)
    outside = int(((table.outside() > 1e-6) | (table.above_limit() > 1e-6)).sum())
    return table.penalty() + 0.05 * outside


def test_taking_back_any_copy_makes_something_worse() -> None:
    tried = 0
    for seed in range(2):
        model = loaded_cluster(seed)
        proposal = propose(model, Balance())
        targets = targets_of(proposal)
        reached = penalty(model, Balance(), lists_after(model, targets))
        for move in proposal.moves:
            for added in move.adding:
                for removed in move.removing:
                    after = tuple(removed if broker == added else broker for broker in move.after)
                    if len({broker % 3 for broker in after}) < 3:
                        continue
                    back = {**targets, (move.topic, move.partition): after}
                    assert penalty(model, Balance(), lists_after(model, back)) > reached - 1e-6, (seed, move)
                    tried += 1
    assert tried > 20


def test_a_drain_reorders_what_it_moves_and_everything_where_it_may() -> None:
    model = loaded_cluster(3)
    moved, everything = (propose(model, Drain((1,)), Limits(reorder_all=choice)) for choice in (False, True))
    assert all(move.adding for move in moved.moves)
    assert any(not move.adding for move in everything.moves)
    assert moved.copied_bytes == everything.copied_bytes

    after = [sum(each.after.outside for each in proposal.loads) for proposal in (everything, moved)]
    assert after[0] < after[1]


def test_larger_disks_get_more_bytes_where_nothing_else_is_known() -> None:
    sizes = {1: 8 * TB, 2: 8 * TB, 3: 2 * TB, 4: 2 * TB, 5: 2 * TB, 6: 2 * TB}
    lists = [tuple(1 + (number + place) % 6 for place in range(3)) for number in range(200)]
    model = ClusterModel.of(
        [Broker(number, log_dirs=(LogDir("/d", total, total - TB),)) for number, total in sizes.items()],
        [Partition("t", number, each, each[0], each, TB // 100) for number, each in enumerate(lists)],
    )
    proposal = propose(model, Balance())
    assert proposal.complete
    shares = {each.broker: each.disk_bytes_after / sizes[each.broker] for each in proposal.brokers}
    assert max(shares.values()) < 1.3 * min(shares.values())


def test_a_band_that_was_asked_for_holds_where_no_rates_are_known_too() -> None:
    disk = (LogDir("/d", TB, TB // 2),)
    lists = [Partition("t", n, (1 + n % 3,), 1 + n % 3, (1 + n % 3,), TB // 500) for n in range(36)]
    lists += [Partition("u", n, (1,), 1, (1,), TB // 500) for n in range(1)]
    model = ClusterModel.of([Broker(n, log_dirs=disk) for n in (1, 2, 3)], lists)
    assert propose(model, Balance()).loads == ()
    narrow = propose(model, Balance(), Limits(load_band=Band(0.01, 0.01)))
    assert [each.load for each in narrow.loads] == ["disk", "replicas", "leaders"]
    assert {each.code for each in narrow.unmet} == {UnmetCode.OVERLOADED, UnmetCode.UNDERLOADED}


def test_the_limit_of_a_load_is_the_one_that_was_asked_for() -> None:
    model = loaded_cluster(5)
    used = {each.load: each.before.highest for each in propose(model, Leaders()).loads}
    assert used["network-in"] > 1
    for limits, above in ((Limits(), 0), (Limits(limits={Load.NETWORK_IN: 0.001}), 9)):
        (figures,) = (each for each in propose(model, Leaders(), limits).loads if each.load == "network-in")
        assert figures.before.above_limit == above
    refused = propose(model, Leaders(), Limits(limits={Load.LEADERS: 0.5}))
    assert (refused.refused, refused.unmet[0].code) == (True, UnmetCode.BAD_GOAL)


def half_spread() -> ClusterModel:
    """Make two topics, each on one half of six brokers: replicas, bytes and leaders are even."""
    disk = (LogDir("/d", TB, TB // 2),)
    made = []
    for topic, members in (("orders", (1, 2, 3)), ("archive", (4, 5, 6))):
        for number in range(30):
            replicas = tuple(members[(number + place) % 3] for place in range(3))
            made.append(Partition(topic, number, replicas, replicas[0], replicas, 5 * TB // 1000))
    return ClusterModel.of([Broker(n, f"r{n % 3}", log_dirs=disk) for n in range(1, 7)], made)


def test_a_topic_that_leaves_out_brokers_is_spread_over_all() -> None:
    proposal = propose(half_spread(), Balance())
    assert proposal.complete
    held = Counter(
        (topic, broker)
        for (topic, _), after in lists_after(half_spread(), targets_of(proposal)).items()
        for broker in after
    )
    assert {held[topic, broker] for topic in ("orders", "archive") for broker in range(1, 7)} <= {14, 15, 16}


def test_topics_are_left_as_they_are_where_their_spread_is_off() -> None:
    assert propose(half_spread(), Balance(), Limits(topic_spread=TopicSpread.OFF)).empty


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_no_plan_by_load_breaks_a_never(seed: int) -> None:
    draw = random.Random(f"loads {seed}")
    bare = random_cluster(seed)
    model = ClusterModel.of(
        [
            replace(
                broker,
                network_in_bytes_per_s=draw.uniform(1e3, 1e5),
                network_out_bytes_per_s=draw.uniform(1e3, 1e5),
                cores=4.0,
                max_replicas=draw.choice((None, 6, 12)),
            )
            for broker in bare.brokers
        ],
        [
            replace(partition, write_bytes_per_s=draw.uniform(0, 5e3), read_bytes_per_s=draw.uniform(0, 5e3))
            for partition in bare.partitions
        ],
    )
    for goal in random_goals(seed, model):
        proposal = propose(model, goal)
        assert faults(model, proposal, DEFAULT_LIMITS, leaving_of(model, goal)) == [], goal
        if isinstance(goal, Add | Balance | Drain | Evacuate | Leaders):
            # Other goals place copies by disk and racks first.
            assert overloaded_on_the_way(model, proposal) == [], goal


def overloaded_on_the_way(model: ClusterModel, proposal: Proposal) -> list[str]:
    """Name the brokers that would take on more than they can bear, if everything arrives before anything leaves."""
    held, arriving = Counter[int](), Counter[int]()
    writes, written = Counter[int](), Counter[int]()
    for partition in model.partitions:
        held.update(partition.replicas)
        for broker in partition.replicas:
            writes[broker] += round(partition.write_bytes_per_s or 0)
    for move in proposal.moves:
        partition = model.partition_by_name[move.topic, move.partition]
        arriving.update(move.adding)
        for broker in move.adding:
            written[broker] += round(partition.write_bytes_per_s or 0)
    found = []
    for each in model.brokers:
        most = each.max_replicas
        if most is not None and arriving[each.id] and held[each.id] + arriving[each.id] > most:
            found.append(f"{each.id} has too many replicas")
        able = 0.8 * (each.network_in_bytes_per_s or 0)
        if written[each.id] and writes[each.id] + written[each.id] > able + len(model.partitions):
            found.append(f"{each.id} is written to more than its network takes")
    return found


def test_a_plan_by_load_is_the_same_each_time_and_stops_when_told() -> None:
    model = loaded_cluster(4)
    assert propose(model, Balance()) == propose(model, Balance())
    stopped = propose(model, Balance(), stop=lambda: True)
    assert stopped.interrupted
    assert faults(model, stopped, DEFAULT_LIMITS, frozenset()) == []
    bounded = propose(model, Balance(max_moves=3))
    assert bounded.copies <= 3
    assert {each.code for each in bounded.unmet} <= {UnmetCode.BOUND_REACHED}
