"""Pytest plugin: kill the processes that an interrupted run would leave behind.

pytest-xdist kills its workers after ten seconds, which is not enough to stop every cluster on a busy machine. Child
processes inherit the mark of the run in their environment, so they are found even if their parent is gone.
"""

import os
import uuid

import psutil
import pytest

MARK = "DROVER_TEST_RUN"
# Servers of the standard library end with the process that started them, which is not worth telling.
ENDING = ("multiprocessing.forkserver", "multiprocessing.resource_tracker")
SHOWN = 150


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        mark_this_run()


@pytest.hookimpl(trylast=True)  # pytest-xdist ends its processes in the same hook
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.INTERRUPTED and not _is_worker(session.config):
        for command in kill_what_is_left():
            print(f"\nkilled a leftover process: {command[:SHOWN]}")


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def mark_this_run() -> None:
    """Mark all processes started from here on; a nested run appends its mark to that of the outer run."""
    os.environ[MARK] = f"{os.environ.get(MARK, '')}/{uuid.uuid4().hex}"


def kill_what_is_left() -> list[str]:
    """Kill every process that carries the mark of this run, and return the command lines of those worth telling."""
    killed = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(os.environ[MARK]):
                command = " ".join(process.cmdline())
                process.kill()
                if not any(name in command for name in ENDING):
                    killed.append(command)
        except psutil.Error:
            continue  # it ended meanwhile, or is another user's
    return killed
