"""The units run commands that there are, with settings that there are, and systemd takes them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from drover.settings.sources import load_settings
from tests.architecture.repository import ROOT
from tests.docker.parsing import takes

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
PROGRAM = "/opt/drover/bin/drover"


def read(unit: Path) -> dict[str, dict[str, list[str]]]:
    """The sections of a unit; a key may be there several times."""
    found: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in unit.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            section = match[1]
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(section, {}).setdefault(key, []).append(value)
    return found


def test_there_is_a_unit_for_each_process() -> None:
    assert [unit.stem for unit in UNITS] == ["drover-page", "drover-projection", "drover-spark", "drover-worker"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_a_command_that_drover_takes(unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = read(unit)["Service"]
    (start,) = service["ExecStart"]
    program, *words = start.split()
    assert program == PROGRAM
    takes(words)
    # It may not gain rights, it is started again, and it has time to stop in order: a worker needs 15 s.
    assert {"DynamicUser", "NoNewPrivileges", "ProtectSystem", "CapabilityBoundingSet"} <= service.keys()
    assert service["Restart"] == ["on-failure"]
    assert int(service["TimeoutStopSec"][0]) > 15
    variables = dict(word.split("=", 1) for line in service["Environment"] for word in line.split())
    file = Path(variables.pop("DROVER_CONFIG"))
    assert file == Path("/etc/drover/drover.toml")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    mine = tmp_path / "drover.toml"
    mine.write_text('[log]\nbootstrap = "kafka:9092"\n', encoding="utf-8")
    directory = load_settings(mine).spark.directory
    if "StateDirectory" in service:
        assert directory == f"/var/lib/{service['StateDirectory'][0]}"
        assert variables["DROVER_CACHE_DIR"] == f"/var/cache/{service['CacheDirectory'][0]}"


def test_systemd_agrees_where_it_is_installed(tmp_path: Path) -> None:
    """The tests above have read the same files. The program is not installed here: another one stands in for it."""
    program = shutil.which("systemd-analyze")
    for unit in UNITS if program is not None else ():
        copy = tmp_path / unit.name
        copy.write_text(unit.read_text(encoding="utf-8").replace(PROGRAM, "/bin/echo"), encoding="utf-8")
        done = subprocess.run(
            [str(program), "verify", str(copy)], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
