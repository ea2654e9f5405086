"""The watchdog ends a process whose loop hangs or whose stop takes too long; as a thread it outlives the hang."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

PROGRAM = """
import time
from drover.agents import watchdog
watchdog.HEARTBEAT_TIMEOUT_S = {heartbeat}
watchdog.STOP_DEADLINE_S = {deadline}
dog = watchdog.Watchdog()
dog.start()
began = time.monotonic()
{action}
while time.monotonic() - began < {seconds}:
    {each}
    time.sleep(0.05)
dog.close()
"""


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process whose output goes to one pipe."""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("heartbeat", "deadline", "action", "each", "code"),
    [
        pytest.param(0.5, 100, "", "", 70, id="a loop that does not beat"),
        pytest.param(1.5, 100, "", "dog.beat()", 0, id="a loop that beats"),
        pytest.param(100, 0.5, "dog.stopping('leaving')", "dog.beat()", 71, id="a stop that takes too long"),
    ],
)
def test_a_hang_ends_the_process_and_a_healthy_one_is_left_alone(
    heartbeat: float, deadline: float, action: str, each: str, code: int
) -> None:
    program = PROGRAM.format(heartbeat=heartbeat, deadline=deadline, action=action, each=each or "pass", seconds=2)
    ended = subprocess.run([sys.executable, "-c", program], timeout=120, check=False, capture_output=True)
    assert ended.returncode == code, ended.stderr.decode()
    assert (b"the worker was still leaving" in ended.stdout + ended.stderr) is (code == 71)


def test_a_loop_that_waits_for_whoever_reads_its_log_is_ended_too() -> None:
    logging = "from drover.service import logs; logs.configure_logging('json')"
    saying = "watchdog._log.warning('x' * 50_000)"
    program = PROGRAM.format(heartbeat=0.5, deadline=100, action=logging, each=saying, seconds=20)
    with running(program) as process:
        # Nobody reads the pipe.
        assert process.wait(20) == 70


def test_a_process_that_slept_as_a_whole_is_left_alone() -> None:
    program = PROGRAM.format(
        heartbeat=1.5, deadline=100, action="print('up', flush=True)", each="dog.beat()", seconds=5
    )
    with running(program) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(20) == 0
