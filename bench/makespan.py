"""The time of a plan on the model of ports, beside the bound that no schedule beats and what operators do without."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.makespan_baselines import Outcome, Policy, all_at_once, cruise_control, incremental, play, waves
from bench.makespan_drover import Drive
from bench.makespan_instances import STREAM_SHARES, instances
from bench.ports_model import Instance
from bench.results import AtLeast, AtMost, Benchmark, Row, say
from drover.events.clusters import Budgets
from drover.state.scheduling import Limits

MOVES, SEEDS = 300, 3
# As many partitions at a time as Cruise Control's cap lets twelve brokers copy.
AT_A_TIME = 60
# Copies are about as large if the largest is not so many times as large as the median.
ALIKE = 3
Baselines: dict[str, Callable[[Instance], Policy]] = {
    "all at once": lambda _: all_at_once(),
    "waves": lambda _: waves(AT_A_TIME),
    "incremental": lambda _: incremental(AT_A_TIME),
    "cruise control": cruise_control,
}


@dataclass(frozen=True, slots=True)
class Played:
    """One instance: everybody's time over the bound, and the most extra replicas of two."""

    instance: Instance
    drover: float
    by_default: float
    others: dict[str, float]
    extra: int
    extra_at_once: int


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Play every instance with everybody."""
    seeds, moves = (1, 60) if quick else (SEEDS, MOVES)
    played = [await _play(instance) for instance in instances(seeds, moves)]
    return tuple(_rows(played))


def fitting(instance: Instance) -> Limits:
    """Return the limits as docs/limits.md advises: as many copies per broker as fill a port, in whole steps.

    A half more where all copies are about as large. Where racks have uplinks, as many copies per rack as its uplink is
    ports wide.
    """
    streams, replicas = instance.streams_per_port, max(len(shift.added) for shift in instance.shifts)
    sizes = [shift.bytes for shift in instance.shifts]
    is_even = max(sizes) < ALIKE * statistics.median(sizes)
    copies = math.ceil(streams * (1.5 if is_even else 1) / replicas) * replicas if streams > 1 else replicas
    if copies == 1:
        copies = Limits().max_moves_per_broker
    between_racks = None if instance.uplink is None else round(copies * instance.uplink / instance.port)
    return Limits(
        max_replicas_per_step=replicas,
        max_moves_per_broker=copies,
        budgets=Budgets(max_moves_per_rack=between_racks),
    )


async def _play(instance: Instance) -> Played:
    bound_s = instance.bound_s
    drover = await Drive(instance, fitting(instance)).run()
    drover_s = round(drover.seconds, 3)
    by_default = await Drive(instance, Limits()).run()
    outcomes: dict[str, Outcome] = {name: play(instance, make(instance)) for name, make in Baselines.items()}
    others = {name: round(outcome.seconds, 3) / bound_s for name, outcome in outcomes.items()}
    found = Played(
        instance,
        drover_s / bound_s,
        by_default.seconds / bound_s,
        others,
        drover.peak_extra,
        outcomes["all at once"].peak_extra,
    )
    told = ", ".join(f"{name} {ratio:.3f}" for name, ratio in others.items())
    say(f"{instance.name}: bound {bound_s:.0f} s; drover {found.drover:.3f}, {found.by_default:.3f} by default; {told}")
    return found


def _rows(played: Sequence[Played]) -> Iterable[Row]:
    count = len(played)
    ours = [one.drover for one in played]
    yield Row(f"{count} instances, mean over the bound", statistics.mean(ours), "x", gate=AtMost(1.05))
    yield Row(f"{count} instances, worst over the bound", max(ours), "x", gate=AtMost(1.15))
    for share in STREAM_SHARES:
        those = [one for one in played if round(one.instance.port / one.instance.stream) == share]
        mean = statistics.mean(one.drover for one in those)
        by_default = statistics.mean(one.by_default for one in those)
        yield Row(f"stream 1/{share} of a port, mean over the bound", mean, "x")
        yield Row(f"stream 1/{share} of a port, default limits, mean over the bound", by_default, "x")
    for family in dict.fromkeys(one.instance.family for one in played):
        mean = statistics.mean(one.drover for one in played if one.instance.family == family)
        yield Row(f"{family}, mean over the bound", mean, "x")
    for name in Baselines:
        ended = [(one.drover, one.others[name]) for one in played if math.isfinite(one.others[name])]
        drover, other = (statistics.mean(ratios) for ratios in zip(*ended, strict=True))
        yield Row(f"mean over the bound, beside {name}", drover, "x", other)
    slower = max(one.drover / one.others["cruise control"] for one in played)
    yield Row("worst against cruise control on the same instance", slower, "x", gate=AtMost(1.0))
    waves_by = statistics.mean(one.others["waves"] / one.drover for one in played)
    yield Row("waves with barriers take longer than Drover, mean", waves_by, "x", gate=AtLeast(1.8))
    least = min(one.others["waves"] / one.drover for one in played)
    yield Row("waves with barriers take longer than Drover, least", least, "x")
    extra = sum(one.extra for one in played)
    at_once = sum(one.extra_at_once for one in played)
    yield Row("most extra replicas, beside all at once", extra / count, "replicas", at_once / count)


METHOD = """\
No Kafka: the real shard core in virtual time, with a plan throttled to the rate of a port, drives a model cluster of
twelve brokers whose copies a fluid model carries (`bench/ports_model.py`): every broker has a port in and one out of
50 MB/s, copies share ports max-min fairly, and no copy is faster than one stream, which is a whole port, a third or
an eighth of one. 63 instances from seeds (`bench/makespan_instances.py`), 300 moves each: sizes even, skewed and very
skewed (log-normal around 400 MB, sigma 0.2, 1.2, 1.8), half of the partitions led by a quarter of the brokers, rack
uplinks of two ports for four brokers, partitions that are written to, and 100 partitions whose three replicas are all
replaced. *Bound*: the busiest port or uplink, or the longest single copy; no schedule beats it. Drover looks every
150 ms and reads sizes every second, as a worker does; 50 ms from a call to the first byte for everybody. Its limits
are those that limits.md advises: the defaults where one stream fills a port, otherwise as many copies per broker as
fill one (3 and 8), and a half more where all are about as large (5 and 12); whole replacements with three replicas per
step and as many copies as fill a port in whole steps (3, 3 and 9); where racks have uplinks, twice as many copies per
rack, since an uplink is two ports wide. Times are to the millisecond, as Drover's clock is in the model. *Default
limits*: one replica per step and five copies per broker and way, which leave three eighths of a port idle at streams
of an eighth. Baselines on the same instances: everything in one request; waves of 60 partitions, the next one when
all of the one before have ended; 60 at a time by name with a look every second (KIP-1335); Cruise Control's loop: at
most five tasks per broker and way, a look every ten seconds."""
BENCHMARK = Benchmark("makespan", "The time of a whole plan, on a model of ports", METHOD, run)
