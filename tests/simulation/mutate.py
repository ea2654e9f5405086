"""Puts each deliberate fault into a copy of the source, lets seeds look for it, and writes docs/mutants.md."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.architecture.repository import ROOT
from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS

PAGE = ROOT / "docs" / "mutants.md"
# A fault that a layer's own tests notice need not be met by chance.
MAX_SEEDS, SEEDS_BEFORE_LAYER = 300, 100
STEPS = 500
_COPIED = (
    *("agents", "drover", "events", "projections", "pyproject.toml", "tests/__init__.py"),
    *("tests/architecture", "tests/simulation", "tests/shard", "tests/reassignment", "tests/scheduling"),
    *("tests/throttling", "tests/capability", "tests/healing", "tests/leadership", "tests/adaptation", "tests/runtime"),
)
_HEAD = f"""# Deliberate faults

Tests are only as good as the faults that they notice. `make mutants` puts each fault below into a copy of the source,
one at a time. Seeds of the simulation ({STEPS} steps each) run until a promise is broken: at most {MAX_SEEDS}, or
{SEEDS_BEFORE_LAYER} where tests of the code's own layer know the fault; then those tests run. The command writes this
page. The faults are in `tests/simulation/mutants.py`, and [promises.md](promises.md) says what each promise means.

A number after a name says how many seeds it took. A name without one is noticed by the tests of its layer.

| code | faults |
| --- | --- |
"""
NOT_CAUGHT = "not-caught"


@dataclass(frozen=True, slots=True)
class Caught:
    """How many seeds it took and what the first failing one said; no number, but a layer, if tests noticed it."""

    mutant: Mutant
    seeds: int | None
    failure: str

    @property
    def entry(self) -> str:
        """The fault's name as the page shows it."""
        if self.seeds is not None:
            return f"{self.mutant.name}:{self.seeds}"
        return self.mutant.name if self.failure else f"{self.mutant.name}:{NOT_CAUGHT}"


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
    """Hunt for every fault, or for those that are named, and write the page; returns the exit code."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    entries = known_entries()
    is_caught = True
    with ThreadPoolExecutor(2) as pool:
        for caught in pool.map(hunt, chosen):
            print(f"{caught.entry}  {caught.failure[:100]}", flush=True)
            entries[caught.mutant.name] = caught.entry
            is_caught = is_caught and bool(caught.failure)
    PAGE.write_text(page(entries), encoding="utf-8")
    return 0 if is_caught else 1


def known_entries() -> dict[str, str]:
    """Return the entries of the page as it stands, by the fault's name."""
    rows = re.findall(r"^\| `[\w/]+` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {entry.partition(":")[0]: entry for row in rows for entry in row.split(", ")}


def page(entries: Mapping[str, str]) -> str:
    """Write the page: for each folder its faults, and in the end their counts."""
    folders: dict[str, list[str]] = {}
    for mutant in MUTANTS:
        if mutant.name in entries:
            folders.setdefault(str(Path(mutant.path).parent), []).append(entries[mutant.name])
    listed = [entry for folder in folders.values() for entry in folder]
    seeds = [int(number) for _, _, number in (entry.partition(":") for entry in listed) if number.isdecimal()]
    caught = sum(not entry.endswith(NOT_CAUGHT) for entry in listed)
    rows = "".join(f"| `{folder}` | {', '.join(folders[folder])} |\n" for folder in sorted(folders))
    middle = f"{median(seeds or [0]):g}"
    return (
        f"{_HEAD}{rows}\n{caught} of {len(listed)} faults are caught, {len(seeds)} of them by seeds, "
        f"at the median by {middle}.\n"
    )


if __name__ == "__main__":
    sys.exit(mutate(sys.argv[1:]))
