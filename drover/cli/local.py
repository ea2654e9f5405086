"""`drover local`: a real Kafka cluster on this machine, for trying things out; thin over `drover.local`."""

import asyncio
import shlex
import signal
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from drover.cli.output import output_option, print_document, say
from drover.cli.parameters import NamedPath
from drover.jars import KAFKA_VERSION, kafka_versions
from drover.local import ClusterStatus, LocalCluster, prepare
from drover.local.layout import ADMIN, OPERATOR, WORKER, check_version
from drover.local.seed import seed as seed_topic

DEFAULT_DIRECTORY = Path(".local") / "cluster"

Result = TypeVar("Result")

directory_option = click.option(
    "--dir",
    "directory",
    type=NamedPath(file_okay=False),
    default=DEFAULT_DIRECTORY,
    show_default=True,
    help="The cluster's directory.",
)
node_argument = click.argument("node", metavar="NODE")


@click.group()
def local() -> None:
    """Run a real Kafka cluster and a ZooKeeper on this machine.

    NODE is a broker's id, 100 for the controller (101 and so on for more), or `zookeeper`.
    """


@local.command()
@click.option("--brokers", type=int, help="How many brokers, at least 3.  [default: 4]")
@click.option("--racks", type=int, help="How many racks to spread them over.  [default: 3]")
@click.option("--secure", is_flag=True, help="With TLS, a password for every client, and ACLs.")
@click.option(
    "--kafka",
    metavar="VERSION",
    type=click.Choice(kafka_versions()),
    help=f"The version of Kafka: {', '.join(kafka_versions())}.  [default: {KAFKA_VERSION}]",
)
@click.option("--controllers", type=int, help="How many controllers, 1 to 5.  [default: 1]")
@click.option("--zookeeper-mode", is_flag=True, help="Without controllers, with the metadata in ZooKeeper (Kafka 3).")
@directory_option
def up(
    brokers: int | None,
    racks: int | None,
    directory: Path,
    kafka: str | None,
    controllers: int | None,
    *,
    secure: bool,
    zookeeper_mode: bool,
) -> None:
    """Start the cluster and wait until it serves; starts all of it or nothing.

    Other versions than the default are for trying out; their jars are fetched when they are first asked for.
    """
    if controllers is not None and (zookeeper_mode or controllers < 1):
        raise click.UsageError(
            "--zookeeper-mode and --controllers exclude each other"
            if zookeeper_mode
            else "--controllers must be 1 or more"
        )
    wanted = 0 if zookeeper_mode else controllers
    check_version(kafka or KAFKA_VERSION, 1 if wanted is None else wanted, secure=secure)
    # Here and not inside: Ctrl-C ends a download at once.
    cluster = LocalCluster(directory, prepare(kafka or KAFKA_VERSION))
    started = _run(cluster.up(brokers, racks, secure=secure, kafka=kafka, controllers=wanted))
    status = _run(cluster.status())
    console = Console()
    said = "serves" if started else "was already running"
    console.print(f"The cluster in {cluster.directory} {said}.", highlight=False, soft_wrap=True)
    console.print(_table(status))
    where = f" --dir {shlex.quote(str(directory))}"
    lines = _first_steps(cluster)
    states = {str(broker.id): broker.state for broker in status.brokers}
    states |= {**status.controller_states, "zookeeper": status.zookeeper_state}
    remedies = {"dead": "start", "paused": "resume"}
    lines += [f"drover local {remedies[state]} {node}{where}" for node, state in states.items() if state in remedies]
    lines += [f"drover local status{where}", f"drover local down{where}"]
    console.print("Next:", *(f"  {line}" for line in lines), sep="\n", highlight=False, soft_wrap=True)


def _first_steps(cluster: LocalCluster) -> list[str]:
    """Suggest the next commands; in a secure cluster, each as the user who may run it."""

    def config(user: str) -> str:
        return shlex.quote(str(cluster.config_of(user)))

    if not cluster.spec.secure:
        return [f"export DROVER_CONFIG={config(WORKER)}", "drover topics init"]
    return [
        f"drover topics init --config {config(ADMIN)}",
        f"drover worker --config {config(WORKER)}",
        f"export DROVER_CONFIG={config(OPERATOR)}",
    ]


@local.command()
@click.option("--keep", is_flag=True, help="Keep data and ports for the next `up`.")
@directory_option
def down(directory: Path, *, keep: bool) -> None:
    """Stop every process of the cluster and remove its files, whoever started it."""
    cluster = LocalCluster(directory)
    was_there = _run(cluster.down(keep=keep))
    kept = "; its data is kept" if keep else ""
    say(f"The cluster in {cluster.directory} is down{kept}." if was_there else f"Nothing runs in {cluster.directory}.")


