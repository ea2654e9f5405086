"""Puts each deliberate fault into a copy of the source, lets seeds look for it, and writes docs/mutants.md."""

import os
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
from tests.simulation.mutants import MUTANTS, Mutant

TABLE = ROOT / "docs" / "mutants.md"
MAX_SEEDS = 600
STEPS = 500
_COPIED = ("agents", "drover", "events", "projections", "tests/__init__.py", "tests/architecture", "tests/simulation")
_HEAD = f"""# Deliberate faults

Tests are only as good as what they notice. `make mutants` puts each fault below into a copy of the source, one at a
time, and runs seeds of the simulation (at most {MAX_SEEDS}, {STEPS} steps each, from seed 0) until a promise is broken.
The table is written by that command; the faults themselves are in `tests/simulation/mutants.py`, and a test checks that
the source still has the text that each of them changes. What a promise means stands in [simulation.md](simulation.md).

"""


@dataclass(frozen=True, slots=True)
class Caught:
    """How many seeds it took, and what the first failing one said; None if none failed."""

    mutant: Mutant
    seeds: int | None
    failure: str


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Copy what the simulation needs to a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="drover-mutant-") as place:
        root = Path(place)
        for name in _COPIED:
            source, target = ROOT / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "golden"))
            elif source.exists():
                shutil.copy(source, target)
        yield root


def hunt(mutant: Mutant) -> Caught:
    """Let seeds look for one fault."""
    with copied_tree() as root:
        mutant.apply(root)
        command = [sys.executable, "-m", "tests.simulation", "hunt", "--seeds", str(MAX_SEEDS), "--steps", str(STEPS)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode == 1 and lines:
        return Caught(mutant, int(lines[0]), lines[1])
    assert done.returncode == 0, f"{mutant.name}: {done.stderr[-2000:]}"
    return Caught(mutant, None, "")


def mutate(names: list[str]) -> int:
    """Hunt for every fault, or those that are named; writes the table if it was every one. The exit code."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    found: list[Caught] = []
    with ThreadPoolExecutor(2) as pool:
        for caught in pool.map(hunt, chosen):
            print(f"{caught.mutant.name}: {caught.seeds or 'NOT CAUGHT'}  {caught.failure[:100]}", flush=True)
            found.append(caught)
    if not names:
        TABLE.write_text(_HEAD + _table(found), encoding="utf-8")
    return 0 if all(caught.seeds is not None for caught in found) else 1


def _table(found: list[Caught]) -> str:
    rows = ["| fault | file | seeds until caught | by |", "| --- | --- | --- | --- |"]
    for caught in found:
        by = _promise(caught.failure)
        rows.append(f"| {caught.mutant.name} | `{caught.mutant.path}` | {caught.seeds or 'not caught'} | {by} |")
    counts = [caught.seeds for caught in found if caught.seeds is not None]
    rows.append("")
    rows.append(f"{len(counts)} of {len(found)} faults are caught; median of the seeds needed: {median(counts):g}.")
    return "\n".join(rows) + "\n"


def _promise(failure: str) -> str:
    """Name the promise, or the kind of fault that the code itself raised."""
    kind, _, rest = failure.partition(": ")
    promise = rest.split(":")[0]
    return promise if kind == "AssertionError" and promise[:1] in {"S", "L"} and len(promise) <= 3 else kind


if __name__ == "__main__":
    sys.exit(mutate(sys.argv[1:]))
