"""`drover spark` and `drover progress`: the job that keeps tables of progress, and the display of these tables."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drover.cli.help import PLANS, drover_command, drover_group
from drover.cli.invocation import Invocation, common_options, pass_invocation, settings_options
from drover.cli.output import (
    Fit,
    amount,
    at_least,
    console,
    duration,
    is_terminal,
    output_option,
    print_document,
    print_line,
    say,
    styled,
    table,
    timestamp,
)
from drover.cli.parameters import NamedPath
from drover.errors import ConfigurationError
from drover.extras import Extra, require
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.settings.settings import Settings, SparkSettings
from drover.spark.files import JobFiles
from drover.spark.sinks.sqlite import read_rows, read_standing
from drover.spark.view import (
    Overview,
    PlanProgress,
    Progress,
    broker_rates,
    durations,
    is_timestamp,
    moment,
    now_ms,
    open_tables,
    overview,
    with_times,
)

if TYPE_CHECKING:
    from rich.console import Group

    from drover.spark.job import JobOptions

PAUSE_S = 0.5
_JOB = {
    "running": "the job keeps them up to date",
    "starting": "the job is starting",
    None: "NO JOB IS RUNNING: start one with `drover spark run`",
}


directory_option = click.option(
    "--dir", "directory", type=NamedPath(file_okay=False), help="The job's directory.  [default: .local/spark]"
)


@drover_group()
def spark() -> None:
    """Keep tables of progress and metrics from the event log with Spark; no move depends on them."""


@spark.command(example="drover spark run")
@click.option("--master", help="Spark's master.  [default: that of spark-submit, else local[2]]")
@directory_option
@click.option("--history", is_flag=True, help="Also keep everything that has ended in Parquet files.")
@settings_options
@pass_invocation
def run(invocation: Invocation, master: str | None, directory: Path | None, *, history: bool) -> None:
    """Read the log and the samples into tables, until SIGTERM or Ctrl-C; `drover progress` shows them.

    If a query fails, the job prints the cause and ends with exit code 1. A restarted job continues where it was.
    """
    require(Extra.SPARK, "`drover spark run`")
    settings = invocation.settings()
    asyncio.run(_check_topics(settings.log.connection()))
    options = _job_options(settings, master, directory, history=history)
    from drover.spark.job import run as run_job  # noqa: PLC0415 - Spark is not loaded to say that a flag is wrong

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    say(f"Starting Spark; its own log is {options.files.spark_log}", err=True)
    run_job(options, stop, started=lambda: say(f"Keeping the tables in {options.files.tables}", err=True))
    say("Stopped; a restarted job continues from here.", err=True)


@spark.command(example="drover spark jars")
@click.option("--msk", is_flag=True, help="Also Amazon's, which AWS_MSK_IAM needs.")
def jars(*, msk: bool) -> None:
    """Print the files to pass to spark-submit with --jars, separated by commas; downloads them once."""
    from drover.jars import ensure  # noqa: PLC0415 - the other commands need it only with Spark

    files = [*ensure("spark"), *(ensure("msk") if msk else ())]
    say(",".join(map(str, files)))


async def _check_topics(connection: LogConnection) -> None:
    """Report a missing topic or an unreachable Kafka before Spark fails with a less clear message."""
    topics = (connection.topics.events, connection.topics.progress)
    async with LogReader(connection) as reader:
        counts = await reader.partition_counts(topics)
    absent = [topic for topic in topics if not counts[topic]]
    if absent:
        raise ConfigurationError(f"there is no topic {' and no topic '.join(absent)}: run `drover log init`")


def _job_options(settings: Settings, master: str | None, directory: Path | None, *, history: bool) -> "JobOptions":
    from drover.spark.job import JobOptions  # noqa: PLC0415 - see run
    from drover.spark.log_source import LogSource  # noqa: PLC0415 - see run

    chosen = settings.spark
    return JobOptions(
        source=LogSource.of(settings.log),
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


PLAN_COLUMNS = (
    *("cluster", "plan", "by", "planned", "under way", "blocked", "waiting", "completed", "rolled back", "copied"),
    *("of", "rate", "to go"),
)
TABLES = (
    *("brokers", "budgets", "durations", "heal_chunks", "leader_movements", "limits", "listed_brokers", "plans"),
    *("reassignments", "refusals", "requests", "samples", "takeovers", "throttles", "undecodable"),
)


@drover_command(example="drover progress")
@click.option("--follow", is_flag=True, help="Keep showing until Ctrl-C, or with --plan until the plan has finished.")
@click.option("--plan", shell_complete=PLANS, help="Only this plan, even if it has finished.")
@click.option(
    "--table", "one_table", type=click.Choice(TABLES), help="Show a whole table instead; see spark/README.md."
)
@directory_option
@output_option
@common_options
@pass_invocation
def progress(
    invocation: Invocation,
    plan: str | None,
    one_table: str | None,
    directory: Path | None,
    output: str,
    *,
    follow: bool,
) -> None:
    """Show every plan's progress, rates and stalled partitions, from the tables that `drover spark run` keeps.

    `drover status` reads the log itself and is never behind; these tables may be, and the last line gives their age.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    files = JobFiles(directory_of(settings.spark, directory).absolute())
    if one_table is not None:
        _print_table(files, one_table, cluster, plan, output, follow=follow)
    elif follow:
        if output not in {"table", "jsonl"}:
            raise click.UsageError(f"--follow goes with -o table or jsonl, not {output}")
        _follow(files, cluster, plan, output)
    else:
        view = overview(files, cluster, plan, now_ms())
        if output == "table":
            console().print(_progress_layout(view))
        else:
            document = view.document()
            print_document(document, [*document["plans"], *document["reassignments"]], output)


