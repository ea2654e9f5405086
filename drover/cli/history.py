"""`drover history` and `drover state`: every command and its consequences, and the state at any place in the log."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from drover.cli.exits import Failure
from drover.cli.help import PLANS, TOPICS, did_you_mean, drover_command
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import (
    Fit,
    amount,
    compact_list,
    console,
    output_option,
    plural,
    print_document,
    print_line,
    say,
    styled,
    table,
    timestamp,
)
from drover.cli.parameters import MOMENT, PARTITION, Parsed, parse_date, parse_duration
from drover.client import differences
from drover.client.differences import Change, plain
from drover.client.history import follow_log, open_log, read_log
from drover.client.time_travel import Point, travel
from drover.client.views.history_rows import HistoryRow, Selection, Wanted, story
from drover.events.throttles import Rates
from drover.fold.log import ShardFold
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.state.cluster import ClusterState
from drover.state.declared import declarations
from drover.state.reassignment import Block
from drover.state.scheduling import Limits

if TYPE_CHECKING:
    from rich.console import RenderableType

HISTORY_COLUMNS = ("time", "log", "cluster", "what", "partition", "plan", "by", "reason", "detail")
CHANGE_COLUMNS = ("what", "of", "before", "after")
# The most telling fields of an entry that appeared or disappeared; the document has all of them.
_TELLING = (
    "by", "reason", "status", "plan", "phase", "original", "target", "replicas", "adding", "removing", "baseline",
    "intended", "present",
)  # fmt: skip


def parse_point(text: str, now: datetime) -> Point:
    """Parse an offset (`120`), a time with its zone (`2026-11-20T15:04Z`) or an age (`-2h`).

    Raises `ValueError`.
    """
    text = text.strip()
    if text.isdecimal():
        return Point(offset=int(text))
    if text.startswith("-"):
        return Point(at_ms=_milliseconds(now) - round(parse_duration(text[1:]) * 1000))
    moment = parse_date(text, "a place in the log: write an offset, -2h for two hours ago, or")
    if moment > now:
        raise ValueError(f"{text!r} is in the future")
    return Point(at_ms=_milliseconds(moment))


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


PLACE = Parsed("offset|time", lambda text: parse_point(text, datetime.now(UTC)))


def place_document(fold: ShardFold) -> dict[str, object]:
    """Return the place of a fold in the log for programs; fields may be added and never changed."""
    return {
        "shard": fold.shard,
        "offset": fold.position - 1,
        "batch_offset": None if fold.chain_offset < 0 else fold.chain_offset,
        "at_ms": fold.at_ms or None,
        "owner": fold.owner,
        "epoch": fold.epoch,
        "state_hash": fold.state.hash().hex(),
    }


def place_text(fold: ShardFold) -> str:
    """Describe the place of a fold in the log."""
    if fold.chain_offset < 0:
        return f"shard {fold.shard}, before its first decision"
    return f"shard {fold.shard} after offset {fold.position - 1}, decided until {timestamp(fold.at_ms)}"


HISTORY_FIT = Fit(below=("detail", "reason"), spare=("log", "cluster", "plan", "by", "time"))


@drover_command(
    example="drover history --plan friday\ndrover history --since 1h --follow\ndrover history --diff -2h -0s"
)
@click.option("--topic", shell_complete=TOPICS, metavar="T", help="Only this topic's partitions.")
@click.option("--partition", type=PARTITION, metavar="T:P", help="Only this partition.")
@click.option("--plan", shell_complete=PLANS, metavar="NAME", help="Only this plan.")
@click.option("--id", "id_", metavar="ID", help="Only the command with this id.")
@click.option("--since", "since_ms", type=MOMENT, help="2h for the last two hours, 2026-10-01 or 2026-10-01T15:04Z.")
@click.option("--until", "until_ms", type=MOMENT, help="Up to this time, written the same way.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the last N lines.")
@click.option("--events", is_flag=True, help="Every command and event as it was recorded, with details.")
@click.option(
    "--follow", is_flag=True, help="Go on with what is recorded from now on, until Ctrl-C; -o table or jsonl."
)
@click.option(
    "--diff", nargs=2, type=PLACE, metavar="A B", help="What changed from A to B; each is an offset, -2h or a time."
)
@output_option
@click.option("--by", metavar="WHO", help="Only commands of this person or program.")
@common_options
@pass_invocation
def history(
    invocation: Invocation,
    output: str,
    diff: tuple[Point, Point] | None,
    limit: int | None,
    *,
    events: bool,
    follow: bool,
    id_: str | None,
    **wanted: Any,
) -> None:
    """Tell who asked for what and why, and what came of it, oldest first.

    -o json, jsonl and yaml have every command and event; those that the story tells have a sentence. So has --events
    for people; LOG is shard@offset. Records of owners that had already been replaced are left out: they have no effect.
    With --diff, shows what changed in one cluster between two offsets of its shard, or between two times of the log.
    """
    if diff is not None and (limit or events or follow or id_ is not None or any(wanted.values())):
        raise click.UsageError("--diff goes with --cluster and -o only")
    if follow and (output not in {"table", "jsonl"} or wanted["until_ms"] is not None):
        raise click.UsageError("--follow goes with -o table or jsonl, and not with --until")
    settings = invocation.settings()
    connection = settings.log.connection()
    if diff is not None:
        _show_difference(connection, invocation.cluster_of(settings), diff, output)
        return
    only = Wanted(cluster=invocation.cluster_wanted(settings), id=id_, **wanted)
    asyncio.run(_show_history(connection, only, Showing(output, limit, events), follow=follow))


@dataclass(frozen=True, slots=True)
class Showing:
    """How rows are printed: the format, at most how many, and for people as events or in sentences."""

    output: str
    limit: int | None
    as_events: bool

    def show(self, rows: Sequence[HistoryRow]) -> None:
        """Print rows; a document is complete."""
        if self.output != "table":
            documents = [row.document() for row in rows[self._first :]]
            print_document({"history": documents}, documents, self.output)
        elif self.as_events:
            self._print(HISTORY_COLUMNS, list(map(history_cells, rows)), HISTORY_FIT)
        else:
            several = len({row.cluster for row in rows}) > 1
            lines = [
                (timestamp(row.at_ms), f"{row.cluster}: {sentence}" if several else sentence)
                for row, sentence in story(rows)
            ]
            self._print(("time", "what happened"), lines, Fit(prose=("what happened",)))

    @property
    def _first(self) -> int:
        return -self.limit if self.limit else 0

    def _print(self, columns: Sequence[str], cells: Sequence[Sequence[str]], fit: Fit) -> None:
        if cells:
            console().print(table(columns, cells[self._first :], right=("log",), fit=fit))

    def tell(self, rows: Sequence[HistoryRow]) -> None:
        """Print rows as they come, a line each."""
        if self.output != "table":
            for row in rows:
                print_line(row.document())
        elif self.as_events:
            for row in rows:
                say(" ".join(cell for cell in history_cells(row) if cell))
        else:
            for row, sentence in story(rows):
                say(f"{timestamp(row.at_ms)} {row.cluster}: {sentence}")

    def tell_last(self, rows: Sequence[HistoryRow]) -> None:
        """Print the last rows, as many as are wanted, a line each."""
        self.tell(rows[self._first :])


async def read_rows(connection: LogConnection, wanted: Wanted) -> list[HistoryRow]:
    """Read the log from its first record to its end, and return the rows that match, oldest first."""
    selection = Selection(wanted)
    async with LogReader(connection) as reader:
        log = await open_log(reader, connection, wanted.cluster)
        async for records in read_log(reader, connection, log):
            selection.add(records)
    return selection.rows()


async def _show_history(connection: LogConnection, wanted: Wanted, showing: Showing, *, follow: bool) -> None:
    selection = Selection(wanted)
    async with LogReader(connection) as reader:
        log = await open_log(reader, connection, wanted.cluster)
        async for records in read_log(reader, connection, log):
            selection.add(records)
        rows = selection.take()
        if not follow:
            if not rows:
                _say_why_empty(wanted, selection)
            showing.show(rows)
            return
        showing.tell_last(rows)
        async with aclosing(follow_log(reader, connection, log)) as following:
            async for records in following:
                selection.add(records)
                showing.tell(selection.take())


def _say_why_empty(wanted: Wanted, selection: Selection) -> None:
    """Raise `Failure` for a plan or a topic that the log does not have; else say that nothing matches."""
    topic = wanted.topic if wanted.partition is None else wanted.partition.topic
    for kind, name, names in (("plan", wanted.plan, selection.plans), ("topic", topic, selection.topics)):
        if name is not None and name not in names:
            where = "the log" if wanted.cluster is None else f"the log of {wanted.cluster}"
            raise Failure(f"there is no {kind} {name} in {where}. {did_you_mean(name, names)}".rstrip())
    say("The log has no matching commands or events.", err=True)


def _show_difference(connection: LogConnection, cluster: str, points: tuple[Point, Point], output: str) -> None:
    places = asyncio.run(travel(connection, cluster, points))
    before, after = (places.reached[point] for point in points)
    if before.position > after.position:
        raise click.UsageError(f"the first place is later than the second: {place_text(before)}; {place_text(after)}")
    was, now = (fold.state.clusters.get(cluster) or ClusterState(cluster) for fold in (before, after))
    changes = differences.diff(was, now, places.ended)
    if output != "table":
        document = diff_document(cluster, before, after, changes)
        print_document(document, document["changes"], output)
    elif changes:
        console().print(table(CHANGE_COLUMNS, map(change_cells, changes)))
    else:
        say(f"Nothing has changed in {cluster}.", err=True)


def history_cells(row: HistoryRow) -> tuple[str, ...]:
    """Format one row."""
    first = str(row.partitions[0]) if row.partitions else ""
    more = f" +{len(row.partitions) - 1}" if len(row.partitions) > 1 else ""
    return (
        timestamp(row.at_ms),
        f"{row.shard}@{row.offset}",
        row.cluster,
        row.what,
        first + more,
        row.plan or "",
        row.by,
        row.reason,
        f"{row.id}: {row.detail}" if row.id and row.detail else row.id or row.detail,
    )


def diff_document(cluster: str, before: ShardFold, after: ShardFold, changes: Sequence[Change]) -> dict[str, Any]:
    """Return the difference for programs; fields may be added and never changed."""
    return {
        "cluster": cluster,
        "from": place_document(before),
        "to": place_document(after),
        "changes": [change.document() for change in changes],
    }


def change_cells(change: Change) -> tuple[str, ...]:
    """Format one row."""
    came_or_went = change.before is None or change.after is None
    subject = f"{change.kind} {change.what}" if change.kind != change.name else change.what
    return (
        f"{subject}: {change.detail}" if change.detail else subject,
        change.name,
        _text(change.before, brief=came_or_went),
        _text(change.after, brief=came_or_went),
    )


def _text(value: Any, *, brief: bool = False) -> str:
    match value:
        case None | [] | "":
            return "-"
        case dict():
            names = [name for name in _TELLING if value.get(name)] if brief else list(value)
            return ", ".join(f"{name.replace('_', ' ')} {_text(value[name])}" for name in names or value)
        case list():
            return ",".join(_text(element) for element in value)
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)


@drover_command(example="drover state --at -2h")
@click.option("--at", "point", type=PLACE, help="An offset, -2h, or a time such as 2026-11-20T15:04Z.  [now]")
@click.option("--shard", type=click.IntRange(min=0), help="Every cluster of this shard, instead of one cluster.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True,
    help="How to print.",
)  # fmt: skip
@common_options
@pass_invocation
def state(invocation: Invocation, point: Point | None, shard: int | None, output: str) -> None:
    """Show a cluster's whole state, as the log has it.

    Prints plans, reassignments with step and block, the queue, the throttle ledger, freezes, limits and brokers, as
    they were right after the record at an offset of the cluster's shard, or at a time of the log.
    """
    if shard is not None and invocation.cluster is not None:
        raise click.UsageError("--shard and --cluster exclude each other: choose one")
    settings = invocation.settings()
    where = invocation.cluster_of(settings) if shard is None else shard
    wanted = point or Point()
    fold = asyncio.run(travel(settings.log.connection(), where, (wanted,))).reached[wanted]
    states = states_of(fold, where)
    if output == "table":
        console().print(state_layout(place_text(fold), states))
    else:
        print_document(past_document(fold, states), (), output)


def states_of(fold: ShardFold, where: int | str) -> list[ClusterState]:
    """Return the clusters to show, by name; a cluster that the log had not named yet has an empty state."""
    if isinstance(where, str):
        return [fold.state.clusters.get(where) or ClusterState(where)]
    return [fold.state.clusters[name] for name in sorted(fold.state.clusters)]


def past_document(fold: ShardFold, states: list[ClusterState]) -> dict[str, Any]:
    """Return the states for programs; fields may be added and never changed."""
    return {"log": place_document(fold), "clusters": [state_document(state) for state in states]}


def state_document(state: ClusterState) -> dict[str, Any]:
    """Return a cluster's state for programs; fields may be added and never changed.

    Maps by name become lists whose entries hold the name: plans in the order in which they were opened,
    reassignments in the order of acceptance, the queue in queue order, everything else sorted. Fields without a rule
    here are shown as they are recorded.
    """
    document = {
        "cluster": state.name,
        "kafka_cluster_id": state.kafka_cluster_id,
        "mismatched_kafka_cluster_id": state.mismatched_kafka_cluster_id,
        "freeze": plain(state.freeze),
        "limits": plain(state.limits),
        "blacklist": list(state.blacklist),
        "failed_brokers": [
            {"broker": broker, "at_ms": at_ms} for broker, at_ms in sorted(state.failed_brokers.items())
        ],
        "plans": [plain(plan) for plan in state.plans.values()],
        "reassignments": [_about(entry.key, entry) for entry in state.reassignments.values()],
        "queue": [_about(key, entry) for key, entry in state.queue.items()],
        "unmanaged": [_about(key, entry) for key, entry in sorted(state.unmanaged.items())],
        "expired_calls": [_about(key, entry) for key, entry in sorted(state.expired_calls.items())],
        "broker_throttles": [
            {"broker": broker, **plain(entry)} for broker, entry in sorted(state.broker_throttles.items())
        ],
        "topic_throttles": [{"topic": topic, **plain(entry)} for topic, entry in sorted(state.topic_throttles.items())],
    }
    for attribute, declared in declarations(ClusterState).items():
        if declared.described_as and declared.name not in document:
            document[declared.name] = plain(getattr(state, attribute))
    return document


def _about(key: tuple[str, int], entry: Any) -> dict[str, Any]:
    fields = plain(entry)
    fields.pop("key", None)
    return {"topic": key[0], "partition": key[1], **fields}


def state_layout(where: str, states: Sequence[ClusterState]) -> "RenderableType":
    """Lay clusters out for people; empty tables are left out."""
    from rich.console import Group  # noqa: PLC0415 - rich costs start-up time

    parts: list[RenderableType] = [styled(f"As of {where}.", style="dim")]
    for state in states:
        parts += [styled(""), styled(state.name, style="bold"), *map(styled, _lines(state)), *_tables(state)]
    if not states:
        parts.append(styled("No cluster lives in this shard yet."))
    return Group(*parts)


def _lines(state: ClusterState) -> list[str]:
    lines = [f"Kafka cluster {state.kafka_cluster_id or 'not seen yet'}; {_limits(state.limits)}."]
    if state.traits is not None:
        lines.append(f"{state.traits}.")
    if state.mismatched_kafka_cluster_id is not None:
        lines.append(f"A different Kafka cluster answers at this address: {state.mismatched_kafka_cluster_id}.")
    lines += [f"Frozen by {freeze.by} since {timestamp(freeze.since_ms)}: {freeze.reason}." for freeze in state.freezes]
    if state.blacklist:
        lines.append(f"Brokers that should not lead: {compact_list(state.blacklist)}.")
    if state.failed_brokers:
        lines.append(f"Brokers reported as failed: {compact_list(sorted(state.failed_brokers))}.")
    if not (state.plans or state.reassignments):
        lines.append("There are no plans.")
    return lines


def _limits(limits: Limits) -> str:
    return (
        f"at most {plural(limits.max_partitions_in_flight, 'partition')} in flight, "
        f"{plural(limits.max_moves_per_broker, 'move')} per broker, "
        f"{plural(limits.max_replicas_per_step, 'replica')} per step ({limits.stepping.value})"
    )


def _tables(state: ClusterState) -> "list[RenderableType]":
    parts: list[RenderableType] = []
    for columns, rows in (
        (("plan", "status", "active", "done", "rolled back", "failed", "by", "reason"), _plans(state)),
        (("partition", "plan", "state", "step", "replicas", "now", "since", "waits for"), _reassignments(state)),
        (("queued behind", "plan", "target", "since"), _queue(state)),
        (("move of others", "replicas", "adding", "removing", "since"), _unmanaged(state)),
        (("broker throttle", "before", "wanted", "state"), _broker_throttles(state)),
        (("topic throttle", "leaders", "followers", "state"), _topic_throttles(state)),
    ):
        if rows:
            parts += [styled(""), table(columns, rows, fit=Fit(below=("waits for", "reason")))]
    return parts


def _plans(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (
            plan.name,
            plan.status.value,
            *(str(count) for count in (plan.active, plan.completed, plan.rolled_back, plan.failed)),
            plan.by,
            plan.reason,
        )
        for plan in state.plans.values()
    ]


def _reassignments(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (
            str(entry.key),
            entry.plan,
            entry.phase.value,
            "-" if entry.step is None else str(entry.step.number),
            f"{compact_list(entry.original)} → {compact_list(entry.target)}",
            compact_list(entry.current),
            timestamp(entry.since_ms),
            _block(entry.block),
        )
        for entry in state.reassignments.values()
    ]


def _queue(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (str(key), entry.plan, compact_list(entry.target), timestamp(entry.since_ms))
        for key, entry in state.queue.items()
    ]


def _unmanaged(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (
            str(key),
            compact_list(move.replicas),
            compact_list(move.adding),
            compact_list(move.removing),
            timestamp(move.since_ms),
        )
        for key, move in sorted(state.unmanaged.items())
    ]


def _broker_throttles(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (str(broker), _rates(entry.baseline), _rates(entry.intended), _pending(entry.pending))
        for broker, entry in sorted(state.broker_throttles.items())
    ]


def _topic_throttles(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (topic, ",".join(entry.present.leader), ",".join(entry.present.follower), _pending(entry.pending))
        for topic, entry in sorted(state.topic_throttles.items())
    ]


def _pending(pending: object) -> str:
    return "being written" if pending else "in force"


def _rates(rates: Rates) -> str:
    sides: Mapping[str, int | None] = {"leader": rates.leader, "follower": rates.follower}
    return ", ".join(f"{side} {amount(rate)}/s" for side, rate in sides.items() if rate is not None) or "none"


def _block(block: Block | None) -> str:
    return "" if block is None else f"{block.why.value}: {block.detail}"
