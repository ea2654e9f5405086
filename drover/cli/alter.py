"""`drover alter`: move partitions to the replicas of a plan in the stock tool's format."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from drover.cli.exits import ExitCode
from drover.cli.help import PLANS, did_you_mean, drover_command, plan_option
from drover.cli.invocation import Invocation, all_options, pass_invocation
from drover.cli.output import console, listed, plural, print_document, say, table
from drover.cli.parameters import RATE, WINDOWS, check_rate
from drover.cli.plan_file import name_of, plan_file_type, read_plans
from drover.cli.submission import (
    NO_ADDITIONS,
    Request,
    checked,
    connect,
    exit_code,
    make_request,
    plain,
    print_answers,
    require_reason,
    send,
    write_options_of_trial,
)
from drover.client.answers import Answer
from drover.client.commands import split
from drover.client.undo import read_undo
from drover.events.codec import encode_command
from drover.events.commands import Alter, PartitionTarget
from drover.events.outcomes import joined
from drover.events.plans import Priority, Stepping
from drover.events.refusals import RefusalCode
from drover.journal.connection import LogConnection

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


# The options of a plan.
alter_options = all_options(
    plan_option(
        "--plan",
        shell_complete=PLANS,
        metavar="NAME",
        help="The plan's name; several commands may share it.  [default: the id]",
    ),
    plan_option("--throttle", type=RATE, metavar="RATE", help="Per broker: 10MB/s, 50MiB, or bytes per second."),
    plan_option(
        "--throttle-may-rise-to",
        type=RATE,
        metavar="RATE",
        help="Drover may raise the throttle up to this rate while copies cannot keep up with the writes.",
    ),
    plan_option("--force", is_flag=True, help="Accept a throttle below 1 kB/s or above 100 GB/s."),
    plan_option(
        "--priority",
        type=click.Choice([priority.value for priority in Priority]),
        help="The plan's share of free slots: ten times that of the next lower priority.  [default: normal]",
    ),
    plan_option(
        "--windows",
        type=WINDOWS,
        metavar="TEXT",
        help='When steps of the plan may begin: "mon-fri 22:00-05:00 Europe/Berlin".  [default: at any time]',
    ),
    plan_option(
        "--stepping",
        type=click.Choice([stepping.value for stepping in Stepping]),
        help="How partitions get to their targets (KIP-435): grow adds replicas in steps and drops the old ones at the "
        "end; swap drops in each step as many as it adds; single does it in one call.  [default: the cluster's]",
    ),
    plan_option("--queue", is_flag=True, help="Queue behind everything that was accepted before (KIP-236)."),
    plan_option("--follow", is_flag=True, help="Show the plan's progress until it ends."),
)


def check_rate_of(options: Mapping[str, Any]) -> None:
    """Refuse a throttle that looks like a mistake of units, unless `--force` is given."""
    if options["throttle"] is None:
        if options["throttle_may_rise_to"] is not None:
            raise click.UsageError("--throttle-may-rise-to needs --throttle, from which it rises")
        return
    try:
        check_rate(options["throttle"], force=options["force"])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--throttle'") from None
    if options["throttle_may_rise_to"] is not None and options["throttle_may_rise_to"] < options["throttle"]:
        raise click.UsageError("--throttle-may-rise-to is below --throttle, from which it rises")


def make_commands(
    request: Request, targets: Sequence[PartitionTarget], options: dict[str, Any], **fields: Any
) -> tuple[Alter, ...]:
    """Make the commands that carry these partitions; `options` are those of `alter_options`.

    `fields` are further fields of the command: its permissions, and the brokers that the plan empties and fills.
    """
    whole = Alter(
        **request.envelope,
        partitions=tuple(targets),
        plan=options["plan"],
        throttle_bytes_per_second=options["throttle"],
        throttle_may_rise_to=options["throttle_may_rise_to"],
        stepping=None if options["stepping"] is None else Stepping(options["stepping"]),
        priority=None if options["priority"] is None else Priority(options["priority"]),
        windows=options["windows"],
        queue=options["queue"],
        **fields,
    )
    return split(whole)


def submit(
    connection: LogConnection,
    commands: Sequence[Alter],
    request: Request,
    *,
    follow: bool,
    additions: Mapping[str, Any] = NO_ADDITIONS,
) -> None:
    """Send the commands of one plan, print their outcomes and exit with their code.

    In a document for programs, `additions` stand before the outcomes.
    """
    if follow and request.timeout_s is None:
        raise click.UsageError("--follow and --no-wait exclude each other: choose one")
    if len(commands) > 1:
        say(f"This takes {len(commands)} commands, {commands[0].id} to {commands[-1].id}.", err=True)
    answers = _as_one(send(connection, commands, request))
    if request.timeout_s is None:
        return
    print_answers(answers, request.output, additions)
    _suggest_topics(answers)
    code = exit_code(answers)
    if follow and any(answer.outcome.accepted for answer in answers):
        from drover.cli.status import follow_plan  # noqa: PLC0415 - its views cost start-up time

        code = max(code, follow_plan(connection, request.cluster, commands[0].plan_name, request.output))
    raise click.exceptions.Exit(code)


def _suggest_topics(answers: Sequence[Answer]) -> None:
    """Name the topics of the cluster that are like those which it does not have."""
    unknown = {
        refusal.topic
        for answer in answers
        for refusal in answer.outcome.refusals
        if refusal.code is RefusalCode.UNKNOWN_TOPIC_OR_PARTITION and refusal.topic is not None
    }
    if not unknown:
        return
    from drover.cli.completion import names  # noqa: PLC0415 - Kafka's client costs start-up time

    topics = names("topics", click.get_current_context(), "")
    for topic in sorted(unknown.difference(topics)):
        near = did_you_mean(topic, topics)
        if near:
            say(f"There is no topic {topic}. {near}", err=True)


def _as_one(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Join the answers to a plan that was sent in several commands into one; `--no-wait` has no answers."""
    if len(answers) < 2:
        return answers
    whole = joined([answer.outcome for answer in answers])
    return (replace(answers[-1], outcome=whole, repeated=all(answer.repeated for answer in answers)),)


