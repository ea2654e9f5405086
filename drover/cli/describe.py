"""`drover describe`: what lies where in a cluster, who leads, what is out of sync, and how even it is."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from drover.cli.describe_view import balance_lines, print_rows, summary_lines
from drover.cli.files import write_text
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.model_file import save_model
from drover.cli.model_source import read_model, source_of, source_options, topics_matching
from drover.cli.output import output_option, plural, print_document, say
from drover.cli.parameters import NamedPath
from drover.cli.plan_file import stock_json
from drover.cli.proposal_view import print_directories
from drover.client.views.describe_rows import (
    Row,
    broker_rows,
    partition_rows,
    rack_rows,
    topic_rows,
    totals_of,
)
from drover.errors import ConfigurationError
from drover.planner.disks import disk_remarks
from drover.planner.model import ClusterModel, Partition

EVERY = ""


@click.command()
@click.option(
    "--topic", is_flag=False, flag_value=EVERY, metavar="[NAME]", help="By topic; or a topic's partitions (* and ?)."
)
@click.option(
    "--broker", is_flag=False, flag_value=EVERY, metavar="[ID]", help="By broker, as without it; or one's partitions."
)
@click.option("--rack", is_flag=False, flag_value=EVERY, metavar="[NAME]", help="By rack; or a rack's partitions.")
@click.option("--include-internal", is_flag=True, help="List the topics of Kafka and of Drover itself too.")
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
    """Show the present assignment: replicas, leaders, ISR, sizes, disks, racks, and how even they are.

    -o json prints the assignment of the partitions in question in the format of kafka-reassign-partitions, ready to be
    edited and submitted with `drover alter`; jsonl and yaml print the rows of the table.
    """
    if sum(view is not None for view in (topic, broker, rack)) > 1:
        raise click.UsageError("choose one of --topic, --broker and --rack")
    model = read_model(invocation, source_of(options), with_log=False)
    chosen = _chosen(model, topic, broker, rack)
    listed = [one for one in chosen if include_internal or not one.internal]
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
    resting = [one for one in listed if not one.moving]
    say(stock_json((one.topic, one.partition, one.replicas) for one in resting), nl=False)
    if len(resting) < len(listed):
        # Kafka shows what it has and what it goes to in one list: to submit that would ask for both.
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
    """Return the partitions in question. Raises `ConfigurationError` for a topic, broker or rack that is not there."""
    if topic:
        names = set(topics_matching([topic], model))
        return [one for one in model.partitions if one.topic in names]
    if broker:
        return _on(model, _broker(model, broker))
    if rack:
        members = {one.id for one in model.brokers if one.rack == rack}
        if not members:
            known = sorted({one.rack for one in model.brokers if one.rack is not None})
            raise ConfigurationError(f"there is no rack {rack}; there are: {', '.join(known) or 'none'}")
        return _on(model, members)
    return model.partitions


def _broker(model: ClusterModel, text: str) -> set[int]:
    known = {row.broker for row in broker_rows(model)}
    # Python refuses to read thousands of digits.
    meant = {one for one in known if text.isdecimal() and text.lstrip("0").rjust(1, "0") == str(one)}
    if not meant:
        raise ConfigurationError(f"there is no broker {text}; there are {', '.join(map(str, sorted(known)))}")
    return meant


def _on(model: ClusterModel, brokers: set[int]) -> list[Partition]:
    return [one for one in model.partitions if not brokers.isdisjoint(one.replicas)]


def _rows(
    model: ClusterModel, listed: Sequence[Partition], topic: str | None, broker: str | None, rack: str | None
) -> Sequence[Row]:
    if topic or broker or rack:
        return partition_rows(model, listed)
    if topic is not None:
        return topic_rows(model, listed)
    return broker_rows(model) if rack is None else rack_rows(model)
