"""The report of one shard: its rows and sums, made in the task that folded it, so that it sends little. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from msgspec import Struct

from drover.spark.audit.facts import Decided, Row, ShardDamage, ShardFacts
from drover.spark.audit.sections import SECTIONS

REQUESTERS, PLANS, COMMANDS, REASSIGNMENTS, REFUSALS = SECTIONS
# The totals that are sums.
COUNTS = (
    *("commands", "accepted_commands", "refused_commands", "repeated_commands", "refusals", "plans", "reassignments"),
    *("completed", "rolled_back", "stopped", "failed", "under_way", "cancels_asked_for"),
    *("bytes_copied", "bytes_unknown"),
)
# The columns by which the rows of a section are sorted; rows of a shard that are equal in these keep their order.
_ORDERS: Mapping[str, tuple[str, ...]] = {
    PLANS: ("opened_ms", "cluster", "plan"),
    COMMANDS: ("at_ms", "shard", "offset"),
    REASSIGNMENTS: ("began_ms", "shard", "began_offset", "topic", "partition"),
    REFUSALS: ("at_ms", "shard", "offset"),
}
_VERDICTS = {"accepted": "accepted_commands", "refused": "refused_commands", "duplicate": "repeated_commands"}
_UNDONE = {"rolled-back": "rollback", "stopped": "stop"}
_ENDED = {name: name.replace("-", "_") for name in ("completed", "rolled-back", "stopped", "failed")}
_PLAN_COUNTS = (
    "accepted",
    "completed",
    "rolled_back",
    "stopped",
    "failed",
    "withdrawn",
    "bytes_copied",
    "bytes_unknown",
)
_Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selects the rows of an audit; None selects all. `by` is the author of a plan, a command or a cancel.

    Only `sections` have rows. Requesters and totals are always there.
    """

    cluster: str | None = None
    plan: str | None = None
    topic: str | None = None
    by: str | None = None
    sections: Collection[str] = tuple(SECTIONS)

    def has(self, cluster: str, plan: str | None, topics: Collection[str | None], by: Collection[str | None]) -> bool:
        """Whether rows of this cluster, this plan, any of these topics and any of these requesters are selected."""
        return (
            self.cluster in {None, cluster}
            and self.plan in {None, plan}
            and (self.topic is None or self.topic in topics)
            and (self.by is None or self.by in by)
        )


class ShardReport(Struct, kw_only=True, tag="report"):
    """The rows and sums of one shard; `ShardFacts` explains `first` and `after`.

    `counts` are sums by the names of totals, and `requesters` the same by requester and column. `completed_ms` are
    the durations of the completed reassignments, sorted. `rows` are those of each selected section: sorted, with its
    columns.
    """

    shard: int
    first: int | None
    after: int | None
    unreadable: tuple[int, ...]
    damage: ShardDamage | None
    counts: dict[str, int]
    completed_ms: list[int]
    requesters: dict[str, dict[str, int]]
    rows: dict[str, list[tuple[Any, ...]]]


class _Totals:
    """Sums and rows of a shard under construction."""

    def __init__(self, wanted: Wanted) -> None:
        self.counts: dict[str, int] = {}
        self.requesters: dict[str, dict[str, int]] = {}
        self.rows: dict[str, list[Row]] = {name: [] for name in wanted.sections if name != REQUESTERS}

    def of(self, requester: str) -> dict[str, int]:
        """Return the sums of a requester, to be added to."""
        return self.requesters.setdefault(requester, {})

    def shaped(self) -> dict[str, list[_Values]]:
        """Return the sorted rows of each section, with exactly its columns."""
        return {name: in_order(name, map(itemgetter(*SECTIONS[name].names), rows)) for name, rows in self.rows.items()}


def _duration_ms(life: Row) -> int | None:
    """Return the duration of a reassignment; None before its end."""
    ended_ms: int | None = life["ended_ms"]
    return None if ended_ms is None else ended_ms - life["began_ms"]


def shard_report(facts: ShardFacts, wanted: Wanted) -> ShardReport:
    """Make the report of a shard, with the rows that are wanted."""
    totals = _Totals(wanted)
    decided = sorted(facts.decided, key=lambda entry: entry[:3])
    named = _add_commands(decided, wanted, totals)
    _add_refusals(decided, wanted, totals)
    lives = [
        life | {"duration_ms": _duration_ms(life)}
        for life in _with_causes(facts.lives, decided)
        if _is_wanted(life, wanted)
    ]
    named.update((life["cluster"], life["plan"]) for life in lives)
    completed_ms = _add_lives(lives, totals)
    if REASSIGNMENTS in totals.rows:
        totals.rows[REASSIGNMENTS] += lives
    plans = named & facts.plans.keys()
    totals.counts["plans"] = len(plans)
    if PLANS in totals.rows:
        totals.rows[PLANS] += (_plan(key, facts.plans[key]) for key in plans)
    return ShardReport(
        shard=facts.shard,
        first=facts.first,
        after=facts.after,
        unreadable=tuple(facts.unreadable),
        damage=facts.damage,
        counts=totals.counts,
        completed_ms=completed_ms,
        requesters=totals.requesters,
        rows=totals.shaped(),
    )


def in_order(section: str, rows: Iterable[_Values]) -> list[_Values]:
    """Sort rows that have the columns of their section."""
    places = [SECTIONS[section].names.index(column) for column in _ORDERS[section]]
    return sorted(rows, key=lambda row: [-1 if row[place] is None else row[place] for place in places])


