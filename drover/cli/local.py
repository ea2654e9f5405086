"""`drover local` and `drover demo`: a real Kafka cluster on this machine, and a guided tour on it."""

import asyncio
import json
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from drover.cli.help import drover_command, drover_group
from drover.cli.output import output_option, print_document, say
from drover.cli.parameters import NamedPath
from drover.client.history import FoldedLog, fold_shards
from drover.errors import LogUnavailableError
from drover.events.partitions import TopicPartition
from drover.jars import KAFKA_VERSION, kafka_versions
from drover.journal.connection import LogConnection
from drover.local import ClusterStatus, LocalCluster, local_cluster, prepare, wait_until
from drover.local.layout import ADMIN, OPERATOR, WORKER, check_version
from drover.local.seed import assignment
from drover.local.seed import seed as seed_topic
from drover.settings.sources import load_settings
from drover.state.cluster import ClusterState

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
BROKERS = 4
TOPIC, PARTITIONS, MEGABYTES = "orders", 8, 8
PLAN, THROTTLE = "friday-drain", "700kB"
# Short, for a quick takeover; the default is 10 s.
SESSION_TIMEOUT_MS = 6000
MANAGED = "local"
LOOK_EVERY_S = 2.0


@drover_group()
def local() -> None:
    """Run a real Kafka cluster and a ZooKeeper on this machine.

    NODE is a broker's id, 100 for the controller (101 and so on for more), or `zookeeper`.
    """


@local.command(example="drover local up --brokers 5")
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
    """Start the cluster and wait until it serves; if a part does not start, stop all of it.

    Versions other than the default are for trying out; their jars are fetched on first use.
    """
    if controllers is not None and (zookeeper_mode or controllers < 1):
        raise click.UsageError(
            "--zookeeper-mode and --controllers exclude each other"
            if zookeeper_mode
            else "--controllers must be 1 or more"
        )
    wanted = 0 if zookeeper_mode else controllers
    check_version(kafka or KAFKA_VERSION, 1 if wanted is None else wanted, secure=secure)
    # Outside the event loop, so that Ctrl-C ends a download at once.
    cluster = LocalCluster(directory, prepare(kafka or KAFKA_VERSION))
    started = _run(cluster.up(brokers, racks, secure=secure, kafka=kafka, controllers=wanted, tell=_tell))
    status = _run(cluster.status())
    console = Console()
    verb = "serves" if started else "was already running"
    console.print(f"The cluster in {cluster.directory} {verb}.", highlight=False, soft_wrap=True)
    console.print(_status_table(status))
    where = f" --dir {shlex.quote(str(directory))}"
    lines = _first_steps(cluster)
    states = {str(broker.id): broker.state for broker in status.brokers}
    states |= {**status.controller_states, "zookeeper": status.zookeeper_state}
    remedies = {"dead": "start", "paused": "resume"}
    lines += [f"drover local {remedies[state]} {node}{where}" for node, state in states.items() if state in remedies]
    lines += [f"drover local status{where}", f"drover local down{where}"]
    console.print("Next:", *(f"  {line}" for line in lines), sep="\n", highlight=False, soft_wrap=True)


def _tell(line: str) -> None:
    """Say what is done next, beside the output."""
    say(line, err=True)


def _first_steps(cluster: LocalCluster) -> list[str]:
    """Return the next commands to try; in a secure cluster, each with the settings of a user who may run it."""

    def config(user: str) -> str:
        return shlex.quote(str(cluster.config_of(user)))

    if not cluster.spec.secure:
        return [f"export DROVER_CONFIG={config(WORKER)}", "drover log init"]
    return [
        f"drover log init --config {config(ADMIN)}",
        f"drover worker --config {config(WORKER)}",
        f"export DROVER_CONFIG={config(OPERATOR)}",
    ]


@local.command(example="drover local down --keep")
@click.option("--keep", is_flag=True, help="Keep data and ports for the next `up`.")
@directory_option
def down(directory: Path, *, keep: bool) -> None:
    """Stop every process of the cluster and remove its files, no matter who started it."""
    cluster = LocalCluster(directory)
    was_there = _run(cluster.down(keep=keep))
    note = "; its data is kept" if keep else ""
    say(f"The cluster in {cluster.directory} is down{note}." if was_there else f"Nothing runs in {cluster.directory}.")


@local.command(example="drover local status")
@output_option
@directory_option
def status(output: str, directory: Path) -> None:
    """Show every broker: running, starting, paused or dead."""
    cluster_status = _run(LocalCluster(directory).status())
    if output == "table":
        Console().print(_status_table(cluster_status))
        return
    document = status_document(cluster_status)
    print_document(document, document["brokers"], output)


