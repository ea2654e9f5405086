"""`drover cancel`: end moves by rollback to the original replicas, or by stopping where they are."""

from typing import Any, Literal

import click

from drover.cli.asking import can_ask, confirmed
from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.log_state import state_now
from drover.cli.output import plural
from drover.cli.parameters import Partition
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.journal.connection import LogConnection
from events.commands import Cancel, PartitionName
from events.partitions import TopicPartition


@click.command()
@click.option("--rollback", is_flag=True, help="Restore the original replicas in their order.")
@click.option("--stop", is_flag=True, help="Keep what is in sync and stop there.")
@click.option("--partition", "partitions", multiple=True, type=Partition(), metavar="T:P", help="May be repeated.")
@click.option("--topic", "topics", multiple=True, metavar="T", help="Every move of a topic; may be repeated.")
@click.option("--plan", metavar="NAME", help="Every move of a plan, which is then closed.")
@click.option("--queued", metavar="ID", help="Whatever the alter command with this id still has in the queue.")
@click.option("--deferred", metavar="ID", help="The command with this id, while it waits for others.")
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
    deferred: str | None,
    *,
    everything: bool,
    **options: Any,
) -> None:
    """Cancel moves, also queued ones and alters that wait for others; moves that others started are never touched.

    Exactly one of --partition, --topic, --plan, --queued, --deferred and --all. --queued and --deferred need neither
    --rollback nor --stop.
    """
    rollback, stop = options["rollback"], options["stop"]
    if rollback and stop:
        raise click.UsageError("--rollback and --stop exclude each other: choose one")
    if not (rollback or stop) and queued is None and deferred is None:
        raise click.UsageError("choose --rollback or --stop")
    mode: Literal["rollback", "stop"] = "stop" if stop else "rollback"
    scopes = (bool(partitions), bool(topics), plan is not None, queued is not None, deferred is not None, everything)
    if sum(scopes) != 1:
        raise click.UsageError("give exactly one of --partition, --topic, --plan, --queued, --deferred and --all")
    connection, cluster = connect(invocation)
    if everything and not options["yes"]:
        _ask(connection, cluster, mode)
    request = make_request(invocation, "cancel", cluster, options)
    command = Cancel(
        **request.envelope,
        # What waits in the queue is taken out of it, whatever the mode.
        mode=mode,
        partitions=tuple(PartitionName(key.topic, key.partition) for key in dict.fromkeys(partitions)) or None,
        topics=tuple(dict.fromkeys(topics)) or None,
        plan=plan,
        all=everything,
        queued=queued,
        deferred=deferred,
    )
    send_one(connection, command, request)


def _ask(connection: LogConnection, cluster: str, mode: str) -> None:
    if not can_ask():
        raise click.UsageError("--all needs -y when there is no terminal to ask on")
    state = state_now(connection, cluster)
    count, waiting = len({*state.reassignments, *state.queue}), len(state.deferred)
    also = f", and withdraw the alters among {plural(waiting, 'command')} that wait for others" if waiting else ""
    what = f"{plural(count, 'reassignment')} of cluster {cluster}, everything under way and queued{also}"
    question = f"{mode.capitalize()} {what}?"
    if not confirmed(question):
        raise click.UsageError("nothing was cancelled")
