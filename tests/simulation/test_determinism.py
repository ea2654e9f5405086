"""S18: the same seed makes the same records and calls, in another process and under another hash seed too."""

import os
import subprocess
import sys

from tests.architecture.repository import ROOT
from tests.simulation.run import run_script, run_seed

SEEDS = range(1000, 1010)
STEPS = 500
PROGRAM = f"""
from tests.simulation.run import run_seed
print(*(run_seed(seed, {STEPS}).trace for seed in range({SEEDS.start}, {SEEDS.stop})))
"""


def traces(hash_seed: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.split()


def test_two_processes_with_different_hash_seeds_do_exactly_the_same() -> None:
    ours = [run_seed(seed, STEPS).trace for seed in SEEDS]
    assert traces("1") == ours
    assert traces("2") == ours
    assert len(set(ours)) == len(ours), "the trace tells seeds apart"


def test_the_recorded_script_does_what_the_seed_did() -> None:
    drawn = run_seed(SEEDS.start, STEPS)
    played = run_script(drawn.script)
    assert played.trace == drawn.trace
    assert played.failure is None
