"""Each load before and after a plan: how high and low it is on brokers, and how many are outside the band."""

from collections.abc import Collection, Mapping, Sequence

from drover.planner.goals import Limits
from drover.planner.loads import Load, Measures, Weight, weight_of
from drover.planner.model import ClusterModel
from drover.planner.proposal import LoadFigures, LoadLevel, Targets
from drover.planner.racks import Racks
from drover.planner.shares import LED, fair_loads

ROUNDING = 1e-6


def load_figures(
    model: ClusterModel, targets: Targets, limits: Limits, measures: Measures, leaving: Collection[int]
) -> tuple[LoadFigures, ...]:
    """Judge every load that is known, with the present lists and with these targets."""
    before = [partition.replicas for partition in model.partitions]
    after = [targets.get(partition.name, partition.replicas) for partition in model.partitions]
    changed = any(len(old) != len(new) for old, new in zip(before, after, strict=True))
    figures: list[LoadFigures] = []
    for load in measures.loads:
        weights = _weights(model, load, measures, before)
        level = _level(model, load, measures, limits, leaving, before, weights)
        # What a replica adds depends on how many there are.
        weights = _weights(model, load, measures, after) if changed else weights
        figures.append(LoadFigures(load.value, level, _level(model, load, measures, limits, leaving, after, weights)))
    return tuple(figures)


def _level(
    model: ClusterModel,
    load: Load,
    measures: Measures,
    limits: Limits,
    leaving: Collection[int],
    lists: Sequence[tuple[int, ...]],
    weights: Sequence[Weight],
) -> LoadLevel:
    """Say how even a load is, as shares of what is fair for each broker that may bear it."""
    held = _held(model, weights, lists)
    fair = _fair(model, load, measures, leaving, weights, lists, held)
    band = limits.band(load)
    shares = {number: held[number] / share for number, share in fair.items() if share > 0}
    full = 0
    if load in measures.absolute:
        able = measures.capacity[load]
        full = sum(held[number] > limits.limit(load) * able[number] * (1 + ROUNDING) for number in fair)
    return LoadLevel(
        max(shares.values(), default=1.0),
        min(shares.values(), default=1.0),
        sum(not 1 - band.below - ROUNDING <= share <= 1 + band.above + ROUNDING for share in shares.values()),
        full,
    )


def borne(model: ClusterModel, load: Load, measures: Measures, lists: Sequence[tuple[int, ...]]) -> dict[int, float]:
    """Return what each broker bears of a load with these lists, in the order of the model's partitions."""
    return _held(model, _weights(model, load, measures, lists), lists)


def _weights(model: ClusterModel, load: Load, measures: Measures, lists: Sequence[tuple[int, ...]]) -> list[Weight]:
    return [
        weight_of(
            load,
            partition,
            max(1, len(replicas)),
            reads_from_followers=model.reads_from_followers,
            measured=Load.PROCESSOR in measures.absolute,
        )
        for partition, replicas in zip(model.partitions, lists, strict=True)
    ]


def _held(model: ClusterModel, weights: Sequence[Weight], lists: Sequence[tuple[int, ...]]) -> dict[int, float]:
    held = {broker.id: 0.0 for broker in model.brokers}
    for weight, replicas in zip(weights, lists, strict=True):
        for place, broker in enumerate(replicas):
            held[broker] = held.get(broker, 0.0) + (weight.follower if place else weight.leader)
    return held


def _fair(
    model: ClusterModel,
    load: Load,
    measures: Measures,
    leaving: Collection[int],
    weights: Sequence[Weight],
    lists: Sequence[tuple[int, ...]],
    held: Mapping[int, float],
) -> dict[int, float]:
    racks = Racks(model.brokers, leaving)
    receiving = {broker.id: broker for broker in model.brokers if broker.may_receive and broker.id not in leaving}
    return fair_loads(
        load,
        {number: racks.of(number) for number in held},
        receiving,
        [number for number, broker in receiving.items() if load not in LED or not broker.demoted],
        held,
        leaving,
        ([len(replicas) for replicas in lists], [weight.leader for weight in weights]),
        measures.capacity.get(load),
    )
