"""A failure shows what the workers of its test logged."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.architecture.repository import ROOT
from tests.worker_logs import SHOWN_LINES, ends_of_logs

FAILING = """
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Drover:
    directory: Path
    workers: dict[str, object] = field(default_factory=dict)


@pytest.fixture
def drover(tmp_path):
    (tmp_path / "solo.log").write_text("the first look took 12 s")
    return Drover(tmp_path)


def test_it_works(drover):
    assert {outcome}
"""


@dataclass
class Drover:
    directory: Path
    workers: dict[str, object] = field(default_factory=dict)


def run(directory: Path, outcome: str) -> str:
    (directory / "test_failing.py").write_text(FAILING.replace("{outcome}", outcome))
    command = (sys.executable, "-m", "pytest", "-p", "tests.worker_logs", "-p", "no:cacheprovider", "test_failing.py")
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False).stdout


def test_a_test_that_fails_shows_the_end_of_each_workers_log(tmp_path: Path) -> None:
    assert "the first look took 12 s" in run(tmp_path, "False")
    assert "the first look took 12 s" not in run(tmp_path, "True")


def test_of_a_long_log_only_the_end_is_shown_and_once_for_two_names_of_one_drover(tmp_path: Path) -> None:
    (tmp_path / "solo.log").write_text("".join(f"line {number}\n" for number in range(SHOWN_LINES + 1)))
    (tmp_path / "rival.log").write_bytes(b"\xff")
    drover = Drover(tmp_path)
    rival, solo = ends_of_logs([drover, "something else", drover])
    assert rival == ("the end of rival.log", "\N{REPLACEMENT CHARACTER}")
    assert solo[0] == "the end of solo.log"
    assert solo[1].splitlines() == [f"line {number}" for number in range(1, SHOWN_LINES + 1)]


def test_a_test_that_makes_its_drover_itself_shows_the_logs_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "alpha.log").write_text("shards are owned")
    assert list(ends_of_logs([tmp_path])) == [("the end of alpha.log", "shards are owned")]


def test_a_test_without_a_drover_shows_no_log(tmp_path: Path) -> None:
    assert list(ends_of_logs(["text", 1, None, tmp_path, tmp_path / "gone"])) == []
