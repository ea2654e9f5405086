"""`python -m bench [NAME ...] [--quick] [--write]`: measure, print, and fail if a gate does."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from bench import (
    alter,
    commands,
    completion,
    core,
    healing,
    idle,
    leaders,
    leaders_core,
    light,
    makespan,
    many_moves,
    moving,
    page,
    planning,
    projection,
    reality,
    replay,
    report,
    spark,
    start,
    takeover,
    versions,
)
from bench.results import Benchmark, BenchmarkError, Row
from drover.errors import DroverError

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        alter.BENCHMARK,
        commands.BENCHMARK,
        completion.BENCHMARK,
        core.BENCHMARK,
        healing.BENCHMARK,
        idle.BENCHMARK,
        leaders.BENCHMARK,
        leaders_core.BENCHMARK,
        light.BENCHMARK,
        makespan.BENCHMARK,
        many_moves.BENCHMARK,
        moving.BENCHMARK,
        page.BENCHMARK,
        planning.BENCHMARK,
        reality.BENCHMARK,
        projection.BENCHMARK,
        replay.BENCHMARK,
        spark.BENCHMARK,
        start.BENCHMARK,
        takeover.BENCHMARK,
        versions.BENCHMARK,
    )
}
GATE_FAILED = 1
NOT_MEASURED = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were named, all by default; the exit code says whether every gate held."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Drover.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether it works")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/performance.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}: choose from {', '.join(BENCHMARKS)}")
    if options.quick and options.write:
        parser.error("figures of small sizes are not worth writing down: leave out --quick or --write")
    chosen = [BENCHMARKS[name] for name in options.names] or list(BENCHMARKS.values())
    try:
        return asyncio.run(_run_all(chosen, quick=options.quick, write=options.write))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED
    except (BenchmarkError, DroverError) as error:
        print(f"not measured: {error}", file=sys.stderr)
        return NOT_MEASURED


async def _run_all(benchmarks: Sequence[Benchmark], *, quick: bool, write: bool) -> int:
    task = asyncio.current_task()
    assert task is not None, "this coroutine is a task's"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    failed: list[tuple[Benchmark, Row]] = []
    for benchmark in benchmarks:
        print(f"{benchmark.name}: {benchmark.title}", file=sys.stderr, flush=True)
        rows = await benchmark.run(quick=quick)
        print(f"\n{benchmark.title}\n\n{report.table(rows)}\n", flush=True)
        if write:
            report.write(benchmark, rows)
        failed += [(benchmark, row) for row in rows if row.passed is False]
    for benchmark, row in failed:
        print(f"gate failed: {benchmark.name}: {row.name} ({row.gate})", file=sys.stderr)
    return GATE_FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
