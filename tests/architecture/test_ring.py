"""A ring runs its tests and lint, whichever of them fails, and ends both at Ctrl-C; which tests are in which ring."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT
from tests.conftest import SHARED_CLUSTER, group_of

# Fixtures that start servers for a folder, and the ways in which a test starts its own.
SERVERS = {"spark", "stage", "zookeeper"}
STARTS_SERVERS = re.compile(r"\b(run_)?local_cluster\(|\bLocalZooKeeper\(|\bEnsemble\(")
PASSES = "def test_it(): pass\n"
FAILS = "def test_it(): assert False, 'a broken promise'\n"
ENDLESS = """
import time
from pathlib import Path

def test_it():
    Path("begun").touch()
    time.sleep(300)
"""


def run(directory: Path, test: str, lint: str) -> subprocess.Popen[str]:
    """Run a ring of one test and lint in a process of its own, which ignores Ctrl-C until it says otherwise.

    That is how a shell starts what runs in the background.
    """
    (directory / "test_it.py").write_text(test, encoding="utf-8")
    program = (
        "import sys; from pathlib import Path; from tests import ring\n"
        "ring.LINT_LOG = Path('lint.log')\n"
        f"sys.exit(ring.main(['-p', 'tests.conftest', '-p', 'no:cacheprovider', 'test_it.py'], {lint!r}))"
    )
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", program]
    return subprocess.Popen(
        command, cwd=directory, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("continuous_integration", ["", "true"])
@pytest.mark.parametrize(
    ("test", "lint", "code"), [(PASSES, "echo fine", 0), (FAILS, "echo fine", 1), (PASSES, "echo wrong; exit 3", 3)]
)
def test_tests_and_lint_both_run_and_the_output_ends_with_what_failed(
    test: str, lint: str, code: int, continuous_integration: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", continuous_integration)
    with run(tmp_path, test, lint) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == code, output
    assert ("a broken promise" in output) == (test == FAILS)
    # pytest's summary names a failed test with its whole message, of several lines, where the variable CI is set.
    end = {0: " passed", 1: "short test summary info", 3: "wrong"}[code]
    assert end in "\n".join(output.splitlines()[-6:-1])
    assert ("FAILED test_it.py" in output) == (test == FAILS)


def test_ctrl_c_ends_the_tests_and_lint(tmp_path: Path) -> None:
    with run(tmp_path, ENDLESS, "echo $$ >lint.pid; exec sleep 300") as process:
        while not ((tmp_path / "begun").exists() and (tmp_path / "lint.pid").exists()):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "lint.pid").read_text(encoding="utf-8")), 0)


def test_outside_the_stories_the_one_shared_cluster_is_the_only_one(request: pytest.FixtureRequest) -> None:
    others = {
        item.nodeid
        for item in request.session.items
        if not any(item.iter_markers("story"))
        and (any(item.iter_markers("cluster")) or SERVERS & {*getattr(item, "fixturenames", ())})
        and group_of(item.path) != SHARED_CLUSTER
    }
    assert others == set()


def test_a_file_that_starts_servers_itself_has_stories() -> None:
    for file in (ROOT / "tests").rglob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        assert not STARTS_SERVERS.search(text) or "mark.story" in text, file


def test_continuous_integration_runs_both_rings() -> None:
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "for target in test stories demo; do" in run
    assert "make stories-again || status=$?" in run
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"-m tests\.ring (\S+|'[^']+')( '\$\(LINT\)')?$", makefile, flags=re.MULTILINE) == [
        ("'not story'", " '$(LINT)'"),
        ("story", ""),
    ]
