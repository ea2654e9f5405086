"""`drover describe`: the replicas, leaders, out-of-sync replicas and balance of a cluster."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from drover.cli.help import BROKERS, TOPICS, drover_command
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.model import read_model, save_model, source_of, source_options, topics_matching
from drover.cli.output import (
    Fit,
    amount,
    console,
    listed,
    output_option,
    plural,
    print_document,
    say,
    table,
    write_text,
)
from drover.cli.parameters import NamedPath
from drover.cli.plan_file import stock_json
from drover.cli.proposal import print_directories
from drover.client.views.describe_rows import (
    BrokerRow,
    PartitionRow,
    RackRow,
    Row,
    TopicRow,
    Totals,
    broker_rows,
    partition_rows,
    rack_rows,
    topic_rows,
    totals_of,
)
from drover.errors import ConfigurationError
from drover.planner.assess import assess
from drover.planner.disks import disk_remarks
from drover.planner.model import ClusterModel, Partition
from drover.planner.proposal import BalanceFigures, Spread
from drover.unreachable import unreachable_sentence

EVERY = ""


@drover_command(example="drover describe --topic 'orders*'")
@click.option(
    "--topic",
    shell_complete=TOPICS,
    is_flag=False,
    flag_value=EVERY,
    metavar="[NAME]",
    help="By topic; or the partitions of NAME (* and ?).",
)
@click.option(
    "--broker",
    shell_complete=BROKERS,
    is_flag=False,
    flag_value=EVERY,
    metavar="[ID]",
    help="By broker (the default); or the partitions of ID.",
)
@click.option("--rack", is_flag=False, flag_value=EVERY, metavar="[NAME]", help="By rack; or the partitions of NAME.")
@click.option("--include-internal", is_flag=True, help="Include the topics of Kafka and of Drover itself.")
@click.option(
    "--save",
    type=NamedPath(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the cluster to a file, for `drover plan --model`.",
)
@source_options
@output_option
@common_options
@pass_invocation
def describe(
    invocation: Invocation,
    topic: str | None,
    broker: str | None,
    rack: str | None,
    save: Path | None,
    output: str,
    *,
    include_internal: bool,
    **options: Any,
) -> None:
    """Show the current assignment: replicas, leaders, ISR, sizes, disks, racks, and how balanced they are.

    -o json prints the assignment of the chosen partitions in the format of kafka-reassign-partitions, ready to be
    edited and submitted with `drover alter`; jsonl and yaml print the rows of the table.
    """
    if sum(view is not None for view in (topic, broker, rack)) > 1:
        raise click.UsageError("choose one of --topic, --broker and --rack")
    model = read_model(invocation, source_of(options), with_log=False)
    chosen = _chosen(model, topic, broker, rack)
    listed = [partition for partition in chosen if include_internal or not partition.internal]
    if save is not None:
        write_text(save, save_model(model), "cluster model")
        say(f"Wrote the cluster to {save}.", err=True)
        return
    if output == "json":
        _print_stock(listed)
        print_directories(disk_remarks(model), err=True)
    else:
        _show(model, _rows(model, listed, topic, broker, rack), output)
    if len(listed) < len(chosen) and (output == "json" or topic is not None or broker or rack):
        left = len(chosen) - len(listed)
        are = "is" if left == 1 else "are"
        say(f"{plural(left, 'partition')} of internal topics {are} left out; --include-internal lists them.", err=True)


def _print_stock(listed: Sequence[Partition]) -> None:
    resting = [partition for partition in listed if not partition.moving]
    say(stock_json((partition.topic, partition.partition, partition.replicas) for partition in resting), nl=False)
    if len(resting) < len(listed):
        # While a partition moves, Kafka lists old and new replicas together; submitting that list would keep both.
        left = len(listed) - len(resting)
        say(f"{plural(left, 'partition')} left out because of a move under way.", err=True)


def _show(model: ClusterModel, rows: Sequence[Row], output: str) -> None:
    if output != "table":
        documents = [row.document() for row in rows]
        remarks = [asdict(remark) for remark in disk_remarks(model)]
        whole = {"totals": totals_of(model).document(), "rows": documents, "log_directories": remarks}
        print_document(whole, documents, output)
        return
    print_rows(rows)
    for line in (*balance_lines(model), *summary_lines(totals_of(model))):
        say(line)
    print_directories(disk_remarks(model))


def _chosen(model: ClusterModel, topic: str | None, broker: str | None, rack: str | None) -> Sequence[Partition]:
    """Return the chosen partitions. Raises `ConfigurationError` for a topic, broker or rack that does not exist."""
    if topic:
        names = set(topics_matching([topic], model))
        return [partition for partition in model.partitions if partition.topic in names]
    if broker:
        return _on(model, _matching_brokers(model, broker))
    if rack:
        members = {member.id for member in model.brokers if member.rack == rack}
        if not members:
            racks = sorted({member.rack for member in model.brokers if member.rack is not None})
            raise ConfigurationError(f"there is no rack {rack}; there are: {', '.join(racks) or 'none'}")
        return _on(model, members)
    return model.partitions


def _matching_brokers(model: ClusterModel, text: str) -> set[int]:
    ids = {row.broker for row in broker_rows(model)}
    # Compared as text, because `int` refuses thousands of digits.
    meant = {id_ for id_ in ids if text.isdecimal() and text.lstrip("0").rjust(1, "0") == str(id_)}
    if not meant:
        raise ConfigurationError(f"there is no broker {text}; there are {listed(sorted(ids))}")
    return meant


def _on(model: ClusterModel, brokers: set[int]) -> list[Partition]:
    return [partition for partition in model.partitions if not brokers.isdisjoint(partition.replicas)]


def _rows(
    model: ClusterModel, listed: Sequence[Partition], topic: str | None, broker: str | None, rack: str | None
) -> Sequence[Row]:
    if topic or broker or rack:
        return partition_rows(model, listed)
    if topic is not None:
        return topic_rows(model, listed)
    return broker_rows(model) if rack is None else rack_rows(model)


RIGHT = frozenset(
    {
        "partition", "partitions", "replicas", "leaders", "preferred", "out of sync", "bytes", "disk", "free",
        "written", "read", "offline", "under-replicated", "moving", "not spread", "led elsewhere", "size", "alive",
    }
)  # fmt: skip


def print_rows(rows: Sequence[Row]) -> None:
    """Print rows of one kind as a table, without empty columns."""
    if not rows:
        return
    columns, cells, fit = _TABLES[type(rows[0])]
    lines = [cells(row) for row in rows]
    filled = [index for index in range(len(columns)) if any(line[index] for line in lines)]
    names = [columns[index] for index in filled]
    right = RIGHT - {"replicas"} if isinstance(rows[0], PartitionRow) else RIGHT
    filled_cells = [[line[index] for index in filled] for line in lines]
    console().print(table(names, filled_cells, right=tuple(right), fit=fit))
    say()


def balance_lines(model: ClusterModel) -> list[str]:
    """Say how evenly replicas, bytes and preferred leaders are spread over the living brokers."""
    return [f"Balance over the living brokers: {balance(assess(model, {}).before)}"]


def balance(figures: BalanceFigures) -> str:
    """Format the highest and the lowest broker's share of the mean, per figure."""
    named = (("replicas", figures.count), ("bytes", figures.disk), ("preferred leaders", figures.leaders))
    return ", ".join(f"{name} {spread(shares)}" for name, shares in named) + " (highest and lowest, of the mean)"


