"""`drover audit`: report the commands, moves and refusals in a part of the log, and verify that the log is sound."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from drover import __version__
from drover.cli.exits import ExitCode, Failure
from drover.cli.help import PLANS, TOPICS, drover_group
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import at_least, console, duration, output_option, plural, print_document, say, table, timestamp
from drover.cli.parameters import MOMENT, NamedPath
from drover.errors import ConfigurationError, DroverError
from drover.events.topics import shard_of
from drover.extras import Extra, require
from drover.fold.inspection import Summary
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.settings.settings import Settings
from drover.spark.audit.facts import Row
from drover.spark.audit.parts import AuditSpan, parse_offsets
from drover.spark.audit.sections import SECTIONS
from drover.spark.audit.shard_report import Wanted

if TYPE_CHECKING:
    from drover.projections.comparison import Comparison
    from drover.spark.audit.audit_run import Log
    from drover.spark.audit.page import Made
    from drover.spark.audit.report import Report
    from drover.spark.audit.verification import Found, Verification

FORMATS = ("table", "json", "csv", "parquet", "html")
_NOTHING: Mapping[int, tuple[int, int]] = {}
FINDING_COLUMNS = ("shard", "offset", "appended", "rule", "what is wrong")
SHARD_COLUMNS = ("shard", "records", "batches", "fenced", "findings", "hashes agree", "not checked", "state hash")


def comparison_lines(comparison: "Comparison") -> list[str]:
    """List every difference between a tree and the log, and end with a summary."""
    differences = comparison.differences
    verdict = plural(len(differences), "difference") if differences else "no difference"
    summary = f"{plural(comparison.nodes, 'node')}, {verdict}, {plural(comparison.behind, 'event')} behind."
    return [*(f"{difference.path} {difference.what}" for difference in differences), summary]


@dataclass(frozen=True, slots=True)
class Compared:
    """One cluster's tree compared with the fold of the log up to the tree's position, or why this was not possible."""

    cluster: str
    comparison: "Comparison | None" = None
    why_not: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the tree agrees with the log."""
        return self.comparison is not None and not self.comparison.differences

    def lines(self) -> list[str]:
        """List every difference, and end with a summary."""
        if self.comparison is None:
            return [f"{self.cluster} in ZooKeeper: not compared: {self.why_not}"]
        return [f"{self.cluster} in ZooKeeper: {line}" for line in comparison_lines(self.comparison)]

    def document(self) -> dict[str, Any]:
        """Return the comparison for programs; fields may be added and never changed."""
        compared = {} if self.comparison is None else asdict(self.comparison)
        empty: dict[str, Any] = {"nodes": None, "behind": None, "differences": []}
        return {**empty, **compared, "cluster": self.cluster, "not_compared": self.why_not or None}


async def compare_trees(settings: Settings, only: str | None, shards: int, broken: Collection[int]) -> list[Compared]:
    """Compare the tree of every configured cluster, or of `only`; empty if the settings project no tree.

    Clusters in `broken` shards, whose log breaks a rule, are not compared: their state is unknown.
    """
    if settings.zookeeper.hosts is None or not settings.zookeeper.project:
        return []
    from drover.projections.projection import compare_tree  # noqa: PLC0415 - kazoo is loaded only where it is needed

    compared = []
    for cluster in sorted(settings.clusters) if only is None else [only]:
        if shard_of(cluster, shards) in broken:
            compared.append(Compared(cluster, why_not="its shard of the log breaks a rule"))
            continue
        try:
            compared.append(Compared(cluster, await compare_tree(settings, cluster)))
        except DroverError as error:
            # ZooKeeper may be down; the findings in the log are reported anyway.
            compared.append(Compared(cluster, why_not=str(error)))
    return compared


