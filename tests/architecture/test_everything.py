"""`make test` runs every check whatever fails, says again what failed, and ends all of them at Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import everything
from tests.architecture.repository import ROOT
from tests.left_behind import MARK

# In place of pytest: Spark's tests and hostile input end only when they are told to.
ENDLESS = ("sh", "-c", 'case "$*" in *collect-only* | *ignore*) ;; *) exec sleep 60;; esac')
# The same, but the first Ctrl-C is lost on them, as on a process that is just being started.
DEAF = (
    *("sh", "-c"),
    'case "$*" in *collect-only* | *ignore*) ;; *) trap "trap - INT" INT; while :; do sleep 1; done;; esac',
)


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, os.environ.get(MARK, ""))  # the runs here append theirs
    monkeypatch.setattr(everything, "LOGS", tmp_path)
    monkeypatch.setattr(everything, "FAILURES", tmp_path / "failures.log")


def test_all_is_well_if_every_check_is(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(everything, "PYTEST", ("echo", "tests"))
    assert everything.main("echo lint") == 0
    lines = capfd.readouterr().out.splitlines()
    said = [line for line in lines if line.startswith(("tests ", "lint"))]
    assert len(said) == 4
    assert "--ignore=tests/spark --ignore=tests/hostile --ignore=tests/simulation/test_seeds.py" in said[0]
    assert said[1:3] == ["tests tests/spark", "lint"]
    assert said[3].startswith("tests tests/hostile tests/simulation/test_seeds.py ")
    assert re.fullmatch(r"\d+ s, on a machine that needs \d+\.\d\d ms for bench/reference\.py", lines[-1])


@pytest.mark.parametrize("failing", ["lint", "hostile"])
def test_what_failed_beside_the_others_is_told_of_again_as_the_last_thing(
    failing: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fails = 'case "$1" in tests/hostile) echo hostile; exit 1;; esac'
    monkeypatch.setattr(everything, "PYTEST", ("sh", "-c", fails if failing == "hostile" else "exit 0", "sh"))
    assert everything.main("echo lint; exit 3" if failing == "lint" else "exit 0") == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines.count(failing) == 2
    assert lines[-1] == failing


def test_what_a_whole_run_leaves_behind_is_not_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(everything, "PYTEST", ("true",))
    assert everything.main(f"sleep 60 & echo $! >{tmp_path}/left") == 0
    os.kill(int((tmp_path / "left").read_text(encoding="utf-8")), signal.SIGKILL)  # an error if it is gone


@pytest.mark.parametrize(("checks", "patience_s"), [(ENDLESS, everything.PATIENCE_S), (DEAF, 0.5)], ids=["all", "deaf"])
def test_ctrl_c_ends_every_check(checks: tuple[str, ...], patience_s: float, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests import everything\n"
        f"everything.PYTEST = {(*checks, 'sh')!r}; everything.LOGS = Path({str(tmp_path)!r})\n"
        f"everything.FAILURES = everything.LOGS / 'failures.log'; everything.PATIENCE_S = {patience_s}\n"
        "sys.exit(everything.main('exec sleep 60'))"
    )
    # As a shell starts it in the background: Ctrl-C is ignored until it says otherwise.
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", code]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0)
    assert run.stdout is not None
    while not run.stdout.readline().endswith(everything.SPARK + "\n"):
        assert run.poll() is None
    os.killpg(run.pid, signal.SIGINT)
    # What was just being started hears only the second one.
    assert run.wait(timeout=2 * everything.PATIENCE_S + 10) == everything.INTERRUPTED
    run.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)