@local.command()
@output_option
@directory_option
def status(output: str, directory: Path) -> None:
    """Show every broker: running, starting, paused or dead."""
    found = _run(LocalCluster(directory).status())
    if output == "table":
        Console().print(_table(found))
        return
    document = status_document(found)
    print_document(document, document["brokers"], output)


@local.command()
@node_argument
@directory_option
def kill(node: str, directory: Path) -> None:
    """End a node at once, as a power cut would (kill -9)."""
    _run(LocalCluster(directory).kill(node))
    say(f"Node {node} is dead.")


@local.command()
@node_argument
@directory_option
def pause(node: str, directory: Path) -> None:
    """Stop a node's process: its connections stay open and nothing answers."""
    _run(LocalCluster(directory).pause(node))
    say(f"Node {node} is paused.")


@local.command()
@node_argument
@directory_option
def resume(node: str, directory: Path) -> None:
    """Resume a paused node, and wait until it serves."""
    cluster = LocalCluster(directory)
    _run(cluster.resume(node))
    _run(cluster.wait_until_serving(node))
    say(f"Node {node} serves.")


@local.command()
@node_argument
@click.option(
    "--kafka",
    metavar="VERSION",
    type=click.Choice(kafka_versions()),
    help="Another version for this start, as in a rolling upgrade.  [default: the cluster's]",
)
@directory_option
def start(node: str, directory: Path, kafka: str | None) -> None:
    """Start a dead node on its old data, and wait until it serves."""
    version = LocalCluster(directory).spec.kafka
    started = _run(LocalCluster(directory, prepare(version)).start(node, kafka=kafka))
    say(f"Node {node} serves." if started else f"Node {node} was already running and serves.")


@local.command()
@node_argument
@click.option("-n", "--lines", type=click.IntRange(min=1), help="How many lines to print, from the end.")
@directory_option
def logs(node: str, lines: int | None, directory: Path) -> None:
    """Print the log of a node, earlier runs included."""
    file = LocalCluster(directory).log_file(node)
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    kept = text.splitlines() if lines is None else text.splitlines()[-lines:]
    for line in kept:
        say(line)


@local.command()
@click.argument("topic")
@click.option("--partitions", type=click.IntRange(1, 1000), default=4, show_default=True, help="How many partitions.")
@click.option("--replicas", type=click.IntRange(min=1), default=3, show_default=True, help="How many replicas of each.")
@click.option("--megabytes", type=click.IntRange(0, 1024), default=4, show_default=True, help="Data per partition.")
@directory_option
def seed(topic: str, partitions: int, replicas: int, megabytes: int, directory: Path) -> None:
    """Create TOPIC and fill it with data, to have something to move.

    Partition 0 is on brokers 1, 2, 3, partition 1 on 2, 3, 4, and so on in a ring.
    """
    connection = LocalCluster(directory).connection()
    _run(seed_topic(connection, topic, partitions=partitions, replicas=replicas, megabytes=megabytes))
    say(f"Topic {topic} has {partitions} partitions of {megabytes} MB, {replicas} replicas each.")


def status_document(found: ClusterStatus) -> dict[str, Any]:
    """Return the JSON form of a status; public, fields may be added and never changed."""
    return {
        "kafka": found.kafka,
        "bootstrap": found.bootstrap,
        "zookeeper": found.zookeeper,
        "brokers": [{"id": broker.id, "rack": broker.rack, "state": broker.state} for broker in found.brokers],
    }


def _table(found: ClusterStatus) -> Table:
    colours = {"running": "green", "dead": "red"}
    table = Table("broker", "rack", "address", "state")
    for broker, address in zip(found.brokers, found.bootstrap.split(","), strict=True):
        table.add_row(str(broker.id), broker.rack, address, broker.state, style=colours.get(broker.state, "yellow"))
    controllers = [f"controller {node} {state}" for node, state in found.controller_states.items()]
    zookeeper = f"ZooKeeper {found.zookeeper} {found.zookeeper_state}"
    table.caption = ", ".join((f"Kafka {found.kafka}", *controllers, zookeeper))
    return table


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run one piece of work; Ctrl-C and SIGTERM cancel it, so that what it started is taken down."""
    try:
        return asyncio.run(_cancelled_by_sigterm(work))
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error  # SIGTERM: everything is down by now


async def _cancelled_by_sigterm(work: Coroutine[Any, Any, Result]) -> Result:
    task = asyncio.ensure_future(work)
    if threading.current_thread() is threading.main_thread():  # signals reach no other
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task
