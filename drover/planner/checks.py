"""Whether a goal makes sense for a cluster, before anything is planned."""

from collections.abc import Iterator

from drover.planner.assess import why_not
from drover.planner.goals import (
    Add,
    Balance,
    Drain,
    Evacuate,
    Goal,
    Heal,
    Leaders,
    Limits,
    Replace,
    SetReplicationFactor,
    Spread,
)
from drover.planner.loads import CAPACITIES
from drover.planner.model import ClusterModel
from drover.planner.proposal import Unmet, UnmetCode
from drover.unreachable import unreachable_in_words


def refusals(model: ClusterModel, goal: Goal, limits: Limits) -> tuple[Unmet, ...]:
    """Say why a goal cannot even be tried: what it names does not exist or cannot be used; nothing if it can."""
    return tuple(_of_limits(limits)) + tuple(_of_goal(model, goal))


def _of_limits(limits: Limits) -> Iterator[Unmet]:
    if not 0 < limits.disk_limit <= 1:
        yield Unmet(UnmetCode.BAD_GOAL, f"the disk limit must be above 0 and at most 1, not {limits.disk_limit:g}")
    for load, limit in limits.limits.items():
        if not 0 < limit <= 1 or load not in CAPACITIES:
            text = f"the limit of {load.value} must be one of a capacity, above 0 and at most 1, not {limit:g}"
            yield Unmet(UnmetCode.BAD_GOAL, text)
    for name, value in (("above", limits.above), ("below", limits.below), ("leaders_above", limits.leaders_above)):
        if not 0 <= value < 1:
            yield Unmet(UnmetCode.BAD_GOAL, f"the tolerance {name} must be at least 0 and below 1, not {value:g}")


def _of_goal(model: ClusterModel, goal: Goal) -> Iterator[Unmet]:
    match goal:
        case Drain(brokers):
            yield from _known(model, brokers)
            yield from _reached(model, brokers)
        case Heal(brokers, _):
            yield from _named(brokers)
        case Add(brokers):
            yield from _receiving(model, brokers)
        case Replace(broker, replacement):
            yield from _known(model, (broker,))
            yield from _reached(model, (broker,))
            yield from _receiving(model, (replacement,))
            if broker == replacement:
                yield Unmet(UnmetCode.BAD_GOAL, f"broker {broker} cannot replace itself", broker=broker)
        case Evacuate(rack):
            if not any(broker.rack == rack for broker in model.brokers):
                racks = sorted({broker.rack for broker in model.brokers if broker.rack is not None})
                there = f"there are {', '.join(racks)}" if racks else "the brokers have no racks"
                yield Unmet(UnmetCode.UNKNOWN_RACK, f"no broker is in rack {rack}: {there}")
        case SetReplicationFactor(topics, factor):
            yield from _factor(model, topics, factor)
        case Balance(max_bytes, max_moves):
            for name, bound in (("bytes", max_bytes), ("moves", max_moves)):
                if bound is not None and bound < 0:
                    yield Unmet(UnmetCode.BAD_GOAL, f"the most {name} must not be negative, but is {bound:,}")
        case Spread() | Leaders():
            pass
    receivers = sum(broker.may_receive for broker in model.brokers)
    # An order, or a smaller replication factor, copies nothing.
    if not receivers and not isinstance(goal, Leaders | SetReplicationFactor):
        yield Unmet(UnmetCode.TOO_FEW_BROKERS, "no broker may receive replicas")


def _named(brokers: tuple[int, ...]) -> Iterator[Unmet]:
    if not brokers:
        yield Unmet(UnmetCode.BAD_GOAL, "no broker is named")


def _known(model: ClusterModel, brokers: tuple[int, ...]) -> Iterator[Unmet]:
    """Accept brokers that are in the cluster, or that replica lists still name: those are dead."""
    yield from _named(brokers)
    missing = [broker for broker in brokers if broker not in model.broker_by_id]
    if missing:
        listed = {broker for partition in model.partitions for broker in partition.replicas}
        for broker in missing:
            if broker not in listed:
                yield Unmet(UnmetCode.UNKNOWN_BROKER, f"there is no broker {broker}", broker=broker)


def _reached(model: ClusterModel, brokers: tuple[int, ...]) -> Iterator[Unmet]:
    """Refuse to empty brokers that live and cannot be reached: nothing of them can be seen, or throttled."""
    for broker in brokers:
        if broker in model.broker_by_id and model.broker_by_id[broker].unreachable:
            yield Unmet(UnmetCode.UNREACHABLE_BROKER, unreachable_in_words((broker,)), broker=broker)


def _receiving(model: ClusterModel, brokers: tuple[int, ...]) -> Iterator[Unmet]:
    yield from _named(brokers)
    for broker in brokers:
        refusal = why_not(model.broker_by_id, broker)
        if refusal is not None:
            yield Unmet(refusal[0], refusal[1], broker=broker)


def _factor(model: ClusterModel, topics: tuple[str, ...], factor: int) -> Iterator[Unmet]:
    if factor < 1:
        yield Unmet(UnmetCode.BAD_GOAL, f"the replication factor must be at least 1, not {factor}")
    there = {partition.topic for partition in model.partitions}
    for topic in topics:
        if topic not in there:
            yield Unmet(UnmetCode.UNKNOWN_TOPIC, f"there is no topic {topic}", topic)
    alive = sum(broker.alive for broker in model.brokers)
    if factor > alive:
        text = f"a replication factor of {factor} needs as many brokers, and {alive} are alive"
        yield Unmet(UnmetCode.TOO_FEW_BROKERS, text)
