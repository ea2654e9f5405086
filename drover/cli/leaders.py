"""`drover leaders`: brokers that should not lead, leader balance and counts (KIP-491)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from drover.cli.help import TOPICS, drover_group
from drover.cli.invocation import Invocation, common_options, pass_invocation, state_now
from drover.cli.output import console, listed, output_option, plural, print_document, say, styled, table, timestamp
from drover.cli.parameters import DURATION, broker_argument, brokers_argument
from drover.cli.submission import connect, send_one, write_options, yes_option
from drover.client.views.leader_rows import leaders_document
from drover.errors import ConfigurationError
from drover.events.commands import BalanceLeaders, Blacklist, Demote, Restore

if TYPE_CHECKING:
    from rich.console import RenderableType

topic_option = click.option(
    "--topic", "topics", shell_complete=TOPICS, metavar="TOPIC", multiple=True, help="Only this topic; may be repeated."
)
COLUMNS = ("broker", "leads", "preferred", "should not lead since", "by", "until", "topics", "reason")


@drover_group()
def leaders() -> None:
    """Move leaders off brokers and back, balance and show them."""


@leaders.command(example="drover leaders demote 3 --for 2h --reason 'slow disk'")
@broker_argument
@topic_option
@click.option("--for", "for_s", type=DURATION, metavar="TIME", help="Restore the broker after this time: 2h.")
@click.option("--until-in-sync", is_flag=True, help="Restore the broker once its replicas are in sync.")
@yes_option
@write_options
@pass_invocation
def demote(
    invocation: Invocation,
    number: int,
    topics: tuple[str, ...],
    for_s: float | None,
    *,
    until_in_sync: bool,
    **options: Any,
) -> None:
    """Add broker N to the list of brokers that should not lead."""
    send_one(
        invocation,
        "demote",
        options,
        lambda envelope: Demote(
            **envelope,
            broker=number,
            topics=topics or None,
            for_ms=None if for_s is None else max(1, round(for_s * 1000)),
            until_in_sync=until_in_sync,
        ),
        brokers=(number,),
    )


@leaders.command(example="drover leaders restore 3 --reason 'new disk'")
@broker_argument
@topic_option
@write_options
@pass_invocation
def restore(invocation: Invocation, number: int, topics: tuple[str, ...], **options: Any) -> None:
    """Remove broker N from the list; its replica lists return to their original order."""
    send_one(invocation, "restore", options, lambda envelope: Restore(**envelope, broker=number, topics=topics or None))


@leaders.command(example="drover leaders balance --topic orders --reason 'after the restart'")
@topic_option
@write_options
@pass_invocation
def balance(invocation: Invocation, topics: tuple[str, ...], **options: Any) -> None:
    """Elect the preferred leader of every partition where it can lead; listed brokers come last."""
    send_one(invocation, "balance", options, lambda envelope: BalanceLeaders(**envelope, topics=topics or None))


@leaders.command(example="drover leaders show")
@output_option
@common_options
@pass_invocation
def show(invocation: Invocation, output: str) -> None:
    """Show how many partitions each broker leads, which brokers should not lead, and which partitions wait."""
    connection, cluster = connect(invocation)
    document = leaders_document(state_now(connection, cluster))
    if output == "table":
        console().print(layout(document))
    else:
        print_document(document, document["brokers"], output)


def layout(document: Mapping[str, Any]) -> "RenderableType":
    """Lay out the document of `drover.client.views.leader_rows` for people."""
    from rich.console import Group  # noqa: PLC0415 - rich costs start-up time

    if not document["brokers"]:
        return styled(f"No broker of {document['cluster']} is on the list, and leaders have not been counted yet.")
    parts: list[RenderableType] = [table(COLUMNS, [_broker_cells(row) for row in document["brokers"]])]
    counted_ms = document["counted_ms"]
    words = [] if counted_ms is None else [f"Counted {timestamp(counted_ms)}, when they last changed."]
    if document["reordered"]:
        words.append(f"{plural(document['reordered'], 'list')} not in canonical order.")
    if document["electing"]:
        words.append(f"{plural(document['electing'], 'election')} under way.")
    balance = document["balance"]
    if balance is not None:
        words.append(f"Balance asked for by {balance['by']}: {balance['reason']}; elected so far {balance['elected']}.")
    parts.append(styled(" ".join(words)))
    for name, title in (("waiting", "waits for another leader"), ("left_alone", "reordered by somebody else")):
        rows = [_list_cells(row) for row in document[name]]
        if rows:
            parts += [styled(""), table((title, "what", "since"), rows)]
            more = document[f"{name}_count"] - len(rows)
            if more:
                parts.append(styled(f"and {more} more"))
    return Group(*parts)


def _broker_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    counts = tuple("-" if row[name] is None else str(row[name]) for name in ("leaders", "preferred"))
    if not row["listed"]:
        return (str(row["broker"]), *counts, "", "", "", "", "")
    since = "" if row["since_ms"] is None else timestamp(row["since_ms"])
    topics = "all" if row["topics"] is None else ", ".join(row["topics"])
    return (str(row["broker"]), *counts, since, row["by"] or "", _until(row), topics, row["reason"] or "")


def _until(row: Mapping[str, Any]) -> str:
    until = [] if row["until_ms"] is None else [timestamp(row["until_ms"])]
    if row["until_in_sync"]:
        until.append("it is in sync")
    return " or ".join(until) or "a command ends it"


def _list_cells(row: Mapping[str, Any]) -> tuple[str, str, str]:
    detail = row.get("detail") or f"{row['replicas']}, left alone; the canonical order is {row['canonical']}"
    return f"{row['topic']}:{row['partition']}", detail, timestamp(row["since_ms"])


@leaders.group()
def blacklist() -> None:
    """Set, clear or show the whole list of brokers that should not lead (KIP-491)."""


@blacklist.command(name="set", example="drover leaders blacklist set 1 3 --reason 'slow disks'")
@brokers_argument("N...")
@yes_option
@write_options
@pass_invocation
def set_(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Replace the list with these brokers."""
    _send_list(invocation, brokers, options)


@blacklist.command(example="drover leaders blacklist clear --reason 'new disks'")
@write_options
@pass_invocation
def clear(invocation: Invocation, **options: Any) -> None:
    """Remove every broker from the list."""
    _send_list(invocation, (), options)


def _send_list(invocation: Invocation, brokers: tuple[int, ...], options: dict[str, Any]) -> None:
    if len(set(brokers)) != len(brokers):
        raise ConfigurationError("a broker is named twice: name each broker once")
    send_one(invocation, "blacklist", options, lambda envelope: Blacklist(**envelope, brokers=brokers), brokers=brokers)


@blacklist.command(name="show", example="drover leaders blacklist show")
@output_option
@common_options
@pass_invocation
def show_blacklist(invocation: Invocation, output: str) -> None:
    """Show the list; reads the log."""
    connection, cluster = connect(invocation)
    brokers = state_now(connection, cluster).blacklist
    if output != "table":
        row = {"cluster": cluster, "brokers": list(brokers)}
        print_document(row, [row], output)
    else:
        say(listed(brokers) if brokers else f"No broker of {cluster} is on the list.")
