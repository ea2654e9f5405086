"""`python -m bench [NAME ...] [--quick] [--write]`: measure, print, and fail if a goal is missed."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from bench import alter, commands, completion, makespan, planner, projection, replay, spark, takeover
from bench.results import Benchmark, BenchmarkError, Row, table, write
from drover.errors import DroverError

MODULES = (alter, commands, completion, makespan, takeover, replay, projection, spark, planner)
BENCHMARKS = {module.BENCHMARK.name: module.BENCHMARK for module in MODULES}
GOAL_MISSED = 1
NOT_MEASURED = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were named, all by default; the exit code says whether every goal is met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Drover.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that the benchmarks work")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/performance.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}: choose from {', '.join(BENCHMARKS)}")
    if options.write and (options.quick or options.names):
        parser.error("the table holds one whole run at full size: use --write without names and without --quick")
    chosen = [BENCHMARKS[name] for name in options.names] or list(BENCHMARKS.values())
    try:
        results = asyncio.run(_run_all(chosen, quick=options.quick))
        if options.write:
            write(results)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED
    except (BenchmarkError, DroverError) as error:
        print(f"not measured: {error}", file=sys.stderr)
        return NOT_MEASURED
    missed = [f"{name}: {row.name}" for name, rows in results.items() for row in rows if row.met is False]
    for line in missed:
        print(f"goal missed: {line}", file=sys.stderr)
    return GOAL_MISSED if missed else 0


async def _run_all(benchmarks: Sequence[Benchmark], *, quick: bool) -> dict[str, tuple[Row, ...]]:
    task = asyncio.current_task()
    assert task is not None, "a coroutine that asyncio.run runs is a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    results: dict[str, tuple[Row, ...]] = {}
    for benchmark in benchmarks:
        print(benchmark.name, file=sys.stderr, flush=True)
        results[benchmark.name] = await benchmark.run(quick=quick)
        print(f"\n{table({benchmark.name: results[benchmark.name]})}\n", flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
