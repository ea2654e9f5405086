"""`drover worker`, `drover zookeeper` and `drover web`: the processes that run until a signal stops them."""

import asyncio
import signal
import threading
from dataclasses import asdict
from typing import Any

import click

from drover.cli.exits import ExitCode
from drover.cli.help import drover_command, drover_group
from drover.cli.invocation import Invocation, common_options, pass_invocation, settings_options
from drover.cli.output import output_option, plural, print_document, say
from drover.cli.parameters import ADDRESS
from drover.settings.settings import Settings

LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1", "localhost"})


@drover_command(example="drover worker --name worker-1 --listen 127.0.0.1:8150")
@click.option("--name", help="The owner's name in the log.  [default: host-pid]")
@click.option("--group", help="The workers' consumer group.  [default: PREFIX-worker]")
@click.option("--instance-id", help="Static membership: unique per worker, and the same after a restart.")
@click.option(
    "--listen",
    type=ADDRESS,
    metavar="HOST:PORT",
    help="Where to serve /livez, /readyz and /metrics; port 0 picks one.",
)
@click.option(
    "--log-format", type=click.Choice(["auto", "json", "text"]), help="How to log.  [default: JSON, text on a terminal]"
)
@settings_options
@pass_invocation
def worker(invocation: Invocation, **flags: Any) -> None:
    """Decide commands and move partitions, until SIGTERM or Ctrl-C.

    Several workers may run; each shard of the log has one owner at a time.
    """
    overrides = {name: value for name, value in flags.items() if value is not None}
    settings = invocation.settings({"worker": overrides} if overrides else None)
    from drover.agents.wiring import serve  # noqa: PLC0415 - Faust is not loaded to say that a flag is wrong

    raise click.exceptions.Exit(serve(settings))


@drover_group()
def zookeeper() -> None:
    """Show the state of clusters in ZooKeeper, and check and rebuild what is shown there."""


@zookeeper.command(example="drover zookeeper run --listen 127.0.0.1:8161")
@click.option(
    "--listen",
    type=ADDRESS,
    metavar="HOST:PORT",
    help="Where to serve /livez, /readyz and /metrics; port 0 picks one.",
)
@common_options
@pass_invocation
def run(invocation: Invocation, listen: str | None) -> None:
    """Write the state of every cluster to ZooKeeper as it changes, until SIGTERM or Ctrl-C.

    Several processes may run; only one of them writes a cluster's tree at a time. Workers do the same with
    `zookeeper.project = true`.
    """
    settings = invocation.settings({"zookeeper": {"listen": listen}} if listen is not None else None)
    cluster = invocation.cluster_wanted(settings)
    from drover.projections.projection import serve_projection  # noqa: PLC0415 - kazoo is not loaded for a wrong flag

    raise click.exceptions.Exit(serve_projection(settings, cluster))


@zookeeper.command(example="drover zookeeper rebuild --cluster prod")
@common_options
@pass_invocation
def rebuild(invocation: Invocation) -> None:
    """Build a cluster's tree anew from the log, beside the old one, and switch to it.

    Projectors may keep running; they carry on from the new tree.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    from drover.projections.projection import rebuild_tree  # noqa: PLC0415 - see run

    made = asyncio.run(rebuild_tree(settings, cluster))
    say(f"{cluster}: {plural(made.nodes, 'node')}, the log up to offset {made.offset}.{made.event_index}.")


@zookeeper.command(example="drover zookeeper verify --cluster prod")
@output_option
@common_options
@pass_invocation
def verify(invocation: Invocation, output: str) -> None:
    """Compare a cluster's tree with the log, up to the tree's position; exit code 1 if they differ."""
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    from drover.cli.audit import comparison_lines  # noqa: PLC0415 - see run
    from drover.projections.projection import compare_tree  # noqa: PLC0415 - see run

    comparison = asyncio.run(compare_tree(settings, cluster))
    if output != "table":
        rows = [asdict(difference) for difference in comparison.differences]
        print_document({**asdict(comparison), "differences": rows}, rows, output)
    else:
        for line in comparison_lines(comparison):
            say(f"{cluster}: {line}")
    raise click.exceptions.Exit(ExitCode.FAILED if comparison.differences else ExitCode.DONE)


@drover_command(example="drover web --listen 127.0.0.1:8155")
@click.option("--listen", type=ADDRESS, metavar="HOST:PORT", help="Where to serve the page; port 0 picks one.")
@settings_options
@pass_invocation
def web(invocation: Invocation, listen: str | None) -> None:
    """Serve the page until SIGTERM or Ctrl-C: moves and why they wait, brokers, throttles, histories, the past.

    It reads the log and changes nothing, unless `web.writes` lets users whom a proxy has authenticated send commands.
    Everyone who can connect to it can read the whole log, so it listens on the loopback interface by default.
    """
    settings = invocation.settings(None if listen is None else {"web": {"listen": listen}})
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from drover.cli.page import Tables, looking_at  # noqa: PLC0415 - aiohttp costs start-up time
    from drover.service.logs import configure_logging  # noqa: PLC0415 - structlog costs start-up time
    from drover.web.identity import Authorizer  # noqa: PLC0415 - aiohttp costs start-up time
    from drover.web.page_server import serving  # noqa: PLC0415 - aiohttp costs start-up time

    configure_logging(settings.worker.log_format)
    stop = asyncio.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    host = settings.web.address[0]
    if host not in LOOPBACK_ADDRESSES:
        say(f"Listening on {host}: everyone who can connect to it can read the whole log.", err=True)
    connection = settings.log.connection()
    tables = Tables(settings)
    web_settings = settings.web
    authorizer = None
    if web_settings.writes:
        authorizer = Authorizer(web_settings.user_header, web_settings.networks)
        trusted = ", ".join(web_settings.proxies)
        say(f"Users may send commands; {trusted} is trusted to name them in {web_settings.user_header}.", err=True)
    async with serving(
        connection,
        web_settings.address,
        hosts=web_settings.hosts,
        telemetry=tables.read,
        authorizer=authorizer,
        looking=looking_at(settings),
        proxies=web_settings.networks,
    ) as port:
        shown = f"[{host}]" if ":" in host else host
        say(f"The page is at http://{shown}:{port}/")
        await stop.wait()
