"""The import contracts of pyproject.toml hold; `make lint` checks the same."""

import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.repository import ROOT
from tests.architecture.test_tooling import toml


def test_every_import_contract_is_kept() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_every_part_of_drover_has_a_layer() -> None:
    (layers,) = [
        contract["layers"]
        for contract in toml("pyproject.toml")["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    named = {name for layer in layers for name in re.findall(r"drover\.\w+", layer)}
    parts = {f"drover.{path.stem}" for path in (ROOT / "drover").iterdir() if path.suffix == ".py" or is_package(path)}
    assert parts - {"drover.__init__"} == named


def is_package(path: Path) -> bool:
    return (path / "__init__.py").exists()
