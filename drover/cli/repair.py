"""`drover repair`: end moves that Kafka itself can never end."""

from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.parameters import Partition
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.events.commands import PartitionName, Repair
from drover.events.partitions import TopicPartition


@click.command()
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=Partition(),
    metavar="T:P",
    help="May be repeated.  [default: all known ones]",
)
@write_options
@pass_invocation
def repair(invocation: Invocation, partitions: tuple[TopicPartition, ...], **options: Any) -> None:
    """End moves in which a broker is both being added and being removed, whoever started them.

    Kafka never ends such a move by itself; `drover status` names them.
    """
    connection, cluster = connect(invocation)
    request = make_request(invocation, "repair", cluster, options)
    named = tuple(PartitionName(key.topic, key.partition) for key in dict.fromkeys(partitions))
    send_one(connection, Repair(**request.envelope, partitions=named or None), request)