@local.command(example="drover local kill 3")
@node_argument
@directory_option
def kill(node: str, directory: Path) -> None:
    """Kill a node at once, as a power cut would (kill -9)."""
    _run(LocalCluster(directory).kill(node))
    say(f"Node {node} is dead.")


@local.command(example="drover local pause 3")
@node_argument
@directory_option
def pause(node: str, directory: Path) -> None:
    """Stop a node's process: its connections stay open, but it does not answer."""
    _run(LocalCluster(directory).pause(node))
    say(f"Node {node} is paused.")


@local.command(example="drover local resume 3")
@node_argument
@directory_option
def resume(node: str, directory: Path) -> None:
    """Resume a paused node, and wait until it serves."""
    cluster = LocalCluster(directory)
    _run(cluster.resume(node))
    _run(cluster.wait_until_serving(node))
    say(f"Node {node} serves.")


@local.command(example="drover local start 3")
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


@local.command(example="drover local logs 3 -n 50")
@node_argument
@click.option("-n", "--lines", type=click.IntRange(min=1), help="How many lines to print, from the end.")
@directory_option
def logs(node: str, lines: int | None, directory: Path) -> None:
    """Print the log of a node, earlier runs included."""
    file = LocalCluster(directory).log_file(node)
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    shown = text.splitlines() if lines is None else text.splitlines()[-lines:]
    for line in shown:
        say(line)


@local.command(example="drover local seed orders --partitions 6 --megabytes 30")
@click.argument("topic")
@click.option("--partitions", type=click.IntRange(1, 1000), default=4, show_default=True, help="How many partitions.")
@click.option("--replicas", type=click.IntRange(min=1), default=3, show_default=True, help="How many replicas of each.")
@click.option("--megabytes", type=click.IntRange(0, 1024), default=4, show_default=True, help="Data per partition.")
@directory_option
def seed(topic: str, partitions: int, replicas: int, megabytes: int, directory: Path) -> None:
    """Create TOPIC and fill it with data, so that there is something to move.

    Partition 0 is on brokers 1, 2, 3, partition 1 on 2, 3, 4, and so on in a ring.
    """
    connection = LocalCluster(directory).connection()
    _run(seed_topic(connection, topic, partitions=partitions, replicas=replicas, megabytes=megabytes, tell=_tell))
    say(f"Topic {topic} has {partitions} partitions of {megabytes} MB, {replicas} replicas each.")


def status_document(status: ClusterStatus) -> dict[str, Any]:
    """Return the JSON form of a status; public, fields may be added and never changed."""
    return {
        "kafka": status.kafka,
        "bootstrap": status.bootstrap,
        "zookeeper": status.zookeeper,
        "brokers": [{"id": broker.id, "rack": broker.rack, "state": broker.state} for broker in status.brokers],
    }


def _status_table(status: ClusterStatus) -> Table:
    colours = {"running": "green", "dead": "red"}
    table = Table("broker", "rack", "address", "state")
    for broker, address in zip(status.brokers, status.bootstrap.split(","), strict=True):
        table.add_row(str(broker.id), broker.rack, address, broker.state, style=colours.get(broker.state, "yellow"))
    controllers = [f"controller {node} {state}" for node, state in status.controller_states.items()]
    zookeeper = f"ZooKeeper {status.zookeeper} {status.zookeeper_state}"
    table.caption = ", ".join((f"Kafka {status.kafka}", *controllers, zookeeper))
    return table


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine; Ctrl-C and SIGTERM cancel it, so that it can stop the processes that it started."""
    try:
        return asyncio.run(_cancelled_by_sigterm(work))
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error  # by SIGTERM, and every process is stopped by now


async def _cancelled_by_sigterm(work: Coroutine[Any, Any, Result]) -> Result:
    task = asyncio.ensure_future(work)
    if threading.current_thread() is threading.main_thread():  # only this thread can handle signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


FIRST = TopicPartition(TOPIC, 0)


@dataclass(slots=True)
class Worker:
    """A worker process of the demo."""

    name: str
    process: asyncio.subprocess.Process


class Stage:
    """The demo's narrator: explains each step, and runs `drover` as a user would."""

    def __init__(self, console: Console, directory: Path, config: Path) -> None:
        self.console = console
        self._directory = directory
        self.config = config

    def say(self, text: str) -> None:
        """Announce the next step."""
        self.console.print(f"\n[bold]{text}[/bold]")

    async def run(self, *arguments: str) -> None:
        """Show a command, run it, and show its output; a command that fails ends the demo."""
        self.console.print(f"[cyan]$ drover {shlex.join(arguments)}[/cyan]")
        process = await self._start(arguments, asyncio.subprocess.PIPE)
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                # The demo is stopping: its commands must end before the cluster that they write to.
                process.kill()
                await process.wait()
        self.console.print(output.decode(errors="replace").rstrip(), markup=False)
        if process.returncode:
            raise click.ClickException(f"drover {shlex.join(arguments)} ended with {process.returncode}")

    async def start_worker(self, name: str) -> Worker:
        """Start a worker in the background; its log goes to a file."""
        arguments = ("worker", "--name", name, "--listen", "127.0.0.1:0")
        self.console.print(f"[cyan]$ drover {shlex.join(arguments)} &[/cyan]")
        with (self._directory / f"{name}.log").open("wb") as log_file:
            return Worker(name, await self._start(arguments, log_file.fileno()))

    async def _start(self, arguments: tuple[str, ...], output: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "drover",
            "--config",
            str(self.config),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )


