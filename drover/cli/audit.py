"""`drover audit`: what was asked for, done, refused and undone in a part of the log, and whether the log is sound."""

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drover import __version__
from drover.cli.audit_trees import compare_trees
from drover.cli.exits import ExitCode, Failure
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import output_option, say
from drover.cli.parameters import NamedPath, parse_duration
from drover.errors import ConfigurationError
from drover.events.topics import shard_of
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.settings.settings import Settings
from drover.spark.audit.shard_report import Wanted

if TYPE_CHECKING:
    from drover.spark.audit.page import Made
    from drover.spark.audit.parts import Wish
    from drover.spark.audit.report import Report
    from drover.spark.audit.running import Log

FORMATS = ("table", "json", "csv", "parquet", "html")
_NOTHING: Mapping[int, tuple[int, int]] = {}
SECTIONS = ("requesters", "plans", "commands", "reassignments", "refusals")


class UtcMoment(click.ParamType):
    """A moment, in ms since epoch: how long ago, a day (its beginning in UTC), or a time with its zone."""

    name = "when"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read what was typed."""
        try:
            return parse_utc(str(value), datetime.now(UTC))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parse_utc(text: str, now: datetime) -> int:
    """Read `2h`, `2026-10-01` or `2026-10-01T15:04Z` as ms since epoch. Raises `ValueError`."""
    text = text.strip()
    try:
        moment = now - timedelta(seconds=parse_duration(text))
    except OverflowError:
        raise ValueError(f"{text!r} is longer ago than dates reach") from None
    except ValueError:
        moment = _moment(text)
    return round(moment.timestamp() * 1000)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write 2h for two hours ago, 2026-10-01 for the beginning of that day in UTC, or "
            "2026-10-01T15:04Z"
        ) from None
    if moment.tzinfo is None and ("T" in text or " " in text):
        raise ValueError(f"{text!r} has no time zone: write {text}Z for UTC, or {text}+01:00")
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@click.group(invoke_without_command=True)
@click.option("--since", "since_ms", type=UtcMoment(), help="From this time on: 2h, 2026-10-01 or 2026-10-01T15:04Z.")
@click.option("--until", "until_ms", type=UtcMoment(), help="Up to this time, written the same way.")
@click.option("--offsets", metavar="SHARD:FIRST-LAST,...", help="These records, as an earlier audit names them.")
@click.option("--plan", metavar="NAME", help="Only this plan.")
@click.option("--topic", metavar="T", help="Only this topic's partitions.")
@click.option("--by", metavar="WHO", help="Only what this person or program asked for.")
@click.option("--section", type=click.Choice(SECTIONS), help="Only this section; for table, json and csv.")
@click.option("--to", "to", type=NamedPath(), help="File for html, directory for csv and parquet.")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print.")
@common_options
@pass_invocation
@click.pass_context
def audit(context: click.Context, /, invocation: Invocation, **asked: Any) -> None:
    """Show who asked for what and why, what was done, refused and undone, how long it took and how much was copied.

    Covers the whole log, or a part of it. Times are the log's own, in UTC. Every audit names the offsets that they
    stand for, and --offsets repeats the same audit at any time. Shows the reassignments that ended in that part or
    were under way at its end. Reads the log with Spark, from where an earlier audit has kept it before that part.
    """
    given = {name: value for name, value in asked.items() if value is not None and name != "output"}
    if context.invoked_subcommand is not None:
        if given or asked["output"] != "table":
            raise click.UsageError(f"options of the audit itself do not apply to {context.invoked_subcommand}")
        return
    _check(asked)
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    wish = _wish(asked)
    log = asyncio.run(_open(settings, wish.offsets))
    # Spark is not loaded to say that a flag is wrong.
    from drover.spark.audit.running import audited  # noqa: PLC0415

    say(f"Starting Spark; its own log is {log.directory / 'spark.log'}", err=True)
    sections = SECTIONS if asked["section"] is None else (asked["section"],)
    found = audited(log, wish, Wanted(cluster, asked["plan"], asked["topic"], asked["by"], sections))
    unreadable = found.totals["unreadable_records"]
    if unreadable:
        say(f"{unreadable} records could not be read; `drover audit verify` names them.", err=True)
    named = {"cluster": cluster, **{name: asked[name] for name in ("plan", "topic", "by")}}
    try:
        _show(found, log, asked, {name: value for name, value in named.items() if value is not None})
    except OSError as error:
        raise Failure(f"{asked['to']} cannot be written: {error}") from error


def _check(asked: dict[str, Any]) -> None:
    """Refuse contradictory options before anything is started."""
    output, to, section = asked["output"], asked["to"], asked["section"]
    if asked["offsets"] is not None and (asked["since_ms"] is not None or asked["until_ms"] is not None):
        raise click.UsageError("--offsets says which records, --since and --until say when: give one of them")
    if None not in {asked["since_ms"], asked["until_ms"]} and asked["since_ms"] > asked["until_ms"]:
        raise click.UsageError("--since is later than --until")
    if output == "parquet" and to is None:
        raise click.UsageError("-o parquet writes a file for each section: name a directory with --to")
    if output == "csv" and (to is None) == (section is None):
        raise click.UsageError(
            "-o csv prints one section, named with --section, or writes all to a directory with --to"
        )
    if to is not None and output in {"table", "json"}:
        raise click.UsageError(f"--to goes with -o html, csv and parquet; -o {output} prints")
    if section is not None and output in {"parquet", "html"}:
        raise click.UsageError(f"--section goes with -o table, json and csv; -o {output} has all")
    if to is not None:
        _check_writable(to, is_directory=output != "html")


def _check_writable(to: Path, *, is_directory: bool) -> None:
    """Refuse a place that cannot be written before the whole log is read; creates nothing."""
    try:
        obstacle = _obstacle(to.absolute(), is_directory=is_directory)
    except OSError as error:  # a directory above it may not be searched
        obstacle = str(error)
    if obstacle is not None:
        raise click.BadParameter(f"{to} cannot be written: {obstacle}", param_hint="--to")


def _obstacle(place: Path, *, is_directory: bool) -> str | None:
    """Say what prevents writing a file, whose directory must exist, or a directory, which may be created."""
    if is_directory:
        place = next(one for one in (place, *place.parents) if one.exists())
        if not place.is_dir():
            return f"{place} is not a directory"
    elif place.is_dir():
        return f"{place} is a directory, not a file"
    elif not place.exists():
        place = place.parent
        if not place.is_dir():
            return f"there is no directory {place}"
    return None if os.access(place, os.W_OK) else f"you may not write to {place}"


def _wish(asked: dict[str, Any]) -> "Wish":
    from drover.spark.audit.parts import Wish, parse_offsets  # noqa: PLC0415 - see audit

    try:
        offsets = {} if asked["offsets"] is None else parse_offsets(asked["offsets"])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--offsets") from None
    return Wish(asked["since_ms"], asked["until_ms"], offsets)


async def _open(settings: Settings, wanted: Mapping[int, tuple[int, int]] = _NOTHING) -> "Log":
    """Find where the log begins and ends now; refuses shards and offsets that it does not have."""
    connection = settings.log.connection()
    starts, ends = await _bounds(connection)
    for shard, (_, last) in sorted(wanted.items()):
        if shard not in ends:
            raise ConfigurationError(f"the log has shards 0 to {len(ends) - 1}, not {shard}")
        if last >= ends[shard]:
            raise ConfigurationError(f"shard {shard} of the log ends with offset {ends[shard] - 1}, before {last}")
    from drover.settings.java_options import java_client_options  # noqa: PLC0415 - see audit
    from drover.spark.audit.running import Log  # noqa: PLC0415
    from drover.spark.reading import LogSource  # noqa: PLC0415

    security = java_client_options(settings.log.security, "log.security")
    options = {f"kafka.{name}": value for name, value in security.items()}
    return Log(
        source=LogSource(settings.log.bootstrap, connection.topics, options),
        starts=starts,
        ends=ends,
        directory=(Path(settings.spark.directory) / "audit").absolute(),
        master=settings.spark.master,
        settings=settings.spark.options,
    )


async def _bounds(connection: LogConnection) -> tuple[dict[int, int], dict[int, int]]:
    topic = connection.topics.events
    async with LogReader(connection) as reader:
        shards = range(await reader.partitions(topic))
        return await reader.start_offsets(topic, shards), await reader.end_offsets(topic, shards)


def _show(found: "Report", log: "Log", asked: dict[str, Any], named: dict[str, str]) -> None:
    from drover.cli import audit_view  # noqa: PLC0415 - see audit

    output, to, section = asked["output"], asked["to"], asked["section"]
    match output:
        case "table":
            audit_view.print_report(found, section)
        case "json":
            audit_view.print_json(found, section)
        case "csv" if to is None:
            audit_view.print_csv(found, section)
        case "html":
            audit_view.write_page(found, _made(log, asked, named), to)
        case _:
            audit_view.write_files(found, output, to)


def _made(log: "Log", asked: dict[str, Any], named: dict[str, str]) -> "Made":
    from drover.spark.audit.page import Made  # noqa: PLC0415 - drawing is loaded only to draw

    now_ms = round(datetime.now(UTC).timestamp() * 1000)
    # Nothing is known of what is to come, nor of when the records were written that somebody has named.
    until_ms = now_ms if asked["until_ms"] is None else min(asked["until_ms"], now_ms)
    return Made(
        log=log.source.topics.events,
        version=__version__,
        made_ms=now_ms,
        end_ms=until_ms if asked["offsets"] is None else None,
        since_ms=asked["since_ms"],
        asked=named,
    )


@audit.command()
@output_option
@common_options
@pass_invocation
def verify(invocation: Invocation, output: str) -> None:
    """Check every record of the log against the log's rules, and each recorded state hash against the derived state.

    A reader stops at the first broken rule; this names all of them, and ends with exit code 5 if there are any. With
    `zookeeper.project = true` each configured cluster's tree is compared with the log as well, as by `drover project
    verify`; a difference ends with exit code 1. Reads the log from its first record with Spark, all shards in parallel;
    with --cluster only that cluster's shard.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    log = asyncio.run(_open(settings))
    from drover.cli import audit_view  # noqa: PLC0415 - see audit
    from drover.spark.audit.running import verified  # noqa: PLC0415

    say(f"Starting Spark; its own log is {log.directory / 'spark.log'}", err=True)
    found = verified(log, None if cluster is None else shard_of(cluster, len(log.ends)))
    broken = {one.finding.shard for one in found.findings}
    trees = asyncio.run(compare_trees(settings, cluster, len(log.ends), broken))
    audit_view.print_verification(found, trees, output)
    if settings.zookeeper.hosts is not None and not settings.zookeeper.project:
        say("ZooKeeper was not compared, as zookeeper.project is not true; `drover project verify` does it.", err=True)
    if broken:
        raise click.exceptions.Exit(ExitCode.CORRUPT)
    if not all(tree.is_good for tree in trees):
        raise click.exceptions.Exit(ExitCode.FAILED)