def spread(shares: Spread) -> str:
    """Format the highest and lowest share of the mean."""
    return f"{shares.highest:.3f}/{shares.lowest:.3f}"


def summary_lines(totals: Totals) -> list[str]:
    """Summarize the cluster, and list its problems."""
    first = (
        f"{plural(totals.topics, 'topic')}, {plural(totals.partitions, 'partition')}, "
        f"{plural(totals.replicas, 'replica')}, {amount(totals.bytes)} on {plural(totals.brokers, 'broker')} in "
        f"{plural(totals.racks, 'rack')}."
    )
    problems = [
        f"{count:,} {problem}"
        for count, problem in (
            (totals.offline, "without a leader"),
            (totals.led_unseen, "led by an unreachable broker"),
            (totals.under_replicated, "under-replicated"),
            (totals.moving, "moving"),
            (totals.not_spread, "in fewer racks than possible"),
            (totals.led_elsewhere, "not led by their preferred leader"),
            (totals.unknown_sizes, "of unknown size"),
        )
        if count
    ]
    dead = [f"Dead: broker {listed(totals.dead)}."] if totals.dead else []
    if totals.unreachable:
        dead.append(unreachable_sentence(totals.unreachable))
    return [first, *dead, f"Partitions: {', '.join(problems)}." if problems else "Every partition is as it should be."]