@drover_command(example="drover demo --web")
@click.option("--web", "with_page", is_flag=True, help="Serve the page, and keep everything running until Ctrl-C.")
def demo(*, with_page: bool) -> None:
    """Watch moves, a rollback and a takeover on a real Kafka; takes about a minute and leaves nothing behind."""
    prepare()  # outside the event loop, so that Ctrl-C ends a download at once
    try:
        asyncio.run(_until_told_to_stop(with_page=with_page))
    except asyncio.CancelledError as error:  # by SIGTERM, and every process is stopped by now
        raise KeyboardInterrupt from error


async def _until_told_to_stop(*, with_page: bool) -> None:
    task = asyncio.ensure_future(_play(with_page=with_page))
    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task


async def _play(*, with_page: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="drover-demo-") as name:
        directory = Path(name)
        console.print(f"[bold]Starting a real Kafka: {BROKERS} brokers, a controller and a ZooKeeper.[/bold]")
        async with local_cluster(directory / "cluster", brokers=BROKERS, racks=3) as cluster:
            stage = Stage(console, directory, _shorten_sessions(cluster, directory))
            await stage.run("log", "init")
            size = ("--partitions", str(PARTITIONS), "--megabytes", str(MEGABYTES))
            await stage.run("local", "seed", TOPIC, *size, "--dir", str(cluster.directory))
            async with page(stage, shown=with_page):
                async with _workers(stage) as workers:
                    await _story(stage, cluster.bootstrap, workers, directory)
                stage.say(
                    "Replay the log: fold every record again, and compare the state hashes that the workers recorded."
                )
                await stage.run("replay", "--verify")
    console.print(_AFTERWORD)


def _shorten_sessions(cluster: LocalCluster, directory: Path) -> Path:
    """Write the demo's own settings file: the cluster's, with a shorter session."""
    text = cluster.config_file.read_text(encoding="utf-8")
    config = directory / "drover.toml"
    shortened = text.replace("[worker]\n", f"[worker]\nsession_timeout_ms = {SESSION_TIMEOUT_MS}\n")
    assert shortened != text, "the cluster's settings have a section for workers"
    config.write_text(shortened, encoding="utf-8")
    return config


@asynccontextmanager
async def page(stage: Stage, *, shown: bool) -> AsyncIterator[None]:
    """If `shown`, serve the page on a free port, and at the end of the context wait until it is cancelled."""
    if not shown:
        yield
        return
    from drover.cli.page import Tables, looking_at  # noqa: PLC0415 - aiohttp costs start-up time
    from drover.web.page_server import serving  # noqa: PLC0415 - aiohttp costs start-up time

    settings = load_settings(stage.config)
    address = ("127.0.0.1", 0)
    tables, looking = Tables(settings).read, looking_at(settings)
    async with serving(settings.log.connection(), address, telemetry=tables, looking=looking) as port:
        stage.say(f"Watch it in a browser: http://127.0.0.1:{port}/")
        yield
        stage.say("The page shows all of it, and the past. Ctrl-C shuts everything down.")
        await asyncio.Event().wait()


@asynccontextmanager
async def _workers(stage: Stage) -> AsyncIterator[list[Worker]]:
    stage.say("Two workers share the shards of the log.")
    workers: list[Worker] = []
    try:
        # The demo may be stopped while the second worker starts.
        workers.append(await stage.start_worker("worker-1"))
        workers.append(await stage.start_worker("worker-2"))
        yield workers
    finally:
        for worker in workers:
            if worker.process.returncode is None:
                worker.process.terminate()
        for worker in workers:
            await worker.process.wait()