def _print_table(
    files: JobFiles, name: str, cluster: str | None, plan: str | None, output: str, *, follow: bool
) -> None:
    if follow:
        raise click.UsageError("--follow shows progress, not a whole table")
    wanted = {key: value for key, value in (("cluster", cluster), ("plan", plan)) if value is not None}
    with open_tables(files) as connection:
        standing = read_standing(connection)
        rows = [
            row
            for row in read_rows(connection, name)
            if all(row.get(key, value) == value for key, value in wanted.items())
        ]
    newest_ms = 0 if standing is None else standing.newest_ms
    shown_rows = (
        durations(rows) if name == "durations" else broker_rates(rows, newest_ms) if name == "brokers" else rows
    )
    if output != "table":
        shown_rows = [with_times(row) for row in shown_rows]
        print_document({name: shown_rows}, shown_rows, output)
        return
    columns = tuple(shown_rows[0]) if shown_rows else ("nothing yet",)
    shown = [
        [_cell(moment(row[column]) if is_timestamp(column) else row[column]) for column in columns]
        for row in shown_rows
    ]
    console().print(
        table([column.removesuffix("_ms") if is_timestamp(column) else column for column in columns], shown)
    )


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _views(files: JobFiles, cluster: str | None, plan: str | None) -> Iterator[Overview]:
    """Yield an overview of the tables after every batch, and now and then without one."""
    while True:
        yield overview(files, cluster, plan, now_ms())
        time.sleep(PAUSE_S)


def _follow(files: JobFiles, cluster: str | None, plan: str | None, output: str) -> None:
    views = _views(files, cluster, plan)
    if output == "table" and is_terminal():
        from rich.live import Live  # noqa: PLC0415 - a pipe needs none of it

        with Live(console=console(), auto_refresh=False, vertical_overflow="crop") as live:
            for view in views:
                live.update(_progress_layout(view), refresh=True)
                if _has_finished(view, plan):
                    return
    shown: dict[tuple[Any, ...], Any] = {}
    for view in views:
        for plan_row in view.plans:
            _print_change(shown, (plan_row.cluster, plan_row.plan), plan_row, output, _plan_line(plan_row))
        for row in view.reassignments:
            _print_change(shown, (row.cluster, row.topic, row.partition), row, output, _progress_line(row))
        if _has_finished(view, plan):
            return


