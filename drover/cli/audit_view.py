"""How audits are printed and written."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from drover.cli.audit_trees import Compared
from drover.cli.output import at_least, console, duration, plural, print_document, say, table, timestamp
from drover.fold.inspection import Summary
from drover.spark.audit.facts import Row
from drover.spark.audit.files import csv_text, write_csv, write_parquet
from drover.spark.audit.report import Report
from drover.spark.audit.sections import SECTIONS
from drover.spark.audit.verifying import Found, Verification

if TYPE_CHECKING:
    from drover.spark.audit.page import Made

Cell = Callable[[Row], str]


def _value(name: str) -> Cell:
    def cell(row: Row) -> str:
        value = row[name]
        if value is None:
            return ""
        return f"{value:,}" if isinstance(value, int) else str(value)

    return cell


def _moment(name: str) -> Cell:
    return lambda row: "" if row[name] is None else timestamp(row[name])


def _span(name: str) -> Cell:
    return lambda row: "" if row[name] is None else duration(row[name])


def _bytes(row: Row) -> str:
    return at_least(row["bytes_copied"] or 0, row["bytes_unknown"])


def _place(row: Row) -> str:
    return f"{row['shard']}@{row['offset']}"


def _partition(row: Row) -> str:
    return "" if row["topic"] is None else f"{row['topic']}:{row['partition']}"


def _undone(row: Row) -> str:
    return (
        "" if row["cancelled_by"] is None else f"{row['cancel_mode']} by {row['cancelled_by']}: {row['cancel_reason']}"
    )


_COUNTS: Mapping[str, Cell] = {
    "completed": _value("completed"),
    "rolled back": _value("rolled_back"),
    "stopped": _value("stopped"),
    "failed": _value("failed"),
}
# The columns of each section that a person wants to see; json, csv and parquet have all of them.
COLUMNS: Mapping[str, Mapping[str, Cell]] = {
    "requesters": {
        "requester": _value("requester"),
        "commands": _value("commands"),
        "refused": _value("refused_commands"),
        "refusals": _value("refusals"),
        "reassignments": _value("reassignments"),
        **_COUNTS,
        "under way": _value("under_way"),
        "copied": _bytes,
    },
    "plans": {
        "cluster": _value("cluster"),
        "plan": _value("plan"),
        "requester": _value("requester"),
        "reason": _value("reason"),
        "opened": _moment("opened_ms"),
        "took": _span("duration_ms"),
        "accepted": _value("accepted"),
        **_COUNTS,
        "copied": _bytes,
    },
    "commands": {
        "time": _moment("at_ms"),
        "log": _place,
        "cluster": _value("cluster"),
        "command": _value("command"),
        "by": _value("by"),
        "reason": _value("reason"),
        "plan": _value("plan"),
        "verdict": _value("verdict"),
        "accepted": _value("accepted"),
        "unchanged": _value("unchanged"),
        "refused": _value("refused"),
    },
    "reassignments": {
        "cluster": _value("cluster"),
        "partition": _partition,
        "plan": _value("plan"),
        "requester": _value("requester"),
        "state": _value("state"),
        "original": _value("original"),
        "target": _value("target"),
        "began": _moment("began_ms"),
        "took": _span("duration_ms"),
        "copied": _bytes,
        "undone": _undone,
        "why": _value("why"),
    },
    "refusals": {
        "time": _moment("at_ms"),
        "log": _place,
        "cluster": _value("cluster"),
        "command": _value("command"),
        "by": _value("by"),
        "partition": _partition,
        "code": _value("code"),
        "detail": _value("detail"),
    },
}
_RIGHT = (
    *("commands", "refused", "refusals", "reassignments", "completed", "rolled back", "stopped", "failed", "under way"),
    *("copied", "took", "accepted", "unchanged", "log"),
)
FINDING_COLUMNS = ("shard", "offset", "appended", "rule", "what is wrong")
SHARD_COLUMNS = ("shard", "records", "batches", "fenced", "findings", "hashes agree", "not checked", "state hash")


def print_report(found: Report, only: str | None) -> None:
    """Print the totals and every section that has rows, or one section."""
    screen = console()
    if only is None:
        screen.print(f"Records {found.offsets or 'none'}", markup=False)
        screen.print(table(("total", ""), [(name, text) for name, text in totals_of(found)], right=("",)))
    for name in SECTIONS if only is None else (only,):
        rows = found.sections[name]
        if rows:
            screen.print(f"\n{SECTIONS[name].title}", markup=False)
            cells = COLUMNS[name]
            screen.print(table(tuple(cells), [[cell(row) for cell in cells.values()] for row in rows], right=_RIGHT))
    if not any(found.sections[name] for name in SECTIONS if only in {None, name}):
        say("That part of the log holds nothing of the kind.", err=True)


def totals_of(found: Report) -> list[tuple[str, str]]:
    """Write the totals for a person."""
    written = []
    for name, value in found.totals.items():
        if value is None or name == "bytes_unknown":
            continue
        is_time, is_size = name.endswith("_ms"), name == "bytes_copied"
        size = at_least(value, found.totals.get("bytes_unknown") or 0) if is_size else ""
        text = duration(value) if is_time else size or f"{value:,}"
        written.append((name.removesuffix("_ms").replace("_", " "), text))
    return written


def print_json(found: Report, only: str | None) -> None:
    """Print the audit, or one of its sections, for programs."""
    document = found.document()
    if only is not None:
        document = {name: value for name, value in document.items() if name == only or name not in SECTIONS}
    print_document(document, (), "json")


def print_csv(found: Report, section: str) -> None:
    """Print one section as CSV."""
    say(csv_text(section, found.sections[section]), nl=False)


def write_page(found: Report, made: "Made", file: Path | None) -> None:
    """Write the HTML page to a file, or print it; raises `OSError`."""
    from drover.spark.audit.page import page  # noqa: PLC0415 - drawing is loaded only to draw

    text = page(found, made)
    if file is None:
        say(text)
    else:
        file.write_text(text, encoding="utf-8")
        say(f"Wrote {file}", err=True)


def write_files(found: Report, output: str, directory: Path) -> None:
    """Write every section to a file of its own; raises `OSError`."""
    files = (write_csv if output == "csv" else write_parquet)(found, directory)
    say(f"Wrote {plural(len(files), 'file')} to {directory}", err=True)


def print_verification(found: Verification, trees: Sequence[Compared], output: str) -> None:
    """Print the findings of an inspection of the log, and its comparison with ZooKeeper."""
    if output != "table":
        document = verification_document(found) | {"zookeeper": [tree.document() for tree in trees]}
        print_document(document, document["findings"], output)
        return
    screen = console()
    if found.findings:
        screen.print(table(FINDING_COLUMNS, map(_finding_cells, found.findings), right=FINDING_COLUMNS[:2]))
        screen.print()
    screen.print(table(SHARD_COLUMNS, map(_shard_cells, found.shards), right=SHARD_COLUMNS[:7]))
    records = sum(shard.records for shard in found.shards)
    hashes = sum(shard.state_hashes for shard in found.shards)
    for line in (line for tree in trees for line in tree.lines()):
        say(line)
    broken = plural(len(found.findings), "broken rule") if found.findings else "no broken rule"
    unchecked = sum(shard.unchecked_hashes for shard in found.shards)
    said = f"{plural(records, 'record')} inspected, {_told_hashes(hashes, unchecked)}"
    say(f"{said}; {broken}.", err=True)


def _told_hashes(agree: int, unchecked: int) -> str:
    """Say what the state was held against; without a recorded hash nothing but the chains is proven."""
    if agree == 0 and unchecked == 0:
        return "no state hash is recorded: only the chains and the rules of records were checked, not the state"
    passed_over = f" ({unchecked:,} more were not checked)" if unchecked else ""
    return f"{agree:,} recorded state {'hash agrees' if agree == 1 else 'hashes agree'}{passed_over}"


def verification_document(found: Verification) -> dict[str, Any]:
    """Return the result for programs; fields may be added and never changed."""
    return {
        "findings": [{**msgspec.structs.asdict(one.finding), "appended_ms": one.appended_ms} for one in found.findings],
        "shards": [_shard_document(shard) for shard in found.shards],
    }


def _shard_document(shard: Summary) -> dict[str, Any]:
    hashed = None if shard.state_hash is None else shard.state_hash.hex()
    return msgspec.structs.asdict(shard) | {"state_hash": hashed}


def _finding_cells(found: Found) -> tuple[str, ...]:
    finding = found.finding
    return (str(finding.shard), str(finding.offset), timestamp(found.appended_ms), finding.rule.value, finding.what)


def _shard_cells(shard: Summary) -> tuple[str, ...]:
    counts = (shard.records, shard.batches, shard.fenced_batches, shard.findings)
    return (
        str(shard.shard),
        *(f"{count:,}" for count in (*counts, shard.state_hashes, shard.unchecked_hashes)),
        "cannot be derived" if shard.state_hash is None else shard.state_hash.hex(),
    )