async def _story(stage: Stage, bootstrap: str, workers: list[Worker], directory: Path) -> None:
    connection = LogConnection(bootstrap)
    await _until(connection, lambda log: len(_owners(log)) == len(workers), "both workers own shards", cluster=None)
    plan = directory / "plan.json"
    plan.write_text(json.dumps(_demo_plan()), encoding="utf-8")
    stage.say(f"Move a replica of every partition of {TOPIC} off its second broker, at {THROTTLE}/s per broker.")
    await stage.run("alter", str(plan), "--plan", PLAN, "--throttle", THROTTLE, "--reason", "drain on a Friday")
    stage.say("Watch it move: bytes on disk, rates and time to go come from the running cluster.")
    for _ in range(2):
        await asyncio.sleep(LOOK_EVERY_S)
        await stage.run("status", "--partitions")
    stage.say("One partition must go back: its original replicas, in their original order.")
    await stage.run("cancel", "--rollback", "--partition", f"{TOPIC}:0", "--reason", "latency alarm")
    await _until(connection, lambda log: FIRST not in _managed(log).reassignments, f"{FIRST} is rolled back")
    await _take_over(stage, connection, workers)
    stage.say("The other worker carries on from the log: nothing is cancelled or sent again.")
    await _until(connection, _is_done, "the plan is done and its throttles are gone", timeout_s=90)
    await stage.run("status")
    await _show_replicas(stage, bootstrap)
    stage.say("The log explains it for ever: who asked for what, why, and what happened.")
    await stage.run("history", "--partition", str(FIRST))


async def _show_replicas(stage: Stage, bootstrap: str) -> None:
    """Ask Kafka itself, bypassing the log."""
    from drover.cluster.kafka import KafkaDriver  # noqa: PLC0415 - the Kafka client costs start-up time

    driver = KafkaDriver(MANAGED, bootstrap)
    targets = {TopicPartition(TOPIC, number): _target(number) for number in range(PARTITIONS)}
    try:
        seen = await driver.observe(targets)
    finally:
        await driver.close()
    table = Table("partition", "before", "asked for", "as Kafka shows it now")
    for key, target in targets.items():
        facts = seen.partitions[key]
        replicas = facts.replicas if facts is not None else ()
        table.add_row(str(key), *map(str, (assignment(key.partition, BROKERS, 3), target, replicas)))
    stage.console.print(table)


async def _take_over(stage: Stage, connection: LogConnection, workers: list[Worker]) -> None:
    log = await fold_shards(connection, MANAGED)
    owner = _owner_of_managed(log)
    victim = next(worker for worker in workers if worker.name == owner)
    stage.say(f"Kill {owner}, the owner of this cluster's shard, while the plan is running (kill -9).")
    victim.process.kill()
    await victim.process.wait()
    await _until(connection, lambda log: _owner_of_managed(log) != owner, "the other worker owns the shard")
    log = await fold_shards(connection, MANAGED)
    stage.console.print(f"{_owner_of_managed(log)} owns the shard now.")


def _target(number: int) -> tuple[int, ...]:
    first, _, third = assignment(number, BROKERS, 3)
    return (first, 1 + (number + 3) % BROKERS, third)


def _demo_plan() -> dict[str, object]:
    partitions = [{"topic": TOPIC, "partition": number, "replicas": _target(number)} for number in range(PARTITIONS)]
    return {"version": 1, "partitions": partitions}


def _owners(log: FoldedLog) -> set[str]:
    owners = {fold.owner for fold in log.folds.values()}
    return owners if "" not in owners else set()


def _owner_of_managed(log: FoldedLog) -> str:
    return next(iter(log.folds.values())).owner


def _managed(log: FoldedLog) -> ClusterState:
    return next(iter(log.folds.values())).state.clusters[MANAGED]


def _is_done(log: FoldedLog) -> bool:
    state = _managed(log)
    return not state.reassignments and not state.broker_throttles and not state.topic_throttles


async def _until(
    connection: LogConnection,
    condition: Callable[[FoldedLog], bool],
    goal: str,
    *,
    cluster: str | None = MANAGED,
    timeout_s: float = 60,
) -> None:
    """Wait until a condition holds in the log of the managed cluster's shard or, without a cluster, of every shard."""

    async def holds() -> bool:
        try:
            return condition(await fold_shards(connection, cluster))
        except LogUnavailableError:
            return False

    await wait_until(holds, what=goal, timeout_s=timeout_s)


_AFTERWORD = f"""
[bold]What you saw[/bold]
  A plan in the stock tool's format moved real replicas, throttled per move, never with `*`.
  One partition was rolled back to its original replicas in their original order; Kafka's own cancel loses it.
  The owner was killed, and its successor adopted the running moves from the log.
  Every throttle was put back exactly, and the log replays to the same state.

[bold]What to try next[/bold]
  drover local up && export DROVER_CONFIG=.local/cluster/drover.toml
  drover log init && drover worker &
  drover local seed payments --partitions 12 && drover alter --help
  (plan {PLAN} is gone with its cluster: everything was shut down)"""
