"""Puts each deliberate fault into a copy of the source, lets seeds look for it, and writes docs/mutants.md."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.architecture.repository import ROOT
from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS

TABLE = ROOT / "docs" / "mutants.md"
# A fault that a layer's own tests notice need not be met by chance.
MAX_SEEDS, SEEDS_BEFORE_LAYER = 300, 100
STEPS = 500
_COPIED = (
    *("agents", "drover", "events", "projections", "pyproject.toml", "tests/__init__.py"),
    *("tests/architecture", "tests/simulation", "tests/shard", "tests/reassignment", "tests/scheduling"),
    *("tests/throttling", "tests/capability", "tests/healing", "tests/leadership", "tests/adaptation", "tests/runtime"),
)
_HEAD = f"""# Deliberate faults

Tests are only as good as what they notice. `make mutants` puts each fault below into a copy of the source, one at a
time, and runs seeds of the simulation (at most {MAX_SEEDS}, {STEPS} steps each, from seed 0) until a promise is broken.
Where a test of the code's own layer knows the fault, seeds get {SEEDS_BEFORE_LAYER} tries, and then that test is run.
The table is written by that command; the faults themselves are in `tests/simulation/mutants.py`, and a test checks that
the source still has the text that each of them changes. [promises.md](promises.md) says what each promise means.

"""


@dataclass(frozen=True, slots=True)
class Caught:
    """How many seeds it took and what the first failing one said; no number, but a layer, if tests noticed it."""

    mutant: Mutant
    seeds: int | None
    failure: str

    @property
    def told(self) -> str:
        """What the table says."""
        if self.seeds is not None:
            return str(self.seeds)
        return f"`{self.mutant.layer}`" if self.failure else "not caught"


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Copy what the simulation needs to a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="drover-mutant-") as place:
        root = Path(place)
        for name in _COPIED:
            source, target = ROOT / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, target)
        yield root


def hunt(mutant: Mutant) -> Caught:
    """Let seeds look for one fault."""
    with copied_tree() as root:
        mutant.apply(root)
        seeds = SEEDS_BEFORE_LAYER if mutant.layer else MAX_SEEDS
        command = [sys.executable, "-m", "tests.simulation", "hunt", "--seeds", str(seeds), "--steps", str(STEPS)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0 and mutant.layer:
            return _in_its_layer(mutant, root)
    lines = done.stdout.splitlines()
    if done.returncode == 1 and lines:
        return Caught(mutant, int(lines[0]), lines[1])
    assert done.returncode == 0, f"{mutant.name}: {done.stderr[-2000:]}"
    return Caught(mutant, None, "")


def _in_its_layer(mutant: Mutant, root: Path) -> Caught:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.layer]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    return Caught(mutant, None, failed[0] if done.returncode == 1 and failed else "")


def mutate(names: list[str]) -> int:
    """Hunt for every fault, or those that are named, and put what came of it into the table. The exit code."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    found: list[Caught] = []
    with ThreadPoolExecutor(2) as pool:
        for caught in pool.map(hunt, chosen):
            print(f"{caught.mutant.name}: {caught.told}  {caught.failure[:100]}", flush=True)
            found.append(caught)
    rows = {**known_rows(), **{caught.mutant.name: _row(caught) for caught in found}}
    TABLE.write_text(_HEAD + _table(rows), encoding="utf-8")
    return 0 if all(caught.failure for caught in found) else 1


def known_rows() -> dict[str, str]:
    """Return the rows of the table as it stands, by the fault's name."""
    text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    return {row.split("|")[1].strip(): row for row in text.splitlines() if re.match(r"\| [\w-]+ \| `", row)}


def _row(caught: Caught) -> str:
    mutant = caught.mutant
    return f"| {mutant.name} | `{mutant.path}` | {caught.told} | {_promise(caught.failure)} |"


def _table(rows: dict[str, str]) -> str:
    told = [rows[mutant.name] for mutant in MUTANTS if mutant.name in rows]
    cells = [row.split("|")[3].strip() for row in told]
    counts = [int(cell) for cell in cells if cell.isdecimal()]
    noticed = sum(cell != "not caught" for cell in cells)
    middle = f"{median(counts) if counts else 0:g}"
    return "\n".join(
        (
            "| fault | file | seeds until caught | by |",
            "| --- | --- | --- | --- |",
            *told,
            "",
            f"{noticed} of {len(told)} faults are caught, {len(counts)} of them by seeds, at the median by {middle}.",
            "",
        )
    )


def _promise(failure: str) -> str:
    """Name the promise, or the kind of fault that the code itself raised, or the test."""
    if failure.startswith("FAILED"):
        return re.split(r"::| |\[", failure)[2]
    kind, _, rest = failure.partition(": ")
    promise = rest.split(":")[0]
    is_named = re.fullmatch(r"[SL]\d+|R\d+-\d+", promise) is not None
    return promise if kind == "AssertionError" and is_named else kind


if __name__ == "__main__":
    sys.exit(mutate(sys.argv[1:]))
