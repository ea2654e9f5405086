"""Many seeds in two processes.

A soak takes seeds that were never run: a range that has passed before says little about states that no seed has met.
"""

import gc
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count, takewhile
from multiprocessing import get_context
from os import cpu_count

from msgspec import Struct, json

from tests.architecture.repository import ROOT
from tests.simulation.run import Finished, run_seed

CHUNK = 5
# No soak runs as many seeds in a second.
SEEDS_PER_SECOND = 1_000


class Summary(Struct, frozen=True, omit_defaults=True):
    """One soak: which code, which seeds, how much, how fast, and which seeds failed."""

    commit: str
    first_seed: int
    seeds: int
    steps_per_seed: int
    steps: int
    virtual_hours: float
    minutes: float
    steps_per_cpu_second: int
    failed_seeds: tuple[int, ...] = ()


@dataclass(slots=True)
class Tally:
    """What came of some seeds."""

    seeds: int = 0
    steps: int = 0
    virtual_ms: int = 0
    heal_chunks: int = 0
    cpu_s: float = 0.0
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        """Count another one in."""
        self.seeds += other.seeds
        self.steps += other.steps
        self.virtual_ms += other.virtual_ms
        self.heal_chunks += other.heal_chunks
        self.cpu_s += other.cpu_s
        self.failures |= other.failures


def run_seeds(seeds: range, steps: int) -> Tally:
    """Run some seeds in this process."""
    tally, began = Tally(), time.process_time()
    for seed in seeds:
        finished: Finished = run_seed(seed, steps)
        tally.seeds += 1
        tally.steps += finished.steps
        tally.virtual_ms += finished.virtual_ms
        tally.heal_chunks += finished.heal_chunks
        if finished.failure is not None:
            tally.failures[seed] = finished.failure
    tally.cpu_s = time.process_time() - began
    return tally


def in_parallel(
    first: int, at_least: int, steps: int, seconds: float, processes: int | None = None
) -> Generator[Tally]:
    """Run seeds from `first` on, at least so many and for at least so long; one tally per chunk, in order."""
    processes = processes or min(2, cpu_count() or 1)
    until = time.monotonic() + seconds
    starts = takewhile(lambda start: start < first + at_least or time.monotonic() < until, count(first, CHUNK))
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_prepare)
    try:
        waiting: list[Future[Tally]] = []
        for start in starts:
            waiting.append(pool.submit(run_seeds, range(start, start + CHUNK), steps))
            if len(waiting) > 2 * processes:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    # A world lives until its run ends, so frequent garbage collection finds nothing and costs a twelfth of the time.
    gc.set_threshold(100_000, 20, 100)
    # Ctrl-C reaches all processes of a terminal: the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def fresh_seed(now_s: float) -> int:
    """Return a first seed above those of every earlier soak: it grows with the clock, and faster than soaks run."""
    return int(now_s) * SEEDS_PER_SECOND


def soak(first_seed: int | None, seeds: int, steps: int, hours: float, processes: int | None = None) -> int:
    """Run seeds, print each failure at once and a summary at the end; returns the exit code.

    Ctrl-C and SIGTERM end it early: the summary then covers the seeds that ran.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    first = fresh_seed(time.time()) if first_seed is None else first_seed
    total, began = Tally(), time.monotonic()
    with suppress(KeyboardInterrupt), closing(in_parallel(first, seeds, steps, hours * 3600, processes)) as tallies:
        for tally in tallies:
            total.add(tally)
            for seed, failure in tally.failures.items():
                print(f"seed {seed}: {failure}\n  again: {again(seed, steps)}", flush=True)
            if sys.stdout.isatty():
                print(f"\r{total.seeds} seeds, {total.steps} steps", end="", flush=True)
    summary = Summary(
        commit=_commit(),
        first_seed=first,
        seeds=total.seeds,
        steps_per_seed=steps,
        steps=total.steps,
        virtual_hours=round(total.virtual_ms / 3_600_000, 1),
        minutes=round((time.monotonic() - began) / 60, 1),
        steps_per_cpu_second=round(total.steps / max(total.cpu_s, 0.001)),
        failed_seeds=tuple(sorted(total.failures)),
    )
    print(json.encode(summary).decode())
    return 1 if total.failures else 0


def again(seed: int, steps: int) -> str:
    """Say which command runs a seed again and shrinks it."""
    return f".venv/bin/python -m tests.simulation seed {seed} --steps {steps}"


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