def _add(counts: dict[str, int], name: str, more: int = 1) -> None:
    counts[name] = counts.get(name, 0) + more


def _named(decided: Decided) -> Row:
    outcome = decided.outcome
    return {
        "at_ms": decided.at_ms,
        "shard": decided.shard,
        "offset": decided.offset,
        "cluster": outcome.cluster,
        "id": outcome.id,
        "command": outcome.type,
        "by": outcome.by,
        "reason": outcome.reason,
        "plan": outcome.plan,
    }


def _add_commands(decided: Iterable[Decided], wanted: Wanted, totals: _Totals) -> set[_Values]:
    """Report the selected commands, and return the plans that they name."""
    plans: set[_Values] = set()
    for decision in decided:
        outcome = decision.outcome
        topics: set[str | None] = {partition.topic for partition in (*outcome.accepted, *outcome.unchanged)}
        topics.update(refusal.topic for refusal in outcome.refusals)
        if not wanted.has(outcome.cluster, outcome.plan, topics, (outcome.by,)):
            continue
        sums = totals.of(outcome.by)
        _add(sums, "commands")
        _add(totals.counts, "commands")
        _add(totals.counts, _VERDICTS[outcome.verdict])
        if outcome.verdict == "refused":
            _add(sums, "refused_commands")
        if outcome.plan is not None:
            plans.add((outcome.cluster, outcome.plan))
        if COMMANDS in totals.rows:
            counts = {
                "accepted": len(outcome.accepted),
                "unchanged": len(outcome.unchanged),
                "refused": len(outcome.refusals),
            }
            totals.rows[COMMANDS].append(_named(decision) | {"verdict": outcome.verdict} | counts)
    return plans


def _add_refusals(decided: Iterable[Decided], wanted: Wanted, totals: _Totals) -> None:
    for decision in decided:
        outcome = decision.outcome
        for refusal in outcome.refusals:
            if not wanted.has(outcome.cluster, outcome.plan, (refusal.topic,), (outcome.by,)):
                continue
            _add(totals.of(outcome.by), "refusals")
            _add(totals.counts, "refusals")
            if REFUSALS in totals.rows:
                about = {"topic": refusal.topic, "partition": refusal.partition}
                reason = {"code": str(refusal.code), "detail": refusal.detail}
                totals.rows[REFUSALS].append(_named(decision) | about | reason)


def _with_causes(lives: Iterable[Row], decided: Iterable[Decided]) -> Iterator[Row]:
    """Yield lives, adding the author of the cancel to those that ended untouched, in the record of that decision."""
    by_offset: dict[int, list[Decided]] = {}
    for decision in decided:
        if decision.outcome.verdict == "accepted":
            by_offset.setdefault(decision.offset, []).append(decision)
    causes: dict[int, dict[_Values, Decided]] = {}
    for life in lives:
        mode, offset = _UNDONE.get(life["state"]), life["offset"]
        if mode is None or life["cancelled_by"] is not None or offset not in by_offset:
            yield life
            continue
        if offset not in causes:
            causes[offset] = {
                (decision.outcome.cluster, partition.topic, partition.partition): decision
                for decision in by_offset[offset]
                for partition in decision.outcome.accepted
            }
        cause = causes[offset].get((life["cluster"], life["topic"], life["partition"]))
        if cause is None:
            yield life
        else:
            origin = {"cancelled_by": cause.outcome.by, "cancel_reason": cause.outcome.reason}
            yield life | {"cancel_mode": mode} | origin


def _is_wanted(life: Row, wanted: Wanted) -> bool:
    return wanted.has(life["cluster"], life["plan"], (life["topic"],), (life["requester"], life["cancelled_by"]))


def _add_lives(lives: Iterable[Row], totals: _Totals) -> list[int]:
    """Count reassignments, and return the durations of the completed ones."""
    completed_ms: list[int] = []
    # By requester and state: the number of reassignments, and the bytes copied.
    durations: dict[_Values, list[int]] = {}
    for life in lives:
        state = life["state"]
        sums = durations.get((life["requester"], state))
        if sums is None:
            sums = durations[life["requester"], state] = [0, 0, 0, 0]
        sums[0] += 1
        sums[1] += life["bytes_copied"] or 0
        sums[2] += life["bytes_unknown"] or 0
        sums[3] += life["cancelled_by"] is not None
        if state == "completed":
            completed_ms.append(life["duration_ms"])
    for (requester, state), (count, copied, unknown, cancels) in durations.items():
        for counts in (totals.counts, totals.of(requester)):
            _add(counts, "reassignments", count)
            _add(counts, _ENDED.get(state, "under_way"), count)
            _add(counts, "bytes_copied", copied)
            _add(counts, "bytes_unknown", unknown)
        _add(totals.counts, "cancels_asked_for", cancels)
    return sorted(completed_ms)


def _plan(key: _Values, values: Row) -> Row:
    row: Row = {name: values.get(name) for name in SECTIONS[PLANS].names}
    row |= {"cluster": key[0], "plan": key[1]} | {name: row[name] or 0 for name in _PLAN_COUNTS}
    if row["finished_ms"] is not None and row["opened_ms"] is not None:
        row["duration_ms"] = row["finished_ms"] - row["opened_ms"]
    return row