@drover_group(invoke_without_command=True, example="drover audit --since 30d --plan friday")
@click.option("--since", "since_ms", type=MOMENT, help="From this time on: 2h, 2026-10-01 or 2026-10-01T15:04Z.")
@click.option("--until", "until_ms", type=MOMENT, help="Up to this time, written the same way.")
@click.option("--offsets", metavar="SHARD:FIRST-LAST,...", help="These records, as an earlier audit printed them.")
@click.option("--plan", shell_complete=PLANS, metavar="NAME", help="Only this plan.")
@click.option("--topic", shell_complete=TOPICS, metavar="T", help="Only this topic's partitions.")
@click.option("--by", metavar="WHO", help="Only commands of this person or program.")
@click.option("--section", type=click.Choice(tuple(SECTIONS)), help="Only this section; for table, json and csv.")
@click.option("--out", type=NamedPath(), help="File for html, directory for csv and parquet.")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print.")
@common_options
@pass_invocation
@click.pass_context
def audit(context: click.Context, /, invocation: Invocation, **asked: Any) -> None:
    """Show who asked for what and why, what was done, refused and undone, how long it took and how much was copied.

    Covers the whole log, or a part of it: the reassignments that ended in that part or were under way at its end. Times
    are the log's own, in UTC. Every audit prints the offsets that it covers; --offsets repeats it at any time. Reads
    the log with Spark, starting from the state that an earlier audit has saved, if there is one.
    """
    given = {name: value for name, value in asked.items() if value is not None and name != "output"}
    if context.invoked_subcommand is not None:
        if given or asked["output"] != "table":
            raise click.UsageError(
                f"`drover audit {context.invoked_subcommand}` takes no options of the audit itself: leave them out"
            )
        return
    _check(asked)
    require(Extra.SPARK, "`drover audit`")
    if asked["output"] == "html":
        require(Extra.PLOTS, "`drover audit -o html`")
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    span = _asked_span(asked)
    log = asyncio.run(_open(settings, span.offsets))
    from drover.spark.audit.audit_run import audited  # noqa: PLC0415 - Spark is not loaded to say that a flag is wrong

    say(f"Starting Spark; its own log is {log.directory / 'spark.log'}", err=True)
    sections = tuple(SECTIONS) if asked["section"] is None else (asked["section"],)
    report = audited(log, span, Wanted(cluster, asked["plan"], asked["topic"], asked["by"], sections))
    unreadable = report.totals["unreadable_records"]
    if unreadable:
        say(f"{unreadable} records could not be read; `drover audit verify` names them.", err=True)
    named = {"cluster": cluster, **{name: asked[name] for name in ("plan", "topic", "by")}}
    try:
        _show(report, log, asked, {name: value for name, value in named.items() if value is not None})
    except OSError as error:
        raise Failure(f"{asked['out']} cannot be written: {error}") from error


def _check(asked: dict[str, Any]) -> None:
    """Refuse contradictory options before anything is started."""
    output, out, section = asked["output"], asked["out"], asked["section"]
    if asked["offsets"] is not None and (asked["since_ms"] is not None or asked["until_ms"] is not None):
        raise click.UsageError("--offsets excludes --since and --until: give either the records or the times")
    if None not in {asked["since_ms"], asked["until_ms"]} and asked["since_ms"] > asked["until_ms"]:
        raise click.UsageError("--since is later than --until")
    if output == "parquet" and out is None:
        raise click.UsageError("-o parquet writes a file for each section: name a directory with --out")
    if output == "csv" and (out is None) == (section is None):
        raise click.UsageError(
            "-o csv prints one section, named with --section, or writes all to a directory with --out"
        )
    if out is not None and output in {"table", "json"}:
        raise click.UsageError(f"--out goes with -o html, csv and parquet; -o {output} prints")
    if section is not None and output in {"parquet", "html"}:
        raise click.UsageError(f"--section goes with -o table, json and csv; -o {output} has all")
    if out is not None:
        _check_writable(out, is_directory=output != "html")


def _check_writable(to: Path, *, is_directory: bool) -> None:
    """Refuse a path that cannot be written, before the whole log is read; creates nothing."""
    try:
        obstacle = _obstacle(to.absolute(), is_directory=is_directory)
    except OSError as error:  # the user may not search a directory above it
        obstacle = str(error)
    if obstacle is not None:
        raise click.BadParameter(f"{to} cannot be written: {obstacle}", param_hint="--out")


