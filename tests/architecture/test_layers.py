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


def layers() -> list[list[str]]:
    """The layers of the contract, the top first, each with its packages and modules."""
    (contract,) = [
        contract
        for contract in toml("pyproject.toml")["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    return [re.findall(r"drover\.\w+", layer) for layer in contract["layers"]]


def test_every_part_of_drover_has_a_layer() -> None:
    named = {name for layer in layers() for name in layer}
    parts = {f"drover.{path.stem}" for path in (ROOT / "drover").iterdir() if path.suffix == ".py" or is_package(path)}
    assert parts - {"drover.__init__"} == named


def test_the_table_of_layers_has_every_package_in_the_order_of_the_contract() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("| layer | what it holds |")[1].split("\n\n")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    packages = [f"drover.{name}" for cell in first_cells for name in re.findall(r"`(?:drover/)?(\w+)/`", cell)]
    rank = {name: number for number, layer in enumerate(layers()) for name in layer}
    assert [rank[name] for name in packages] == sorted(rank[name] for name in packages)
    folders = {f"drover.{path.name}" for path in (ROOT / "drover").iterdir() if is_package(path)}
    assert set(packages) == folders


def is_package(path: Path) -> bool:
    return (path / "__init__.py").exists()