def _broker_cells(row: BrokerRow) -> tuple[str, ...]:
    return (
        str(row.broker),
        row.rack or "",
        row.state,
        f"{row.replicas:,}",
        f"{row.leaders:,}",
        f"{row.preferred:,}",
        _count(row.out_of_sync),
        amount(row.bytes),
        _amount(row.disk_total_bytes),
        _amount(row.disk_free_bytes),
        _rate(row.write_bytes_per_s),
        _rate(row.read_bytes_per_s),
    )


def _rack_cells(row: RackRow) -> tuple[str, ...]:
    return (
        row.rack or "(none)",
        listed(row.brokers),
        f"{row.alive:,}",
        f"{row.replicas:,}",
        f"{row.leaders:,}",
        f"{row.preferred:,}",
        amount(row.bytes),
        _amount(row.disk_free_bytes),
    )


def _topic_cells(row: TopicRow) -> tuple[str, ...]:
    return (
        row.topic,
        f"{row.partitions:,}",
        listed(row.replication_factors),
        amount(row.bytes),
        _rate(row.write_bytes_per_s),
        _rate(row.read_bytes_per_s),
        _count(row.offline),
        _count(row.under_replicated),
        _count(row.moving),
        _count(row.not_spread),
        _count(row.led_elsewhere),
    )


def _partition_cells(row: PartitionRow) -> tuple[str, ...]:
    return (
        f"{row.topic}:{row.partition}",
        listed(row.replicas),
        "" if row.target is None else listed(row.target),
        listed(row.adding),
        listed(row.removing),
        "none" if row.leader is None else str(row.leader),
        listed(row.isr),
        ", ".join(rack or "-" for rack in row.racks) if any(row.racks) else "",
        _amount(row.size_bytes),
        _rate(row.write_bytes_per_s),
        _rate(row.read_bytes_per_s),
        "; ".join(row.notes),
    )


_TABLES: dict[type[Row], tuple[tuple[str, ...], Callable[[Any], tuple[str, ...]], Fit]] = {
    BrokerRow: (
        ("broker", "rack", "state", "replicas", "leaders", "preferred", "out of sync", "bytes", "disk", "free",
         "written", "read"),
        _broker_cells,
        Fit(spare=("read", "written", "preferred", "leaders", "disk", "replicas", "rack", "free", "bytes")),
    ),
    RackRow: (
        ("rack", "brokers", "alive", "replicas", "leaders", "preferred", "bytes", "free"),
        _rack_cells,
        Fit(prose=("brokers",), spare=("preferred", "leaders", "replicas", "free", "bytes")),
    ),
    TopicRow: (
        ("topic", "partitions", "replication factor", "bytes", "written", "read", "offline", "under-replicated",
         "moving", "not spread", "led elsewhere"),
        _topic_cells,
        Fit(
            spare=("read", "written", "replication factor", "led elsewhere", "not spread", "bytes", "moving",
                   "partitions")
        ),
    ),
    PartitionRow: (
        ("partition", "replicas", "target", "adding", "removing", "leader", "in sync", "racks", "size", "written",
         "read", "notes"),
        _partition_cells,
        Fit(below=("notes",), spare=("read", "written", "racks", "size", "removing", "adding", "in sync", "leader")),
    ),
}  # fmt: skip


def _count(count: int) -> str:
    return f"{count:,}" if count else ""


def _amount(size: int | None) -> str:
    return "" if size is None else amount(size)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{amount(rate)}/s"
