"""Stop processes for four seconds by chance, to find tests that rely on who leads a partition or owns a shard.

`.venv/bin/pytest -p tests.stalling PATHS`. Every twenty seconds or so one process that the tests have started stands
still: long enough for a broker to lose what it leads, and a worker its shards. A machine with other work does the same,
but only once in some hundred runs. `STALLING_EVERY_S` in the environment says how often, and `STALLING_SEED` chooses
others. Tests that measure time, or pause a process themselves, may fail for that alone. Failures tell what stood still.
"""

import os
import random
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import suppress

import psutil
import pytest

STALL_S = 4.0
# What was started later serves nobody yet, and most commands end sooner.
OLD_ENOUGH_S = 6.0
SHOWN_CHARACTERS = 120
EVERY_S = float(os.environ.get("STALLING_EVERY_S", "20"))
CHANCE = random.Random(int(os.environ.get("STALLING_SEED", "1")))
TOLD: list[str] = []
IS_OVER = threading.Event()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to stop processes, in each process that runs tests."""
    if not session.config.getoption("numprocesses", None):
        threading.Thread(target=_stall_until_the_end, name="stalling", daemon=True).start()


def pytest_sessionfinish() -> None:
    """Stop none any more."""
    IS_OVER.set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with a failure what stood still until then."""
    report = yield
    if report.failed:
        report.sections.append(("what stood still", "\n".join(TOLD)))
    return report


def _stall_until_the_end() -> None:
    while not IS_OVER.wait(CHANCE.uniform(0.5, 1.5) * EVERY_S):
        found = list(_running())
        if found:
            # It may end at any time.
            with suppress(psutil.NoSuchProcess):
                _stall(CHANCE.choice(found))


def _running() -> Iterator[psutil.Process]:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            is_stopped = process.status() in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}
            if not is_stopped and time.time() - process.create_time() >= OLD_ENOUGH_S:
                yield process


def _stall(process: psutil.Process) -> None:
    command = " ".join(process.cmdline())
    process.suspend()
    try:
        TOLD.append(f"{time.strftime('%H:%M:%S')} {process.pid} {command[-SHOWN_CHARACTERS:]}")
        IS_OVER.wait(STALL_S)
    finally:
        process.resume()
