"""`drover plan check`: the judgement of a plan that somebody else made."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from drover.cli.exits import ExitCode
from drover.cli.invocation import Invocation
from drover.cli.model_source import read_model, source_of
from drover.cli.plan_file import lists_of
from drover.cli.plan_reading import name_of, read_plans
from drover.cli.planning import disk_limit_of, save_proposal, show, targets_of
from drover.client.views.proposal_rows import Request
from drover.planner.assess import assess
from drover.planner.goals import Limits
from drover.planner.judgement import broken, emptied


def check_plan(invocation: Invocation, files: Sequence[Path], options: dict[str, Any]) -> None:
    """Print what a plan would do, and what it breaks."""
    name = name_of(files)
    lists = lists_of(read_plans(files), name)
    source = source_of(options)
    model = read_model(invocation, source, with_log=True)
    proposal = assess(model, lists, Limits(disk_limit=disk_limit_of(invocation, options)))
    cluster = None if source.file is not None else invocation.cluster_of(invocation.settings())
    request = Request(f"check {name}", cluster, options["throttle"])
    if options["to"] is not None:
        drained = replace(request, leaving=emptied(proposal.brokers))
        save_proposal(options["to"], drained, proposal, targets_of(proposal), model)
    show(proposal, request, model, options)
    raise click.exceptions.Exit(ExitCode.GUARDED if broken(proposal.unmet) else ExitCode.DONE)
