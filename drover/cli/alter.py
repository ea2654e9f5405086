"""`drover alter`: move partitions to the replicas of a plan in the stock tool's format."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from drover.cli.altering import alter_options, check_rate_of, make_commands, submit
from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.plan_reading import name_of, plan_file_type, read_plans
from drover.cli.submitting import connect, make_request, require_reason, write_options_of_trial
from drover.events.commands import PartitionTarget
from drover.journal.connection import LogConnection


@click.command()
@click.argument("files", metavar="[PLAN.json]...", nargs=-1, type=plan_file_type)
@click.option("--undo", metavar="PLAN", help="Instead of a file: undo what this plan has completed.")
@click.option(
    "--plan-hash", metavar="HASH", help="Refuse if the cluster is not what `drover plan` made this plan for any more."
)
@alter_options
@click.option("--allow-drover-topics", is_flag=True, help="Move Drover's own topics too.")
@click.option(
    "--allow-emptied-brokers", is_flag=True, help="Send new replicas also to brokers that another open plan empties."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be sent, what a worker would refuse now, and what the rest takes; send nothing.",
)
@write_options_of_trial
@pass_invocation
def alter(
    invocation: Invocation,
    files: tuple[Path, ...],
    undo: str | None,
    plan_hash: str | None,
    *,
    allow_drover_topics: bool,
    allow_emptied_brokers: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Move partitions to the replicas that PLAN.json names (- reads standard input); several files are one plan.

    The file has the format of kafka-reassign-partitions, or is the whole output of its --generate, or Cruise Control's
    JSON. If it says null for a partition's replicas, that partition's move is stopped. With --undo, a new plan takes
    back what PLAN has completed; partitions that have been moved since are refused.
    """
    if bool(files) is (undo is not None):
        raise click.UsageError("give either a PLAN.json or --undo PLAN")
    if plan_hash is not None and len(files) != 1:
        raise click.UsageError("--plan-hash goes with one PLAN.json")
    _check_options(options, dry_run=dry_run)
    plan = read_plans(files) if files else None
    targets = () if plan is None else plan.targets
    if dry_run and undo is None:
        cluster = invocation.cluster_of(invocation.settings())
    else:
        connection, cluster = connect(invocation)
        targets = targets if undo is None else _undone(connection, cluster, undo)
    if plan is not None and plan_hash is not None:
        from drover.cli.plan_hash import hold_to_hash  # noqa: PLC0415 - the planner costs start-up time

        targets = hold_to_hash(invocation, plan, name_of(files), plan_hash)
    request = make_request(invocation, "alter", cluster, options)
    commands = make_commands(
        request,
        targets,
        options,
        allow_drover_topics=allow_drover_topics,
        allow_emptied_brokers=allow_emptied_brokers,
        # Nobody can name another list of what was there before.
        drops_unregistered=undo is not None,
        empties=() if plan is None else plan.empties,
        fills=() if plan is None else plan.fills,
    )
    if dry_run:
        from drover.cli.trying import try_plan  # noqa: PLC0415 - the planner costs start-up time

        try_plan(invocation.settings(), commands, request.output)
        return
    submit(connection, commands, request, follow=options["follow"])


def _check_options(options: Mapping[str, Any], *, dry_run: bool) -> None:
    if dry_run and (options["follow"] or options["no_wait"]):
        raise click.UsageError("--dry-run sends nothing: leave out --follow and --no-wait")
    if options["follow"] and options["no_wait"]:
        raise click.UsageError("--follow waits and --no-wait does not: choose one")
    if not dry_run:
        require_reason(options)
    check_rate_of(options)


def _undone(connection: LogConnection, cluster: str, plan: str) -> tuple[PartitionTarget, ...]:
    from drover.client.undo import read_undo  # noqa: PLC0415 - the Kafka client costs start-up time

    return asyncio.run(read_undo(connection, cluster, plan)).targets()
