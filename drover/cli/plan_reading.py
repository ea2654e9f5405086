"""Plans from the files that a command names: several files are one plan."""

from collections.abc import Sequence
from pathlib import Path

import click

from drover.cli.exits import ExitCode
from drover.cli.files import read_text
from drover.cli.output import say
from drover.cli.parameters import NamedPath
from drover.cli.plan_file import PlanFile, parse_plan
from drover.errors import ConfigurationError

plan_file_type = NamedPath(dir_okay=False, allow_dash=True)


def read_plans(files: Sequence[Path]) -> PlanFile:
    """Read the files as one plan; `-` is standard input. Only a file that is alone keeps its proposal.

    Ends the command with `DONE` if no file asks for a move, as an answer of Cruise Control may. Raises
    `ConfigurationError` for a file that is no plan, and for a partition that two of them name.
    """
    if len(set(files)) < len(files):
        raise click.UsageError("a PLAN.json is named twice; - is standard input, which can be read once")
    plans = [parse_plan(read_text(file, "plan"), str(file)) for file in files]
    named: dict[object, Path] = {}
    for file, plan in zip(files, plans, strict=True):
        for target in plan.targets:
            if target.key in named:
                raise ConfigurationError(f"{named[target.key]} and {file} both name partition {target.key}: choose one")
            named[target.key] = file
    if not named:
        say(f"{name_of(files)} asks for no move: there is nothing to do.", err=True)
        raise click.exceptions.Exit(ExitCode.DONE)
    if len(plans) == 1:
        return plans[0]
    return PlanFile(
        tuple(target for plan in plans for target in plan.targets),
        empties=tuple(sorted({broker for plan in plans for broker in plan.empties})),
        fills=tuple(sorted({broker for plan in plans for broker in plan.fills})),
    )


def name_of(files: Sequence[Path]) -> str:
    """Return what messages call these files."""
    return ", ".join(map(str, files))