def _obstacle(place: Path, *, is_directory: bool) -> str | None:
    """Say why a file or directory cannot be written; a file's directory must exist, a directory may be created."""
    if is_directory:
        place = next(directory for directory in (place, *place.parents) if directory.exists())
        if not place.is_dir():
            return f"{place} is not a directory"
    elif place.is_dir():
        return f"{place} is a directory, not a file"
    elif not place.exists():
        place = place.parent
        if not place.is_dir():
            return f"there is no directory {place}"
    return None if os.access(place, os.W_OK) else f"you may not write to {place}"


def _asked_span(asked: dict[str, Any]) -> "AuditSpan":

    try:
        offsets = {} if asked["offsets"] is None else parse_offsets(asked["offsets"])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--offsets") from None
    return AuditSpan(asked["since_ms"], asked["until_ms"], offsets)


async def _open(settings: Settings, wanted: Mapping[int, tuple[int, int]] = _NOTHING) -> "Log":
    """Find the first and last offsets of the log now; refuse shards and offsets that it does not have."""
    connection = settings.log.connection()
    starts, ends = await _bounds(connection)
    for shard, (_, last) in sorted(wanted.items()):
        if shard not in ends:
            raise ConfigurationError(f"the log has shards 0 to {len(ends) - 1}, not {shard}")
        if last >= ends[shard]:
            raise ConfigurationError(f"shard {shard} of the log ends with offset {ends[shard] - 1}, before {last}")
    from drover.spark.audit.audit_run import Log  # noqa: PLC0415 - see audit
    from drover.spark.log_source import LogSource  # noqa: PLC0415 - see audit

    return Log(
        source=LogSource.of(settings.log),
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


def _show(report: "Report", log: "Log", asked: dict[str, Any], named: dict[str, str]) -> None:
    output, out, section = asked["output"], asked["out"], asked["section"]
    match output:
        case "table":
            print_report(report, section)
        case "json":
            print_json(report, section)
        case "csv" if out is None:
            print_csv(report, section)
        case "html":
            write_page(report, _made(log, asked, named), out)
        case _:
            write_files(report, output, out)


def _made(log: "Log", asked: dict[str, Any], named: dict[str, str]) -> "Made":
    from drover.spark.audit.page import Made  # noqa: PLC0415 - drawing is loaded only to draw

    now_ms = round(datetime.now(UTC).timestamp() * 1000)
    # The page states an end only for a part chosen by time, not by offsets, and never an end in the future.
    until_ms = now_ms if asked["until_ms"] is None else min(asked["until_ms"], now_ms)
    return Made(
        log=log.source.topics.events,
        version=__version__,
        made_ms=now_ms,
        end_ms=until_ms if asked["offsets"] is None else None,
        since_ms=asked["since_ms"],
        asked=named,
    )


@audit.command(example="drover audit verify")
@output_option
@common_options
@pass_invocation
def verify(invocation: Invocation, output: str) -> None:
    """Check every record of the log against the log's rules, and each recorded state hash against the derived state.

    Other readers stop at the first broken rule; this lists all of them, with exit code 5 if there are any. With
    `zookeeper.project = true`, also compares the tree of each configured cluster with the log, as
    `drover zookeeper verify` does; the exit code is 1 if they differ. Reads the log from its first record with Spark,
    all shards in parallel; with --cluster only that cluster's shard.
    """
    require(Extra.SPARK, "`drover audit verify`")
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    log = asyncio.run(_open(settings))
    from drover.spark.audit.audit_run import verified  # noqa: PLC0415 - see audit

    say(f"Starting Spark; its own log is {log.directory / 'spark.log'}", err=True)
    verification = verified(log, None if cluster is None else shard_of(cluster, len(log.ends)))
    broken = {finding.finding.shard for finding in verification.findings}
    trees = asyncio.run(compare_trees(settings, cluster, len(log.ends), broken))
    print_verification(verification, trees, output)
    if settings.zookeeper.hosts is not None and not settings.zookeeper.project:
        say(
            "ZooKeeper was not compared because zookeeper.project is not true; `drover zookeeper verify` compares it.",
            err=True,
        )
    if broken:
        raise click.exceptions.Exit(ExitCode.CORRUPT)
    if not all(tree.is_good for tree in trees):
        raise click.exceptions.Exit(ExitCode.FAILED)


Cell = Callable[[Row], str]


def _value(name: str) -> Cell:
    def cell(row: Row) -> str:
        value = row[name]
        if value is None:
            return ""
        return f"{value:,}" if isinstance(value, int) else str(value)

    return cell


def _timestamp_cell(name: str) -> Cell:
    return lambda row: "" if row[name] is None else timestamp(row[name])


def _span(name: str) -> Cell:
    return lambda row: "" if row[name] is None else duration(row[name])


def _bytes(row: Row) -> str:
    return at_least(row["bytes_copied"] or 0, row["bytes_unknown"])


def _place_cell(row: Row) -> str:
    return f"{row['shard']}@{row['offset']}"


def _partition(row: Row) -> str:
    return "" if row["topic"] is None else f"{row['topic']}:{row['partition']}"


def _undone(row: Row) -> str:
    return (
        "" if row["cancelled_by"] is None else f"{row['cancel_mode']} by {row['cancelled_by']}: {row['cancel_reason']}"
    )


def _values(*names: str) -> dict[str, Cell]:
    return {name.replace("_", " "): _value(name) for name in names}


_COUNTS = _values("completed", "rolled_back", "stopped", "failed")
# The columns of each section in a table for people; json, csv and parquet have all of them.
SECTION_COLUMNS: Mapping[str, Mapping[str, Cell]] = {
    "requesters": {
        **_values("requester", "commands"),
        "refused": _value("refused_commands"),
        **_values("refusals", "reassignments"),
        **_COUNTS,
        **_values("under_way"),
        "copied": _bytes,
    },
    "plans": {
        **_values("cluster", "plan", "requester", "reason"),
        "opened": _timestamp_cell("opened_ms"),
        "took": _span("duration_ms"),
        **_values("accepted"),
        **_COUNTS,
        "copied": _bytes,
    },
    "commands": {
        "time": _timestamp_cell("at_ms"),
        "log": _place_cell,
        **_values("cluster", "command", "by", "reason", "plan", "verdict", "accepted", "unchanged", "refused"),
    },
    "reassignments": {
        "cluster": _value("cluster"),
        "partition": _partition,
        **_values("plan", "requester", "state", "original", "target"),
        "began": _timestamp_cell("began_ms"),
        "took": _span("duration_ms"),
        "copied": _bytes,
        "undone": _undone,
        "why": _value("why"),
    },
    "refusals": {
        "time": _timestamp_cell("at_ms"),
        "log": _place_cell,
        **_values("cluster", "command", "by"),
        "partition": _partition,
        **_values("code", "detail"),
    },
}
_RIGHT = (
    *("commands", "refused", "refusals", "reassignments", "completed", "rolled back", "stopped", "failed", "under way"),
    *("copied", "took", "accepted", "unchanged", "log"),
)


def print_report(report: "Report", only: str | None) -> None:
    """Print the totals and every section that has rows, or one section."""
    screen = console()
    if only is None:
        screen.print(f"Records {report.offsets or 'none'}", markup=False)
        screen.print(table(("total", ""), [(name, text) for name, text in totals_of(report)], right=("",)))
    for name in SECTIONS if only is None else (only,):
        rows = report.sections[name]
        if rows:
            screen.print(f"\n{SECTIONS[name].title}", markup=False)
            cells = SECTION_COLUMNS[name]
            screen.print(table(tuple(cells), [[cell(row) for cell in cells.values()] for row in rows], right=_RIGHT))
    if not any(report.sections[name] for name in SECTIONS if only in {None, name}):
        say("That part of the log has no matching rows.", err=True)


def totals_of(report: "Report") -> list[tuple[str, str]]:
    """Format the totals for people."""
    written = []
    for name, value in report.totals.items():
        if value is None or name == "bytes_unknown":
            continue
        is_time, is_size = name.endswith("_ms"), name == "bytes_copied"
        size = at_least(value, report.totals.get("bytes_unknown") or 0) if is_size else ""
        text = duration(value) if is_time else size or f"{value:,}"
        written.append((name.removesuffix("_ms").replace("_", " "), text))
    return written


def print_json(report: "Report", only: str | None) -> None:
    """Print the audit, or one of its sections, for programs."""
    document = report.document()
    if only is not None:
        document = {name: value for name, value in document.items() if name == only or name not in SECTIONS}
    print_document(document, (), "json")


def print_csv(report: "Report", section: str) -> None:
    """Print one section as CSV."""
    from drover.spark.audit.files import csv_text  # noqa: PLC0415 - PyArrow costs start-up time

    say(csv_text(section, report.sections[section]), nl=False)


def write_page(report: "Report", made: "Made", file: Path | None) -> None:
    """Write the HTML page to a file, or print it; raises `OSError`."""
    from drover.spark.audit.page import page  # noqa: PLC0415 - drawing is loaded only to draw

    text = page(report, made)
    if file is None:
        say(text)
    else:
        file.write_text(text, encoding="utf-8")
        say(f"Wrote {file}", err=True)


def write_files(report: "Report", output: str, directory: Path) -> None:
    """Write every section to a file of its own; raises `OSError`."""
    from drover.spark.audit.files import write_csv, write_parquet  # noqa: PLC0415 - PyArrow costs start-up time

    files = (write_csv if output == "csv" else write_parquet)(report, directory)
    say(f"Wrote {plural(len(files), 'file')} to {directory}", err=True)


def print_verification(verification: "Verification", trees: Sequence[Compared], output: str) -> None:
    """Print the findings of an inspection of the log, and its comparison with ZooKeeper."""
    if output != "table":
        document = verification_document(verification) | {"zookeeper": [tree.document() for tree in trees]}
        print_document(document, document["findings"], output)
        return
    screen = console()
    if verification.findings:
        screen.print(table(FINDING_COLUMNS, map(_finding_cells, verification.findings), right=FINDING_COLUMNS[:2]))
        screen.print()
    screen.print(table(SHARD_COLUMNS, map(_shard_cells, verification.shards), right=SHARD_COLUMNS[:7]))
    records = sum(shard.records for shard in verification.shards)
    hashes = sum(shard.state_hashes for shard in verification.shards)
    for line in (line for tree in trees for line in tree.lines()):
        say(line)
    broken = plural(len(verification.findings), "broken rule") if verification.findings else "no broken rule"
    unchecked = sum(shard.unchecked_hashes for shard in verification.shards)
    summary = f"{plural(records, 'record')} inspected, {_hashes_in_words(hashes, unchecked)}"
    say(f"{summary}; {broken}.", err=True)


def _hashes_in_words(agree: int, unchecked: int) -> str:
    """Say how many recorded state hashes the replay matched; without any, only the hash chains are verified."""
    if agree == 0 and unchecked == 0:
        return "no state hash is recorded: the hash chains and the rules of records were checked, but not the state"
    passed_over = f" ({unchecked:,} more were not checked)" if unchecked else ""
    return f"{agree:,} recorded state {'hash agrees' if agree == 1 else 'hashes agree'}{passed_over}"


def verification_document(verification: "Verification") -> dict[str, Any]:
    """Return the result for programs; fields may be added and never changed."""
    return {
        "findings": [
            {**msgspec.structs.asdict(finding.finding), "appended_ms": finding.appended_ms}
            for finding in verification.findings
        ],
        "shards": [_shard_document(shard) for shard in verification.shards],
    }


def _shard_document(shard: Summary) -> dict[str, Any]:
    hashed = None if shard.state_hash is None else shard.state_hash.hex()
    return msgspec.structs.asdict(shard) | {"state_hash": hashed}


def _finding_cells(found: "Found") -> tuple[str, ...]:
    finding = found.finding
    return (str(finding.shard), str(finding.offset), timestamp(found.appended_ms), finding.rule.value, finding.what)


def _shard_cells(shard: Summary) -> tuple[str, ...]:
    counts = (shard.records, shard.batches, shard.fenced_batches, shard.findings)
    return (
        str(shard.shard),
        *(f"{count:,}" for count in (*counts, shard.state_hashes, shard.unchecked_hashes)),
        "cannot be derived" if shard.state_hash is None else shard.state_hash.hex(),
    )
