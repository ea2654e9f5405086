"""Sending a plan and telling what became of it: the half that `drover alter` and `drover plan` share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from drover.cli.exits import ExitCode
from drover.cli.output import console, plural, print_document, say, table
from drover.cli.parameters import Rate, check_rate
from drover.cli.plan_file import AlterRequest, alter_commands
from drover.cli.submitting import Request, checked, plain, send
from drover.client.answers import Answer
from drover.events.codec import encode_command
from drover.events.commands import Alter, PartitionTarget
from drover.events.outcomes import joined
from drover.events.plans import Priority, Stepping
from drover.journal.connection import LogConnection

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
NOTHING: Mapping[str, Any] = {}


def alter_options(command: Decorated) -> Decorated:
    """Add the options of a plan: name, throttle and how far that may rise, stepping, priority, queue, following."""
    for option in (
        click.option("--follow", is_flag=True, help="Show the plan's progress until it ends."),
        click.option("--queue", is_flag=True, help="Wait behind everything that was accepted before (KIP-236)."),
        click.option(
            "--stepping",
            type=click.Choice([stepping.value for stepping in Stepping]),
            help="How partitions go to their targets (KIP-435): grow adds replicas one after the other and drops at "
            "the end; swap drops as many as it has added; single is one call.  [default: the cluster's]",
        ),
        click.option(
            "--priority",
            type=click.Choice([priority.value for priority in Priority]),
            help="How much of what is free the plan takes: ten times as much as one below it.  [default: normal]",
        ),
        click.option("--force", is_flag=True, help="Take a throttle under 1 kB/s or over 100 GB/s for what is meant."),
        click.option(
            "--throttle-may-rise-to",
            type=Rate(),
            metavar="RATE",
            help="Drover may raise the throttle so far while copies cannot keep up with what is written.",
        ),
        click.option("--throttle", type=Rate(), metavar="RATE", help="Per broker: 10MB/s, 50MiB, or bytes per second."),
        click.option(
            "--plan", metavar="NAME", help="The plan's name; several commands may share one.  [default: the id]"
        ),
    ):
        command = option(command)
    return command


def check_rate_of(options: Mapping[str, Any]) -> None:
    """Refuse a throttle that is probably a mistake of units, unless it is forced."""
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

    `fields` are further ones of `AlterRequest`: what is allowed, and the brokers that the plan empties and fills.
    """
    asked = AlterRequest(
        id=request.id,
        cluster=request.cluster,
        by=request.by,
        reason=request.reason,
        plan=options["plan"],
        throttle_bytes_per_second=options["throttle"],
        throttle_may_rise_to=options["throttle_may_rise_to"],
        stepping=None if options["stepping"] is None else Stepping(options["stepping"]),
        priority=None if options["priority"] is None else Priority(options["priority"]),
        queue=options["queue"],
        **fields,
    )
    return alter_commands(asked, targets)


def submit(
    connection: LogConnection,
    commands: Sequence[Alter],
    request: Request,
    *,
    follow: bool,
    told: Mapping[str, Any] = NOTHING,
) -> None:
    """Send the commands of one plan, print their outcomes and end with their exit code.

    `told` goes into the document for programs before the outcomes.
    """
    if follow and request.timeout_s is None:
        raise click.UsageError("--follow waits and --no-wait does not: choose one")
    if len(commands) > 1:
        say(f"This takes {len(commands)} commands, {commands[0].id} to {commands[-1].id}.", err=True)
    answers = _as_one(send(connection, commands, request))
    from drover.cli.answers import exit_code, print_answers  # noqa: PLC0415 - not before the command is out

    if request.timeout_s is None:
        return
    print_answers(answers, request.output, told)
    code = exit_code(answers)
    if follow and any(answer.outcome.accepted for answer in answers):
        from drover.cli.following import follow_plan  # noqa: PLC0415

        code = max(code, follow_plan(connection, request.cluster, commands[0].plan_name, request.output))
    raise click.exceptions.Exit(code)


def _as_one(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Return one answer for a plan that was sent in several commands; nothing where none is waited for."""
    if len(answers) < 2:
        return answers
    whole = joined([answer.outcome for answer in answers])
    return (replace(answers[-1], outcome=whole, repeated=all(answer.repeated for answer in answers)),)


def show_commands(commands: Sequence[Alter], output: str, told: Mapping[str, Any] = NOTHING) -> ExitCode:
    """Print what would be sent, and send nothing; `told` goes into the document for programs."""
    for command in commands:
        checked(command)
    if output != "table":
        rows = [plain(command) for command in commands]
        print_document({"commands": rows, **told}, rows, output)
        return ExitCode.DONE
    lines = [_line(target) for command in commands for target in command.partitions]
    console().print(table(("partition", "replicas", "expected now"), lines))
    count = sum(len(command.partitions) for command in commands)
    size = sum(len(encode_command(command)) for command in commands)
    say(
        f"Would send {plural(count, 'partition')} in {plural(len(commands), 'command')} ({size:,} bytes) as plan "
        f"{commands[0].plan_name} to cluster {commands[0].cluster}. Nothing was sent.",
        err=True,
    )
    return ExitCode.DONE


def _line(target: PartitionTarget) -> tuple[str, str, str]:
    replicas = "stop its move" if target.replicas is None else ", ".join(map(str, target.replicas))
    asserted = "" if target.original_replicas is None else ", ".join(map(str, target.original_replicas))
    return str(target.key), replicas, asserted
