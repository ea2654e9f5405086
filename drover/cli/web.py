"""`drover web`: serve the page until it is told to stop."""

import asyncio
import signal
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.looking import looking_at
from drover.cli.output import say
from drover.cli.parameters import Address
from drover.cli.spark import directory_of
from drover.errors import ConfigurationError
from drover.service.logs import configure_logging
from drover.settings.settings import Settings
from drover.spark.files import JobFiles
from drover.spark.heartbeat import state_of_job
from drover.spark.sinks.sqlite import read_rows, read_standing
from drover.spark.view import durations, now_ms, open_tables
from drover.web.identity import Doorkeeper
from drover.web.serving import serving

# Rows of a table that grows with time: so many, the latest first.
SHOWN_ROWS = 100
LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1", "localhost"})


@click.command()
@click.option("--listen", type=Address(), metavar="HOST:PORT", help="Where to serve the page; port 0 picks one.")
@settings_options
@pass_invocation
def web(invocation: Invocation, listen: str | None) -> None:
    """Serve the page, until SIGTERM or Ctrl-C: what moves and why it waits, brokers, throttles, stories, the past.

    It reads the log and changes nothing, unless `web.writes` lets users act whom a proxy names. Whoever reaches its
    address may read all that the log says, so it listens on the loopback interface unless told otherwise.
    """
    settings = invocation.settings(None if listen is None else {"web": {"listen": listen}})
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    configure_logging(settings.worker.log_format)
    stop = asyncio.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    host = settings.web.address[0]
    if host not in LOOPBACK_ADDRESSES:
        say(f"Listening on {host}: whoever reaches it may read all that the log says.", err=True)
    connection = settings.log.connection()
    tables = Tables(settings)
    web_settings = settings.web
    doorkeeper = None
    if web_settings.writes:
        doorkeeper = Doorkeeper(web_settings.user_header, web_settings.networks)
        trusted = ", ".join(web_settings.proxies)
        say(f"Users may send commands: whom {trusted} names in {web_settings.user_header} is believed.", err=True)
    async with serving(
        connection,
        web_settings.address,
        hosts=web_settings.hosts,
        telemetry=tables.read,
        doorkeeper=doorkeeper,
        looking=looking_at(settings),
    ) as port:
        shown = f"[{host}]" if ":" in host else host
        say(f"The page is at http://{shown}:{port}/")
        await stop.wait()


class Tables:
    """Spark's tables, as the page shows them."""

    def __init__(self, settings: Settings) -> None:
        self._directory: Path = directory_of(settings.spark, None).absolute()

    def read(self, cluster: str | None) -> Mapping[str, Any]:
        """Read the tables of one cluster or of all, with their age; says why when there are none.

        Of those that grow with time there are the latest rows, the newest first.
        """
        files = JobFiles(self._directory)
        try:
            with open_tables(files) as connection:
                connection.execute("begin")  # one moment for all tables
                standing = read_standing(connection)
                tables = {name: _latest_of(connection, name, cluster) for name in ("refusals", "requests")}
                tables["takeovers"] = _latest_takeovers(connection)
                tables["durations"] = durations(_of(cluster, read_rows(connection, "durations")))
        except ConfigurationError as error:
            return {"missing": str(error)}
        return {
            "job": state_of_job(files.alive, now_ms()),
            "newest_record_ms": None if standing is None else standing.newest_ms,
            "applied_ms": None if standing is None else standing.applied_ms,
            **tables,
        }


def _latest_of(connection: Connection, table: str, cluster: str | None) -> list[Any]:
    where, values = ("", ()) if cluster is None else ("where cluster = ?", (cluster,))
    return list(read_rows(connection, table, f"{where} order by window_ms desc limit ?", (*values, SHOWN_ROWS)))


def _latest_takeovers(connection: Connection) -> list[Any]:
    """Read them shard by shard, as they are indexed: of all there are some for every minute and shard."""
    (last,) = connection.execute("select max(shard) from takeovers").fetchone()
    latest = "where shard = ? order by window_ms desc limit ?"
    shards = range(0 if last is None else last + 1)
    found = [row for shard in shards for row in read_rows(connection, "takeovers", latest, (shard, SHOWN_ROWS))]
    return sorted(found, key=lambda row: (-row["window_ms"], row["shard"]))[:SHOWN_ROWS]


def _of(cluster: str | None, rows: Iterable[Any]) -> list[Any]:
    return [row for row in rows if cluster in {None, row.get("cluster", cluster)}]
