"""The cost of an idle Drover: processor time of its workers, and of the brokers with and without them."""

import asyncio
from collections.abc import Sequence

import psutil

from bench.results import AtMost, Benchmark, Row, say
from bench.rig import drover_on, fresh_cluster

WORKERS = ("first", "second")
# Java is still compiling at first, and clients are still connecting.
SETTLING_S, MEASURED_S = 20, 60


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Measure the brokers without workers, then brokers and workers together."""
    settling_s, measured_s = (5, 5) if quick else (SETTLING_S, MEASURED_S)
    async with fresh_cluster() as cluster, drover_on(cluster, "idle") as (rig, tail):
        nodes = [psutil.Process(cluster.pid(node)) for node in cluster.spec.kafka_nodes]
        await asyncio.sleep(settling_s)
        alone = await _percent(nodes, measured_s)
        for name in WORKERS:
            await rig.start_worker(name)
        await tail.until(lambda: tail.owners == set(WORKERS), "both workers own shards")
        await asyncio.sleep(settling_s)
        workers = [psutil.Process(rig.workers[name].pid) for name in WORKERS]
        beside, own = await asyncio.gather(_percent(nodes, measured_s), _percent(workers, measured_s))
    say(f"brokers {alone:.1f} % of a core alone, {beside:.1f} % beside two workers, which take {own:.1f} %")
    return (
        Row("four brokers and a controller beside two idle workers, and without them", beside, "% of a core", alone),
        Row("one idle worker", own / len(WORKERS), "% of a core", goal=AtMost(3)),
    )


async def _percent(processes: Sequence[psutil.Process], seconds: float) -> float:
    """Measure for so long which share of one core these processes take together, in percent."""
    before = _processor_s(processes)
    await asyncio.sleep(seconds)
    return (_processor_s(processes) - before) / seconds * 100


def _processor_s(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


METHOD = """\
A four-broker Kafka with Drover's topics and nothing else; one reader of the log, the benchmark's own, waits for
records. Processor time of the brokers and the controller for a minute, then of two workers and of the same brokers for
another one, each time after twenty seconds in which Java compiles and connections are made. Six shards, default
settings."""
BENCHMARK = Benchmark("idle", "Brokers and workers while nothing happens", METHOD, run)
