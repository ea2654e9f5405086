"""`python -m tests.simulation`: run one seed again and shrink it, play a script, or soak for hours."""

import argparse
import sys
from pathlib import Path

from msgspec import json

from tests.simulation.run import Finished, Script, run_script, run_seed
from tests.simulation.shrink import shrink
from tests.simulation.soak import soak


def told(finished: Finished) -> int:
    """Print how it went; the exit code."""
    print(f"{finished.steps} steps, {finished.virtual_ms / 1000:.0f} s of virtual time, trace {finished.trace}")
    print(finished.failure or "every promise held")
    return 0 if finished.failure is None else 1


def one_seed(number: int, steps: int, *, save: Path | None) -> int:
    """Run a seed; when it fails, shrink it and print what is left."""
    finished = run_seed(number, steps)
    code = told(finished)
    if finished.failure is not None:
        script = shrink(finished.script)
        print(f"shrunk from {len(finished.script.actions)} actions to {len(script.actions)}:\n{script}")
        print(run_script(script).failure)
        if save is not None:
            save.write_bytes(json.encode(script))
    return code


def hunt(seeds: int, steps: int) -> int:
    """Run seeds until one fails; print how many that took, and what it said."""
    for number in range(seeds):
        failure = run_seed(number, steps).failure
        if failure is not None:
            print(number + 1)
            print(" ".join(failure.split()))
            return 1
    return 0


def main(arguments: list[str]) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    seed = commands.add_parser("seed", help="run one seed; a failing one is shrunk")
    seed.add_argument("number", type=int)
    seed.add_argument("--steps", type=int, default=500)
    seed.add_argument("--save", type=Path, help="where to write the shrunk script")
    script = commands.add_parser("script", help="play a saved script")
    script.add_argument("file", type=Path)
    hunting = commands.add_parser("hunt", help="run seeds from 0 on until one fails")
    hunting.add_argument("--seeds", type=int, default=200)
    hunting.add_argument("--steps", type=int, default=500)
    soaking = commands.add_parser("soak", help="run many seeds")
    soaking.add_argument("--first-seed", type=int, help="by default one that no soak has run")
    soaking.add_argument("--seeds", type=int, default=2000)
    soaking.add_argument("--steps", type=int, default=2000)
    soaking.add_argument("--hours", type=float, default=0.0, help="go on with further seeds for so long")
    soaking.add_argument("--processes", type=int, help="by default two")
    given = parser.parse_args(arguments)
    if given.command == "seed":
        return one_seed(given.number, given.steps, save=given.save)
    if given.command == "script":
        return told(run_script(json.decode(given.file.read_bytes(), type=Script)))
    if given.command == "hunt":
        return hunt(given.seeds, given.steps)
    return soak(given.first_seed, given.seeds, given.steps, given.hours, given.processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