def show_commands(commands: Sequence[Alter], output: str, additions: Mapping[str, Any] = NO_ADDITIONS) -> ExitCode:
    """Print the commands instead of sending them; in a document for programs, `additions` stand first."""
    for command in commands:
        checked(command)
    if output != "table":
        rows = [plain(command) for command in commands]
        print_document({"commands": rows, **additions}, rows, output)
        return ExitCode.DONE
    lines = [_target_cells(target) for command in commands for target in command.partitions]
    console().print(table(("partition", "replicas", "expected now"), lines))
    count = sum(len(command.partitions) for command in commands)
    size = sum(len(encode_command(command)) for command in commands)
    say(
        f"Would send {plural(count, 'partition')} in {plural(len(commands), 'command')} ({size:,} bytes) as plan "
        f"{commands[0].plan_name} to cluster {commands[0].cluster}. Nothing was sent.",
        err=True,
    )
    return ExitCode.DONE


def _target_cells(target: PartitionTarget) -> tuple[str, str, str]:
    replicas = "stop its move" if target.replicas is None else listed(target.replicas)
    asserted = "" if target.original_replicas is None else listed(target.original_replicas)
    return str(target.key), replicas, asserted


@drover_command(
    example="drover alter plan.json --plan friday --throttle 50MB/s --reason 'drain broker 3' --follow\n"
    "drover alter --undo friday --reason 'latency is worse'"
)
@click.argument("files", metavar="[PLAN.json]...", nargs=-1, type=plan_file_type)
@click.option(
    "--undo", shell_complete=PLANS, metavar="PLAN", help="Instead of a file: undo what this plan has completed."
)
@click.option(
    "--plan-hash", metavar="HASH", help="Refuse if the cluster has changed since `drover plan` made this plan."
)
@alter_options
@click.option("--allow-drover-topics", is_flag=True, help="Move Drover's own topics too.")
@click.option(
    "--allow-emptied-brokers", is_flag=True, help="Also add replicas to brokers that another open plan empties."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Send nothing; show the commands, what a worker would refuse now, and the cost of the rest.",
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
    """Move partitions to the replicas that PLAN.json names (- reads standard input); several files make one plan.

    The file may be in the format of kafka-reassign-partitions, the whole output of its --generate, or Cruise Control's
    JSON. Where a partition's replicas are null, its move is stopped. With --undo, a new plan reverts the moves that
    PLAN has completed; partitions that have been moved since are refused.
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
        from drover.cli.dry_run import hold_to_hash  # noqa: PLC0415 - the planner costs start-up time

        targets = hold_to_hash(invocation, plan, name_of(files), plan_hash)
    request = make_request(invocation, "alter", cluster, options)
    commands = make_commands(
        request,
        targets,
        options,
        allow_drover_topics=allow_drover_topics,
        allow_emptied_brokers=allow_emptied_brokers,
        # As `Undo.command` does, for the same reason.
        drops_unregistered=undo is not None,
        empties=() if plan is None else plan.empties,
        fills=() if plan is None else plan.fills,
    )
    if dry_run:
        from drover.cli.dry_run import try_plan  # noqa: PLC0415 - the planner costs start-up time

        try_plan(invocation.settings(), commands, request.output)
        return
    submit(connection, commands, request, follow=options["follow"])


def _check_options(options: Mapping[str, Any], *, dry_run: bool) -> None:
    if dry_run and (options["follow"] or options["no_wait"]):
        raise click.UsageError("--dry-run sends nothing: leave out --follow and --no-wait")
    if options["follow"] and options["no_wait"]:
        raise click.UsageError("--follow and --no-wait exclude each other: choose one")
    if not dry_run:
        require_reason(options)
    check_rate_of(options)


def _undone(connection: LogConnection, cluster: str, plan: str) -> tuple[PartitionTarget, ...]:

    undo = asyncio.run(read_undo(connection, cluster, plan))
    targets = undo.targets()
    for later, count in undo.later_plans().items():
        say(
            f"Plan {later} has moved {plural(count, 'partition')} since: unless they are back where plan {plan} left "
            f"them, they are refused. Undo it first: drover alter --undo {later}",
            err=True,
        )
    return targets
