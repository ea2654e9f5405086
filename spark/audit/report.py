"""What an audit says, as plain rows: joined, filtered, summed up. Pure."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark.audit.facts import Facts, Row, ShardDamage
from spark.audit.parts import ShardPart, written
from spark.audit.sections import SECTIONS
from spark.folding.records import PART

Rows = tuple[Row, ...]
_COUNTED = ("accepted", "unchanged", "refused")
_UNDONE = {"rolled-back": "rollback", "stopped": "stop"}
_ENDED = ("completed", "rolled-back", "stopped", "failed")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are asked for; None means all. `by` is who asked, for a plan, a command or a cancel."""

    cluster: str | None = None
    plan: str | None = None
    topic: str | None = None
    by: str | None = None

    def has(self, row: Row, topics: Iterable[str | None], by: Iterable[str | None]) -> bool:
        """Whether a row is asked for that is about these topics and was asked for by these."""
        return (
            self.cluster in {None, row["cluster"]}
            and self.plan in {None, row["plan"]}
            and (self.topic is None or self.topic in topics)
            and (self.by is None or self.by in by)
        )


@dataclass(frozen=True, slots=True)
class Report:
    """An audit: the part of the log it is about, its totals, its sections by name, and where shards are damaged."""

    parts: tuple[ShardPart, ...]
    totals: Mapping[str, int | None]
    sections: Mapping[str, Rows]
    damages: tuple[ShardDamage, ...] = ()

    @property
    def offsets(self) -> str:
        """The part audited, as `--offsets` takes it: the same again, for ever."""
        return written(self.parts)

    def document(self) -> dict[str, Any]:
        """Return the audit for programs; fields may be added and never changed."""
        return {
            "offsets": self.offsets,
            "parts": [part._asdict() for part in self.parts],
            "totals": dict(self.totals),
            "damages": [damage._asdict() for damage in self.damages],
            **{name: list(rows) for name, rows in self.sections.items()},
        }


def report(facts: Facts, wanted: Wanted) -> Report:
    """Make the audit of a part of the log."""
    plans = facts.plans
    commands, refusals = _commands(facts, wanted)
    reassignments = tuple(sorted(_reassignments(facts, plans, wanted), key=_by_beginning))
    named = {(row["cluster"], row["plan"]) for row in (*commands, *reassignments) if row["plan"] is not None}
    sections: dict[str, Rows] = {
        "requesters": _requesters(commands, refusals, reassignments),
        "plans": tuple(sorted((_plan(plans[key]) for key in named & plans.keys()), key=_by_opening)),
        "commands": commands,
        "reassignments": reassignments,
        "refusals": refusals,
    }
    return Report(facts.parts, _totals(facts, sections), sections, facts.damages)


def _shaped(section: str, row: Row) -> Row:
    """Give a row exactly the columns of its section."""
    return {name: row[name] for name in SECTIONS[section].names}


def _by_place(row: Row) -> tuple[int, int, int, int]:
    return (row["at_ms"], row["shard"], row["offset"], row["index"])


def _by_opening(row: Row) -> tuple[Any, ...]:
    return (row["opened_ms"] or 0, row["cluster"], row["plan"])


def _by_beginning(row: Row) -> tuple[Any, ...]:
    return (row["began_ms"], row["shard"], row["began_offset"], row["topic"], row["partition"])


def _commands(facts: Facts, wanted: Wanted) -> tuple[Rows, Rows]:
    """Return the commands that are asked for, and the refusals."""
    refused: dict[Any, list[Row]] = {}
    for row in facts.refusals:
        refused.setdefault(_by_place(row), []).append(row)
    decided: list[Row] = []
    first: dict[Any, Row] = {}
    for row in sorted(facts.commands, key=_by_place):
        whole = row | {"refused": [(one["topic"], one["partition"]) for one in refused.get(_by_place(row), [])]}
        command = (row["shard"], row["cluster"], row["id"])
        if row["verdict"] == PART and command in first:
            # What was too much for one record is one command.
            for name in _COUNTED:
                first[command][name] = [*first[command][name], *whole[name]]
            continue
        if row["verdict"] != "duplicate":
            first[command] = whole
        decided.append(whole)
    commands = []
    for row in decided:
        topics = {topic for name in _COUNTED for topic, _ in row[name]}
        if wanted.has(row, topics, {row["by"]}):
            commands.append(_shaped("commands", row | {name: len(row[name]) for name in _COUNTED}))
    refusals = tuple(
        _shaped("refusals", row)
        for row in sorted(facts.refusals, key=_by_place)
        if wanted.has(row, {row["topic"]}, {row["by"]})
    )
    return tuple(commands), refusals


