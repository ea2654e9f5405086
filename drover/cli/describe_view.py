"""The rows of `describe` as tables for people, and what is said below them."""

from collections.abc import Callable, Sequence
from typing import Any

from drover.cli.columns import Fit
from drover.cli.output import amount, console, plural, say, table
from drover.client.views.describe_rows import BrokerRow, PartitionRow, RackRow, Row, TopicRow, Totals
from drover.planner.assess import assess
from drover.planner.model import ClusterModel
from drover.planner.proposal import BalanceFigures, Spread
from drover.unreachable import unreachable_sentence

RIGHT = frozenset(
    {
        "partition", "partitions", "replicas", "leaders", "preferred", "out of sync", "bytes", "disk", "free",
        "written", "offline", "under-replicated", "moving", "not spread", "led elsewhere", "size", "alive",
    }
)  # fmt: skip


def print_rows(rows: Sequence[Row]) -> None:
    """Print rows of one kind as a table, without the columns that say nothing."""
    if not rows:
        return
    columns, cells, fit = _TABLES[type(rows[0])]
    lines = [cells(row) for row in rows]
    kept = [index for index in range(len(columns)) if any(line[index] for line in lines)]
    names = [columns[index] for index in kept]
    right = RIGHT - {"replicas"} if isinstance(rows[0], PartitionRow) else RIGHT
    told = [[line[index] for index in kept] for line in lines]
    console().print(table(names, told, right=tuple(right), fit=fit))
    say()


def balance_lines(model: ClusterModel) -> list[str]:
    """Say how even replicas, bytes and preferred leaders lie on the living brokers."""
    return [f"Balance over the living brokers: {balance(assess(model, {}).before)}"]


def balance(figures: BalanceFigures) -> str:
    """Write the highest and the lowest broker's share of the mean."""
    named = (("replicas", figures.count), ("bytes", figures.disk), ("preferred leaders", figures.leaders))
    return ", ".join(f"{name} {spread(found)}" for name, found in named) + " (highest and lowest, of the mean)"


def spread(found: Spread) -> str:
    """Write the highest and lowest share of the mean."""
    return f"{found.highest:.3f}/{found.lowest:.3f}"


def summary_lines(totals: Totals) -> list[str]:
    """Say what there is, and what is not as it should be."""
    first = (
        f"{plural(totals.topics, 'topic')}, {plural(totals.partitions, 'partition')}, "
        f"{plural(totals.replicas, 'replica')}, {amount(totals.bytes)} on {plural(totals.brokers, 'broker')} in "
        f"{plural(totals.racks, 'rack')}."
    )
    found = [
        f"{count:,} {what}"
        for count, what in (
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
    dead = [f"Dead: broker {', '.join(map(str, totals.dead))}."] if totals.dead else []
    if totals.unreachable:
        dead.append(unreachable_sentence(totals.unreachable))
    return [first, *dead, f"Partitions: {', '.join(found)}." if found else "Every partition is as it should be."]


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
        _rate(row.ingest_bytes_per_s),
    )


def _rack_cells(row: RackRow) -> tuple[str, ...]:
    return (
        row.rack or "(none)",
        ", ".join(map(str, row.brokers)),
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
        ", ".join(map(str, row.replication_factors)),
        amount(row.bytes),
        _rate(row.ingest_bytes_per_s),
        _count(row.offline),
        _count(row.under_replicated),
        _count(row.moving),
        _count(row.not_spread),
        _count(row.led_elsewhere),
    )


def _partition_cells(row: PartitionRow) -> tuple[str, ...]:
    return (
        f"{row.topic}:{row.partition}",
        ", ".join(map(str, row.replicas)),
        "" if row.target is None else ", ".join(map(str, row.target)),
        ", ".join(map(str, row.adding)),
        ", ".join(map(str, row.removing)),
        "none" if row.leader is None else str(row.leader),
        ", ".join(map(str, row.isr)),
        ", ".join(rack or "-" for rack in row.racks) if any(row.racks) else "",
        _amount(row.size_bytes),
        _rate(row.ingest_bytes_per_s),
        "; ".join(row.notes),
    )


_TABLES: dict[type[Row], tuple[tuple[str, ...], Callable[[Any], tuple[str, ...]], Fit]] = {
    BrokerRow: (
        ("broker", "rack", "state", "replicas", "leaders", "preferred", "out of sync", "bytes", "disk", "free",
         "written"),
        _broker_cells,
        Fit(spare=("written", "preferred", "leaders", "disk", "replicas", "rack", "free", "bytes")),
    ),
    RackRow: (
        ("rack", "brokers", "alive", "replicas", "leaders", "preferred", "bytes", "free"),
        _rack_cells,
        Fit(prose=("brokers",), spare=("preferred", "leaders", "replicas", "free", "bytes")),
    ),
    TopicRow: (
        ("topic", "partitions", "replication factor", "bytes", "written", "offline", "under-replicated", "moving",
         "not spread", "led elsewhere"),
        _topic_cells,
        Fit(spare=("written", "replication factor", "led elsewhere", "not spread", "bytes", "moving", "partitions")),
    ),
    PartitionRow: (
        ("partition", "replicas", "target", "adding", "removing", "leader", "in sync", "racks", "size", "written",
         "notes"),
        _partition_cells,
        Fit(below=("notes",), spare=("written", "racks", "size", "removing", "adding", "in sync", "leader")),
    ),
}  # fmt: skip


def _count(count: int) -> str:
    return f"{count:,}" if count else ""


def _amount(size: int | None) -> str:
    return "" if size is None else amount(size)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{amount(rate)}/s"
