"""Run one ring of tests in several processes, with lint beside it where that is part of the ring.

`python -m tests.ring MARKS [LINT]`: MARKS chooses the tests as `pytest -m` does, and LINT is a shell command.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

# Tests on real clusters mostly wait, so that more processes than cores are busy.
PROCESSES = 4
LINT_LOG = Path(sys.prefix) / "lint.log"


def main(tests: Sequence[str], lint: str | None = None) -> int:
    """Run pytest with these arguments, and lint, even if one of them fails; return an exit code.

    What lint printed is shown where it failed, so that pytest's summary of what failed stays the end of the output.
    """
    if lint is None:
        return pytest.main([*tests])
    with LINT_LOG.open("wb") as log:
        # In a session of its own: Ctrl-C reaches pytest alone, which ends everything that it started.
        process = subprocess.Popen(
            ("nice", "sh", "-c", lint), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    code = pytest.main([*tests])
    if code == pytest.ExitCode.INTERRUPTED and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    lint_code = process.wait()
    if lint_code:
        print(LINT_LOG.read_text(encoding="utf-8", errors="replace"), end="")
    print(f"exit codes: tests {int(code)}, lint {lint_code}", flush=True)
    return code or lint_code


def ring(marks: str) -> tuple[str, ...]:
    """Return the arguments with which pytest runs the tests of a ring; `tests/conftest.py` says what runs together."""
    return ("-m", marks, "--numprocesses", str(PROCESSES), "--dist", "loadscope", "--no-loadscope-reorder")


if __name__ == "__main__":
    sys.exit(main(ring(sys.argv[1]), *sys.argv[2:]))
