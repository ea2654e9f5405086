"""The limits that new lists break, whoever chose them: of capacities at the end, and while copies arrive."""

from collections import Counter
from collections.abc import Iterator, Sequence

from drover.planner.goals import Limits
from drover.planner.load_figures import borne
from drover.planner.loads import Load, measures_of
from drover.planner.model import ClusterModel
from drover.planner.proposal import Move, Unmet, UnmetCode

ROUNDING = 1e-6


def broken_limits(model: ClusterModel, moves: Sequence[Move], limits: Limits) -> Iterator[Unmet]:
    """Name the brokers that moves take above a limit, but for disks while copies arrive.

    A broker that was above one before, and bears no more of the load afterwards, is not the plan's fault.
    """
    yield from _above_at_the_end(model, moves, limits)
    yield from _above_on_the_way(model, moves, limits)


def _above_at_the_end(model: ClusterModel, moves: Sequence[Move], limits: Limits) -> Iterator[Unmet]:
    measures = measures_of(model)
    before = [partition.replicas for partition in model.partitions]
    targets = {(move.topic, move.partition): move.after for move in moves}
    after = [targets.get(partition.name, partition.replicas) for partition in model.partitions]
    for load in measures.loads:
        # Of disks the free bytes say more than the replicas, unless they are to be emptier in the end.
        if load not in measures.absolute or (load is Load.DISK and load not in limits.limits):
            continue
        limit, able = limits.limit(load), measures.capacity[load]
        old, new = borne(model, load, measures, before), borne(model, load, measures, after)
        for number, capacity in sorted(able.items()):
            if new[number] > limit * capacity * (1 + ROUNDING) and new[number] > old[number] * (1 + ROUNDING):
                used = f"{new[number] / capacity:.0%} of what it can bear of {load.value}"
                text = f"broker {number} would bear {used}, and the limit is {limit:.0%}"
                yield Unmet(UnmetCode.OVERLOADED, text, broker=number)


def _above_on_the_way(model: ClusterModel, moves: Sequence[Move], limits: Limits) -> Iterator[Unmet]:
    copies: Counter[int] = Counter()
    held: Counter[int] = Counter()
    received: dict[int, float] = {}
    for partition in model.partitions:
        held.update(partition.replicas)
        for broker in partition.replicas:
            received[broker] = received.get(broker, 0.0) + (partition.write_bytes_per_s or 0.0)
    arriving: dict[int, float] = {}
    for move in moves:
        copies.update(move.adding)
        rate = model.partition_by_name[move.topic, move.partition].write_bytes_per_s or 0.0
        for broker in move.adding:
            arriving[broker] = arriving.get(broker, 0.0) + rate
    limit = limits.limit(Load.NETWORK_IN)
    for broker_facts in model.brokers:
        number, most = broker_facts.id, broker_facts.max_replicas
        count = held[number] + broker_facts.arriving_replicas + copies[number]
        if copies[number] and most is not None and count > most:
            text = f"broker {number} would have {count:,} replicas while copies arrive, and may have {most:,}"
            yield Unmet(UnmetCode.NO_ROOM, text, broker=number)
        able, more = broker_facts.network_in_bytes_per_s, arriving.get(number, 0.0)
        if able and more and received.get(number, 0.0) + more > limit * able * (1 + ROUNDING):
            used = f"{(received.get(number, 0.0) + more) / able:.0%} of what its network can receive"
            text = f"broker {number} would bear {used} while copies arrive, and the limit is {limit:.0%}"
            yield Unmet(UnmetCode.NO_ROOM, text, broker=number)
