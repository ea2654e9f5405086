"""Check everything, as `make test` does: all but Spark's tests, then those, with lint, hostile input and seeds beside.

`python -m tests.everything LINT`, where LINT is the shell command that checks format, style, types and layers. Real
parts mostly wait, so that five processes share two cores. Spark's tests measure time, so that they run by themselves;
what only computes uses the time that they leave, with a lower priority.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic

import psutil

from bench.reference import Reference
from tests.left_behind import kill_what_is_left, mark_this_run

PROCESSES = 5
SPARK = "tests/spark"
# What only computes: each of the two in a process of its own.
COMPUTING = ("tests/hostile", "tests/simulation/test_seeds.py")
PYTEST = (str(Path(sys.executable).with_name("pytest")),)
SHARED = ("--dist", "loadscope", "--no-loadscope-reorder")
LOGS = Path(sys.prefix)
FAILURES = LOGS / "failures.log"
# How much of the log of a failed check is repeated at the end.
REPEATED_LINES = 20
INTERRUPTED = 130
# A run of pytest takes up to ten seconds to end its processes after Ctrl-C, and some more to end clusters.
PATIENCE_S = 20.0
REFERENCE_RUNS = 100


@dataclass(frozen=True, slots=True)
class Beside:
    """Checks that run beside others and are told of after them."""

    process: subprocess.Popen[bytes]
    log: Path

    def end(self) -> bool:
        """Wait for them, show what they said, and keep the end of that if one failed."""
        succeeded = self.process.wait() == 0
        told = self.log.read_text(encoding="utf-8", errors="replace")
        print(told, flush=True)
        if not succeeded:
            with FAILURES.open("a", encoding="utf-8") as failures:
                failures.write("".join(told.splitlines(keepends=True)[-REPEATED_LINES:]))
        return succeeded


def main(lint: str) -> int:
    """Run every check, whatever fails; all that failed is repeated at the end. Ctrl-C ends the checks that run."""
    began = monotonic()
    FAILURES.write_text("", encoding="utf-8")
    mark_this_run()
    # In the background of a shell this process ignores Ctrl-C, as would all that it starts: some tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    succeeded = None
    # At Ctrl-C the checks get the signal as well and end what they started; `_ended` waits for them.
    with suppress(KeyboardInterrupt), ExitStack() as started:
        succeeded = _check(lint, started)
    if succeeded is None:
        # After a whole run nothing is killed: what it leaves behind must be seen.
        for command in kill_what_is_left():
            print("killed a leftover process:", command, flush=True)
        return INTERRUPTED
    print(f"{monotonic() - began:.0f} s, on a machine that needs {_reference_ms():.2f} ms for bench/reference.py")
    print(FAILURES.read_text(encoding="utf-8"), end="", flush=True)
    return 0 if succeeded else 1


def _check(lint: str, started: ExitStack) -> bool:
    # Every test is collected once before, so that not each process compiles what all of them import.
    collected = _start((*PYTEST, "--collect-only", "--quiet", "--quiet"), started, subprocess.DEVNULL)
    results = [collected.wait() == 0]
    together = ("--numprocesses", str(PROCESSES), *SHARED)
    later = (f"--ignore={path}" for path in (SPARK, *COMPUTING))
    results.append(_run((*PYTEST, *later, *together), started))
    computing = (*PYTEST, *COMPUTING, "--numprocesses", str(len(COMPUTING)), *SHARED)
    # All at once: what waits for another still runs, on one core, when the rest is over.
    beside = [_start_beside("lint", ("sh", "-c", lint), started), _start_beside("computing", computing, started)]
    results.append(_run((*PYTEST, SPARK), started))
    return all((*results, *(each.end() for each in beside)))


def _reference_ms() -> float:
    """Tell how fast the machine is: the same run takes a third longer in some hours than in others."""
    reference = Reference()
    return median(reference.elapsed_ms() for _ in range(REFERENCE_RUNS))


def _run(command: Sequence[str], started: ExitStack) -> bool:
    return _start(command, started).wait() == 0


def _start_beside(name: str, command: Sequence[str], started: ExitStack) -> Beside:
    log = LOGS / f"{name}.log"
    output = started.enter_context(log.open("wb"))
    return Beside(_start(("nice", *command), started, output.fileno()), log)


def _start(command: Sequence[str], started: ExitStack, output: int | None = None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "DROVER_TEST_FAILURES": str(FAILURES)}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
    started.enter_context(process)
    started.push(partial(_ended, process))
    print("+", shlex.join(command), flush=True)
    return process


def _ended(process: subprocess.Popen[bytes], kind: type[BaseException] | None, *_: object) -> None:
    """Interrupt again what goes on after Ctrl-C: what was just being started loses the signal."""
    while kind is KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)
            return
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(process.pid)
            for one in (first, *first.children(recursive=True)):
                one.send_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
