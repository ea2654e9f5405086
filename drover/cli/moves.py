"""`drover cancel`, `repair`, `pause`, `resume`, `freeze` and `unfreeze`: end moves, or begin no further ones."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import click

from drover.cli.help import PLANS, TOPICS, drover_command
from drover.cli.invocation import Invocation, pass_invocation, state_now
from drover.cli.output import console, listed, plural, say, table
from drover.cli.parameters import PARTITION
from drover.cli.submission import (
    can_ask,
    confirmed,
    connect,
    exit_code,
    make_request,
    print_answers,
    send,
    send_one,
    suggest_plan,
    write_options,
)
from drover.client.answers import Answer
from drover.client.time_travel import Point, travel
from drover.client.views.restore_rows import RestoreRow, restore_rows
from drover.errors import ConfigurationError, LogUnavailableError
from drover.events.commands import Cancel, Freeze, PartitionName, PausePlan, Repair, ResumePlan, Unfreeze
from drover.events.partitions import TopicPartition
from drover.journal.connection import LogConnection

# A table of a large cancel is cut to this many lists.
SHOWN_LISTS = 20


@drover_command(
    example="drover cancel --rollback --plan friday --reason 'latency alarm'\n"
    "drover cancel --stop --partition orders:3 --reason 'far enough'"
)
@click.option("--rollback", is_flag=True, help="Restore the original replicas in their order.")
@click.option("--stop", is_flag=True, help="Stop where they are, and keep the replicas that are in sync.")
@click.option("--partition", "partitions", multiple=True, type=PARTITION, metavar="T:P", help="May be repeated.")
@click.option(
    "--topic",
    "topics",
    shell_complete=TOPICS,
    multiple=True,
    metavar="T",
    help="Every move of a topic; may be repeated.",
)
@click.option("--plan", shell_complete=PLANS, metavar="NAME", help="Every move of a plan, which is then closed.")
@click.option("--queued", metavar="ID", help="The queued partitions of the alter command with this id.")
@click.option("--all", "everything", is_flag=True, help="Every move of the cluster; asks first.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_invocation
def cancel(
    invocation: Invocation,
    partitions: tuple[TopicPartition, ...],
    topics: tuple[str, ...],
    plan: str | None,
    queued: str | None,
    *,
    everything: bool,
    **options: Any,
) -> None:
    """Cancel moves, running or queued; moves that others started are never touched.

    Give exactly one of --partition, --topic, --plan, --queued and --all. --queued needs neither --rollback nor --stop.
    Prints the replica list to which each partition that has begun to move will return.
    """
    rollback, stop = options["rollback"], options["stop"]
    if rollback and stop:
        raise click.UsageError("--rollback and --stop exclude each other: choose one")
    if not (rollback or stop) and queued is None:
        raise click.UsageError("choose --rollback or --stop")
    mode: Literal["rollback", "stop"] = "stop" if stop else "rollback"
    scopes = (bool(partitions), bool(topics), plan is not None, queued is not None, everything)
    if sum(scopes) != 1:
        raise click.UsageError("give exactly one of --partition, --topic, --plan, --queued and --all")
    connection, cluster = connect(invocation)
    if everything and not options["yes"]:
        _ask_cancel(connection, cluster, mode)
    request = make_request(invocation, "cancel", cluster, options)
    command = Cancel(
        **request.envelope,
        # Entries of the queue are withdrawn in either mode.
        mode=mode,
        partitions=tuple(PartitionName(key.topic, key.partition) for key in dict.fromkeys(partitions)) or None,
        topics=tuple(dict.fromkeys(topics)) or None,
        plan=plan,
        all=everything,
        queued=queued,
    )
    answers = send(connection, [command], request)
    if request.timeout_s is None:
        return

    _print_cancelled(answers, _restored(connection, command, answers), request.output)
    suggest_plan(connection, command, answers)
    raise click.exceptions.Exit(exit_code(answers))


def _restored(connection: LogConnection, command: Cancel, answers: Sequence[Answer]) -> Sequence[RestoreRow]:
    """Return the lists at which the cancelled moves end, from the log right after the decision.

    If the log cannot be read, prints a warning only: the cancel has already taken effect.
    """
    (answer,) = answers
    if command.queued is not None or answer.outcome.verdict == "refused":
        return ()

    point = Point(offset=answer.offset)
    try:
        reached = asyncio.run(travel(connection, answer.shard, (point,))).reached[point]
    except (ConfigurationError, LogUnavailableError) as error:
        say(f"The cancel is recorded, but the lists that it restores cannot be shown: {error}", err=True)
        return ()
    outcome = answer.outcome
    named = (TopicPartition(result.topic, result.partition) for result in (*outcome.accepted, *outcome.unchanged))
    state = reached.state.clusters.get(command.cluster)
    return () if state is None else restore_rows(state, named)


def _print_cancelled(answers: Sequence[Answer], restored: Sequence[RestoreRow], output: str) -> None:

    print_answers(answers, output, {"restores": [row.document() for row in restored]})
    if output != "table" or not restored:
        return
    shown = [
        (f"{row.topic}:{row.partition}", listed(row.target), listed(row.replicas)) for row in restored[:SHOWN_LISTS]
    ]
    console().print(table(("partition", "was going to", "ends at"), shown))
    if len(restored) > SHOWN_LISTS:
        say(f"... and {len(restored) - SHOWN_LISTS:,} more: -o json prints all.")


def _ask_cancel(connection: LogConnection, cluster: str, mode: str) -> None:
    if not can_ask():
        raise click.UsageError("--all needs -y when there is no terminal to ask on")
    state = state_now(connection, cluster)
    count = len({*state.reassignments, *state.queue})
    scope = f"{plural(count, 'reassignment')} of cluster {cluster}, everything under way and queued"
    question = f"{mode.capitalize()} {scope}?"
    if not confirmed(question):
        raise click.UsageError("nothing was cancelled")


@drover_command(example="drover pause friday --reason 'business hours'")
@click.argument("plan", shell_complete=PLANS)
@write_options
@pass_invocation
def pause(invocation: Invocation, plan: str, **options: Any) -> None:
    """Begin no further step of PLAN; running copies and other plans go on."""
    send_one(invocation, "pause", options, lambda envelope: PausePlan(**envelope, plan=plan))


@drover_command(example="drover resume friday --reason 'night'")
@click.argument("plan", shell_complete=PLANS)
@write_options
@pass_invocation
def resume(invocation: Invocation, plan: str, **options: Any) -> None:
    """Let steps of PLAN begin again, no matter who paused it."""
    send_one(invocation, "resume", options, lambda envelope: ResumePlan(**envelope, plan=plan))


@drover_command(example="drover repair --partition orders:3 --reason 'listed since yesterday'")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=PARTITION,
    metavar="T:P",
    help="May be repeated.  [default: every such move]",
)
@write_options
@pass_invocation
def repair(invocation: Invocation, partitions: tuple[TopicPartition, ...], **options: Any) -> None:
    """End moves in which a broker is both being added and being removed, whoever started them.

    Kafka never ends such a move by itself; `drover status` names them. To go back to the original replicas, use
    `drover cancel --rollback`; to replace a broker that is gone, `drover heal start`.
    """
    named = tuple(PartitionName(key.topic, key.partition) for key in dict.fromkeys(partitions))
    send_one(invocation, "repair", options, lambda envelope: Repair(**envelope, partitions=named or None))


@drover_command(example="drover freeze --reason 'upgrade of the brokers'")
@write_options
@pass_invocation
def freeze(invocation: Invocation, **options: Any) -> None:
    """Start nothing new on the cluster; copies under way continue."""
    send_one(invocation, "freeze", options, lambda envelope: Freeze(**envelope))


@drover_command(example="drover unfreeze --reason 'upgrade is done'")
@click.option("--all", "everything", is_flag=True, help="End everyone's freezes, not only your own.")
@write_options
@pass_invocation
def unfreeze(invocation: Invocation, *, everything: bool, **options: Any) -> None:
    """End your freeze of the cluster; new work starts again once the last freeze has ended."""
    send_one(invocation, "unfreeze", options, lambda envelope: Unfreeze(**envelope, all=everything))