def _print_change(shown: dict[tuple[Any, ...], Any], key: tuple[Any, ...], row: Any, output: str, line: str) -> None:
    if shown.get(key) == line:
        return
    shown[key] = line
    if output == "jsonl":
        print_line(asdict(row))
    else:
        say(line)


def _has_finished(view: Overview, plan: str | None) -> bool:
    # Several clusters may have a plan of this name.
    return plan is not None and bool(view.plans) and all(progress.finished_ms is not None for progress in view.plans)


def _plan_line(plan: PlanProgress) -> str:
    ended = f"{plan.completed} completed, {plan.rolled_back} rolled back, {plan.stopped} stopped, {plan.failed} failed"
    state = "finished" if plan.finished_ms is not None else f"{plan.under_way} under way"
    return (
        f"{plan.cluster} plan {plan.plan}: {state}, {ended}, {at_least(plan.bytes_copied, plan.bytes_unknown)} copied"
    )


def _progress_line(row: Progress) -> str:
    why = f", {row.reason}" if row.reason else ""
    stalled = ", stalled" if row.has_stalled else ""
    copied = (
        f" {at_least(row.bytes_done, row.bytes_unknown)} of {at_least(row.bytes_total, row.bytes_unknown)}"
        if row.bytes_total
        else ""
    )
    return f"{timestamp(row.since_ms)} {row.cluster} {row.topic}:{row.partition} {row.state}{copied}{why}{stalled}"


def _progress_layout(view: Overview) -> "Group":
    from rich.console import Group  # noqa: PLC0415 - for people only

    plans = table(
        PLAN_COLUMNS,
        [
            (
                *(plan.cluster, plan.plan, plan.requester, str(plan.partitions_planned), str(plan.under_way)),
                *(str(plan.blocked), str(plan.waiting), str(plan.completed), str(plan.rolled_back)),
                *(at_least(plan.bytes_copied, plan.bytes_unknown), _planned(plan)),
                *(f"{amount(plan.rate)}/s", _time(plan.remaining_ms)),
            )
            for plan in view.plans
        ],
        right=PLAN_COLUMNS[3:],
    )
    rows = table(
        ("cluster", "partition", "plan", "state", "step", "done", "of", "rate", "to go", "why it waits"),
        [
            (
                *(row.cluster, f"{row.topic}:{row.partition}", row.plan, row.state, _cell(row.step)),
                *(at_least(row.bytes_done, row.bytes_unknown), at_least(row.bytes_total, row.bytes_unknown)),
                *("-" if row.rate is None else f"{amount(row.rate)}/s", _time(row.remaining_ms)),
                "stalled: the copy is not growing" if row.has_stalled else row.detail or "",
            )
            for row in view.reassignments
        ],
        right=("step", "done", "of", "rate", "to go"),
        fit=Fit(below=("why it waits",), spare=("step", "of", "done", "cluster", "plan")),
    )
    return Group(plans, styled(""), rows, styled(""), styled(_age(view)))


def _planned(plan: PlanProgress) -> str:
    """Format the bytes to copy; a + means that some sizes are not known yet."""
    return f"{amount(plan.bytes_planned)}{'+' if plan.without_size else ''}"


def _age(view: Overview) -> str:
    if view.standing is None:
        return f"there is no batch in the tables yet; {_JOB[view.job]}"
    newest = timestamp(view.standing.newest_ms) if view.standing.newest_ms else "nothing"
    return f"tables as of {newest}, batch {view.standing.batch}; {_JOB[view.job]}"


def _time(remaining_ms: int | None) -> str:
    return "-" if remaining_ms is None else duration(remaining_ms)
