"""`drover alter`: move partitions to the replicas of a plan in the stock tool's format."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from drover.cli.exits import ExitCode, Failure
from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.output import console, plural, print_document, table
from drover.cli.parameters import Rate, check_rate
from drover.cli.plan_file import AlterRequest, alter_commands, parse_plan
from drover.cli.submitting import (
    checked,
    connect,
    make_request,
    plain,
    require_reason,
    send,
    write_options_of_trial,
)
from drover.errors import ConfigurationError
from drover.journal.connection import LogConnection
from events.codec import encode_command
from events.commands import Alter, PartitionTarget
from events.topics import TopicNames

# A trial names so many refusals.
MOST_REFUSALS = 20


@click.command()
@click.argument(
    "file", metavar="[PLAN.json]", required=False, type=click.Path(dir_okay=False, allow_dash=True, path_type=Path)
)
@click.option("--undo", metavar="PLAN", help="Instead of a file: undo what this plan has completed.")
@click.option("--plan", metavar="NAME", help="The plan's name; several commands may share one.  [default: the id]")
@click.option("--throttle", type=Rate(), metavar="RATE", help="Per broker: 10MB/s, 50MiB, or bytes per second.")
@click.option("--force", is_flag=True, help="Take a throttle under 1 kB/s or over 100 GB/s for what is meant.")
@click.option("--queue", is_flag=True, help="Wait behind everything that was accepted before (KIP-236).")
@click.option("--follow", is_flag=True, help="Show the plan's progress until it ends.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be sent, refuse what no cluster would take, and send nothing; only --undo reads the log.",
)
@write_options_of_trial
@pass_invocation
def alter(
    invocation: Invocation,
    file: Path | None,
    undo: str | None,
    plan: str | None,
    throttle: int | None,
    *,
    queue: bool,
    follow: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Move partitions to the replicas that PLAN.json names (- reads standard input).

    The file has the format of kafka-reassign-partitions, or is the whole output of its --generate. If it says null for
    a partition's replicas, that partition's move is stopped. With --undo, a new plan takes back what PLAN has
    completed; partitions that have been moved since are refused.
    """
    if (file is None) is (undo is None):
        raise click.UsageError("give either a PLAN.json or --undo PLAN")
    _check_options(throttle, options, follow=follow, dry_run=dry_run)
    targets = () if file is None else parse_plan(_text(file), str(file))
    if dry_run and undo is None:
        cluster = invocation.cluster_of(invocation.settings())
    else:
        connection, cluster = connect(invocation)
        targets = targets if undo is None else _undone(connection, cluster, undo)
    if dry_run:
        _refuse_what_a_worker_would(targets, invocation.settings().log.topics)
    request = make_request(invocation, "alter", cluster, options)
    asked = AlterRequest(
        request.id, cluster, request.by, request.reason, plan, throttle, queue=queue, after=request.after
    )
    commands = alter_commands(asked, targets)
    if dry_run:
        _show(commands, request.output)
        return
    answers = send(connection, commands, request)
    from drover.cli.answers import exit_code, print_answers  # noqa: PLC0415 - not before the command is out

    if request.timeout_s is None:
        return
    print_answers(answers, request.output)
    code = exit_code(answers)
    if follow and any(answer.outcome.accepted for answer in answers):
        from drover.cli.following import follow_plan  # noqa: PLC0415

        code = max(code, follow_plan(connection, cluster, commands[0].plan_name, request.output))
    raise click.exceptions.Exit(code)


def _check_options(throttle: int | None, options: Mapping[str, Any], *, follow: bool, dry_run: bool) -> None:
    if dry_run and (follow or options["no_wait"]):
        raise click.UsageError("--dry-run sends nothing: leave out --follow and --no-wait")
    if follow and options["no_wait"]:
        raise click.UsageError("--follow waits and --no-wait does not: choose one")
    if not dry_run:
        require_reason(options)
    if throttle is not None:
        try:
            check_rate(throttle, force=options["force"])
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="'--throttle'") from None


def _refuse_what_a_worker_would(targets: Sequence[PartitionTarget], topics: TopicNames) -> None:
    """Refuse what is wrong whatever the cluster looks like; the cluster itself is not asked."""
    # Imported here: only a trial decides anything in this process.
    from drover.reassignment.targets import refused_anywhere  # noqa: PLC0415

    refused = [refusal for target in targets if (refusal := refused_anywhere(target, topics.own)) is not None]
    if refused:
        lines = "\n".join(f"  {refusal.detail}" for refusal in refused[:MOST_REFUSALS])
        more = f"\n  and {len(refused) - MOST_REFUSALS:,} more" if len(refused) > MOST_REFUSALS else ""
        raise Failure(f"a worker would refuse {plural(len(refused), 'partition')}:\n{lines}{more}")


def _undone(connection: LogConnection, cluster: str, plan: str) -> tuple[PartitionTarget, ...]:
    from drover.client.undo import read_undo  # noqa: PLC0415 - the Kafka client costs start-up time

    return asyncio.run(read_undo(connection, cluster, plan)).targets()


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"the plan {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the plan {file} is not UTF-8 text: {error}") from error


def _show(commands: Sequence[Alter], output: str) -> ExitCode:
    for command in commands:
        checked(command)
    if output != "table":
        rows = [plain(command) for command in commands]
        print_document({"commands": rows}, rows, output)
        return ExitCode.DONE
    lines = [_line(target) for command in commands for target in command.partitions]
    console().print(table(("partition", "replicas", "expected now"), lines))
    count = sum(len(command.partitions) for command in commands)
    size = sum(len(encode_command(command)) for command in commands)
    click.echo(
        f"Would send {plural(count, 'partition')} in {plural(len(commands), 'command')} ({size:,} bytes) as plan "
        f"{commands[0].plan_name} to cluster {commands[0].cluster}. Nothing was sent.",
        err=True,
    )
    return ExitCode.DONE


def _line(target: PartitionTarget) -> tuple[str, str, str]:
    replicas = "stop its move" if target.replicas is None else ", ".join(map(str, target.replicas))
    asserted = "" if target.original_replicas is None else ", ".join(map(str, target.original_replicas))
    return str(target.key), replicas, asserted