def _reassignments(facts: Facts, plans: Mapping[tuple[str, str], Row], wanted: Wanted) -> Iterable[Row]:
    """Yield what ended in the parts audited, and what was under way at their ends."""
    deciding = _deciding(facts.commands)
    for life in facts.lives:
        place, ended_ms = (life["cluster"], life["topic"], life["partition"]), life["ended_ms"]
        row = {
            **life,
            "plan_reason": plans.get((life["cluster"], life["plan"]), {}).get("reason"),
            "duration_ms": None if ended_ms is None else ended_ms - life["began_ms"],
        }
        if row["state"] in _UNDONE and row["cancelled_by"] is None:
            # Nothing had been sent, so that the record that decided the cancel has ended it, too.
            cause = deciding.get((row["shard"], row["offset"], *place))
            if cause is not None:
                row |= {"cancel_mode": _UNDONE[row["state"]], "cancelled_by": cause["by"]}
                row["cancel_reason"] = cause["reason"]
        if wanted.has(row, {life["topic"]}, {row["requester"], row["cancelled_by"]}):
            yield _shaped("reassignments", row)


def _deciding(commands: Rows) -> dict[tuple[Any, ...], Row]:
    """Return the last command of each record that was accepted for a partition."""
    return {
        (row["shard"], row["offset"], row["cluster"], topic, partition): row
        for row in sorted(commands, key=_by_place)
        if row["verdict"] in {"accepted", PART}
        for topic, partition in row["accepted"]
    }


def _plan(row: Row) -> Row:
    known = row["finished_ms"] is not None and row["opened_ms"] is not None
    counts = ("accepted", "completed", "rolled_back", "stopped", "failed", "withdrawn", "bytes_copied", "bytes_unknown")
    filled = {name: row[name] or 0 for name in counts}
    return _shaped("plans", row | filled | {"duration_ms": row["finished_ms"] - row["opened_ms"] if known else None})


def _requesters(commands: Rows, refusals: Rows, reassignments: Rows) -> Rows:
    found: dict[str, Row] = {}

    def of(who: str) -> Row:
        empty = dict.fromkeys(SECTIONS["requesters"].names, 0) | {"requester": who}
        return found.setdefault(who, empty)

    for row in commands:
        of(row["by"])["commands"] += 1
        of(row["by"])["refused_commands"] += row["verdict"] == "refused"
    for row in refusals:
        of(row["by"])["refusals"] += 1
    for row in reassignments:
        who = of(row["requester"])
        who["reassignments"] += 1
        who["bytes_copied"] += row["bytes_copied"] or 0
        who["bytes_unknown"] += row["bytes_unknown"] or 0
        who[row["state"].replace("-", "_") if row["state"] in _ENDED else "under_way"] += 1
    return tuple(found[who] for who in sorted(found))


def _totals(facts: Facts, sections: Mapping[str, Rows]) -> dict[str, int | None]:
    commands, reassignments = sections["commands"], sections["reassignments"]
    verdicts = _counter(commands, lambda row: row["verdict"])
    states = _counter(reassignments, lambda row: row["state"] if row["state"] in _ENDED else "under way")
    lasted = sorted(row["duration_ms"] for row in reassignments if row["state"] == "completed")
    return {
        "commands": len(commands),
        "accepted_commands": verdicts.get("accepted", 0),
        "refused_commands": verdicts.get("refused", 0),
        "repeated_commands": verdicts.get("duplicate", 0),
        "refusals": len(sections["refusals"]),
        "plans": len(sections["plans"]),
        "reassignments": len(reassignments),
        **{name.replace("-", "_"): states.get(name, 0) for name in _ENDED},
        "under_way": states.get("under way", 0),
        "cancels_asked_for": sum(row["cancelled_by"] is not None for row in reassignments),
        "bytes_copied": sum(row["bytes_copied"] or 0 for row in reassignments),
        "bytes_unknown": sum(row["bytes_unknown"] or 0 for row in reassignments),
        "completed_p50_ms": _quantile(lasted, 0.5),
        "completed_p95_ms": _quantile(lasted, 0.95),
        "completed_longest_ms": lasted[-1] if lasted else None,
        "unreadable_records": facts.unreadable,
    }


def _counter(rows: Rows, key: Callable[[Row], str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[key(row)] = counts.get(key(row), 0) + 1
    return counts


def _quantile(values: list[int], share: float) -> int | None:
    """Return the smallest value that is not below this share of the values; they are sorted."""
    return values[math.ceil(len(values) * share) - 1] if values else None
