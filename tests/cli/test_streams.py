"""Standard input and output that are closed, full, or not text: one line and an exit code, and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT
from tests.cli.models import broker, write_model

CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'
PLAN = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "drover.toml").write_text(CONFIG)
    return write_model(tmp_path / "model.json")


def shell(line: str, directory: Path, *arguments: str, given: bytes = b"", **variables: str) -> tuple[int, str]:
    """Run `drover` with arguments by a line of shell, where it stands for `"$@"`; return its code and its errors."""
    done = subprocess.run(
        ("sh", "-c", line, "sh", sys.executable, "-m", "drover", *arguments), input=given, capture_output=True,
        check=False, cwd=directory, env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_full_disk_is_told_in_one_line(output: str, model: str, tmp_path: Path) -> None:
    code, said = shell('"$@" >/dev/full', tmp_path, "plan", "balance", "--model", model, "-o", output)
    assert (code, said) == (1, "Error: the output of this command cannot be written: No space left on device\n")


@pytest.mark.parametrize("output", ["table", "yaml"])
def test_a_closed_standard_output_is_no_fault_of_a_command_that_only_shows(
    output: str, model: str, tmp_path: Path
) -> None:
    code, said = shell('"$@" >&-', tmp_path, "describe", "--include-internal", "--model", model, "-o", output)
    assert (code, said) == (0, "")


def test_a_directory_that_is_gone_is_told_in_one_line(model: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    config = str(tmp_path / "drover.toml")
    code, said = shell('cd gone && rmdir "$PWD" && "$@"', tmp_path, "progress", "--config", config)
    assert (code, said) == (2, "Error: the current directory no longer exists: change to another one\n")


@pytest.mark.parametrize("output", ["table", "jsonl", "yaml"])
def test_what_the_terminals_encoding_lacks_is_escaped(output: str, tmp_path: Path) -> None:
    rack = "m\u00fcnchen \u6771\u4eac \U0001f600"
    (tmp_path / "drover.toml").write_text(CONFIG)
    model = write_model(tmp_path / "model.json", brokers=tuple(broker(number, rack) for number in range(1, 4)))
    describe = ("describe", "--model", model, "-o", output)
    code, said = shell('"$@" >printed', tmp_path, *describe, PYTHONIOENCODING="latin-1")
    assert (code, said) == (0, "")
    printed = (tmp_path / "printed").read_text(encoding="latin-1")
    assert "\\u6771\\u4eac" in printed.lower()
    if output == "jsonl":
        assert [json.loads(line)["rack"] for line in printed.splitlines()] == [rack] * 3


def test_a_plan_for_standard_output_that_is_full_or_closed_is_not_taken_for_written(model: str, tmp_path: Path) -> None:
    plan = ("plan", "drain", "3", "--include-internal", "--model", model, "--out", "-")
    code, said = shell('"$@" >/dev/full', tmp_path, *plan)
    assert (code, "Wrote the plan" in said, "Traceback" in said) == (1, False, False), said
    code, said = shell('"$@" >&-', tmp_path, *plan)
    assert code == 2
    assert said.endswith("the plan - cannot be written: standard output is closed\n")


def test_a_plan_from_standard_input_that_is_closed_is_wrong_usage(model: str, tmp_path: Path) -> None:
    code, said = shell('"$@" <&-', tmp_path, "plan", "check", "-", "--model", model)
    assert (code, said) == (2, "Error: the plan - cannot be read: standard input is closed\n")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_standard_input_that_is_no_text_is_wrong_usage(locale: str, model: str, tmp_path: Path) -> None:
    given = json.dumps(PLAN).encode().replace(b'"t"', b'"\xff"')
    code, said = shell('"$@"', tmp_path, "alter", "-", "--reason", "x", "--dry-run", given=given, LC_ALL=locale)
    assert code == 2
    assert said.startswith("Error: the plan - is not text in UTF-8 or UTF-16")
