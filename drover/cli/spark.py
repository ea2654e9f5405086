"""`drover spark`: run the job that keeps the progress tables; thin over the package `spark`."""

import asyncio
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import say
from drover.cli.parameters import NamedPath
from drover.errors import ConfigurationError
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.settings.settings import Settings, SparkSettings

if TYPE_CHECKING:
    from drover.spark.job import JobOptions


@click.group()
def spark() -> None:
    """Keep tables of progress and metrics, made from the event log with Spark; nothing that moves depends on it."""


@spark.command()
@click.option("--master", help="Spark's master.  [default: what spark-submit said, else local[2]]")
@click.option(
    "--dir",
    "directory",
    type=NamedPath(file_okay=False),
    help="The job's directory.  [default: .local/spark]",
)
@click.option("--history", is_flag=True, help="Also keep everything that has ended, in Parquet files.")
@settings_options
@pass_invocation
def run(invocation: Invocation, master: str | None, directory: Path | None, *, history: bool) -> None:
    """Read the log and the samples into tables, until SIGTERM or Ctrl-C; `drover progress` shows them.

    A query that fails ends the job with exit code 1 and its cause. When started again, it continues where it was.
    """
    settings = invocation.settings()
    asyncio.run(_check_topics(settings.log.connection()))
    options = _options(settings, master, directory, history=history)
    from drover.spark.job import run as run_job  # noqa: PLC0415 - Spark is not loaded to say that a flag is wrong

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    say(f"Starting Spark; its own log is {options.files.spark_log}", err=True)
    run_job(options, stop, started=lambda: say(f"Keeping the tables in {options.files.tables}", err=True))
    say("Stopped; when started again, the job continues from here.", err=True)


@spark.command()
def jars() -> None:
    """Print the files to pass to spark-submit with --jars, separated by commas; downloads them once."""
    from drover.jars import ensure  # noqa: PLC0415 - the other commands need it only with Spark

    say(",".join(map(str, ensure("spark"))))


async def _check_topics(connection: LogConnection) -> None:
    """Report a missing topic or an unreachable Kafka before Spark does so in its own words."""
    topics = (connection.topics.events, connection.topics.progress)
    async with LogReader(connection) as reader:
        counts = await reader.partition_counts(topics)
    absent = [topic for topic in topics if not counts[topic]]
    if absent:
        raise ConfigurationError(f"there is no topic {' and no topic '.join(absent)}: run `drover topics init`")


def _options(settings: Settings, master: str | None, directory: Path | None, *, history: bool) -> "JobOptions":
    from drover.settings.java_options import java_client_options  # noqa: PLC0415 - see run
    from drover.spark.job import JobOptions  # noqa: PLC0415
    from drover.spark.reading import LogSource  # noqa: PLC0415

    security = java_client_options(settings.log.security, "log.security")
    chosen = settings.spark
    return JobOptions(
        source=LogSource(
            settings.log.bootstrap, settings.log.topics, {f"kafka.{name}": value for name, value in security.items()}
        ),
        directory=directory_of(chosen, directory),
        master=master or chosen.master,
        spark=chosen.options,
        trigger_ms=chosen.trigger_ms,
        max_records_per_batch=chosen.max_records_per_batch,
        keeps_history=history or chosen.keeps_history,
        keeps_days=chosen.keeps_days,
    )


def directory_of(settings: SparkSettings, directory: Path | None) -> Path:
    """Return where the job keeps its files: the flag's directory, else the settings'."""
    return directory or Path(settings.directory)
