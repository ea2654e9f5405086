"""One shard's part of an audit: folded from its first record, told from where the part begins. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from drover.shard.fold import RecordVerdict
from drover.tables.registry import CAPABILITIES, tables_of
from drover.tables.sheet import Sheet
from events.records import Batch, Outcome
from spark.audit.facts import ShardDamage
from spark.audit.lives import LIVES, under_way
from spark.audit.parts import Wish
from spark.folding.parts import Stored
from spark.folding.records import LOG_TABLES, verdicts
from spark.folding.shard import TellingFold, Tellings, shards_by

# The kinds of lines that a shard gives; those of the two tables have their columns, keys first.
BOUNDS, UNREADABLE, DAMAGE = "bounds", "unreadable", "damage"
COMMANDS, REFUSALS, PLANS, LIVES_ROWS = "commands", "refusals", "plans", "lives"
_TABLES = {**tables_of((*CAPABILITIES, LIVES)), **{table.name: table for table in LOG_TABLES}}
_TOLD = Tellings((*CAPABILITIES, LIVES), {PLANS, LIVES_ROWS})
_OF_COMMAND = ("at_ms", "shard", "offset", "index", "cluster", "id", "command", "by", "reason", "plan")
COLUMNS = {
    BOUNDS: ("shard", "first", "after"),
    UNREADABLE: ("shard", "offset"),
    COMMANDS: (*_OF_COMMAND, "verdict", "accepted", "unchanged"),
    REFUSALS: (*_OF_COMMAND, "topic", "partition", "code", "detail"),
    PLANS: _TABLES[PLANS].names,
    LIVES_ROWS: _TABLES[LIVES_ROWS].names,
    DAMAGE: ShardDamage._fields,
}
_Values = tuple[Any, ...]


class Line(NamedTuple):
    """Rows of one kind; their columns are those of `COLUMNS`."""

    kind: str
    rows: list[_Values]


class AuditFold(TellingFold):
    """A shard's fold up to the end of the part that was asked for, which begins at `first` and ends before `after`."""

    __slots__ = ("_wish", "after", "commands", "first", "refusals")

    def __init__(self, shard: int, shards: int, wish: Wish) -> None:
        super().__init__(shard, shards, Sheet(_TABLES), _TOLD)
        self._wish = wish
        self.first: int | None = None
        self.after: int | None = None
        self.commands: list[_Values] = []
        self.refusals: list[_Values] = []

    def apply(self, offset: int, record: Batch) -> None:
        """Apply a batch unless it comes after the part; within it, keep what was decided."""
        if self._wish.ends_before(self.shard, offset, record.at_ms):
            self.after = offset
            return
        if self.first is None and self._wish.has_begun(self.shard, offset, record.at_ms):
            self.first = offset
            # What ended before is not asked for.
            self.sheet.rows[LIVES_ROWS].clear()
        if self.first is not None:
            for index, (outcome, verdict) in enumerate(zip(record.outcomes, verdicts(record), strict=True)):
                self._keep(_of_command(self.shard, offset, index, record.at_ms, outcome), outcome, verdict)
        super().apply(offset, record)

    def _keep(self, named: _Values, outcome: Outcome, verdict: str) -> None:
        accepted, unchanged = (
            [(one.topic, one.partition) for one in found] for found in (outcome.accepted, outcome.unchanged)
        )
        self.commands.append((*named, verdict, accepted, unchanged))
        self.refusals += [
            (*named, refusal.topic, refusal.partition, str(refusal.code), refusal.detail)
            for refusal in outcome.refusals
        ]

    def lines(self) -> Iterator[Line]:
        """Yield what the part holds, and the plans as they were at its end."""
        self.fill_in()
        if self.first is None:
            self.sheet.rows[LIVES_ROWS].clear()
        for cluster, state in self.state.clusters.items():
            for key, row in under_way(state, self.memories_of(cluster)[LIVES.name], self.shard).items():
                self.sheet.put(LIVES_ROWS, key, **row)
        yield Line(BOUNDS, [(self.shard, self.first, self.after)])
        if self.damage is not None:
            yield Line(DAMAGE, [(self.shard, *self.damage)])
        yield Line(COMMANDS, self.commands)
        yield Line(REFUSALS, self.refusals)
        for name, rows in self.sheet.complete():
            if name in {PLANS, LIVES_ROWS}:
                yield Line(name, rows)


def audited(records: Iterable[Stored], wish: Wish) -> Iterator[Line]:
    """Audit records of the log; those of one shard come together, from its first on."""
    fold: AuditFold | None = None
    for _, shard, offset, _, value in records:
        if not wish.has_shard(shard):
            continue
        payload = value or b""
        if fold is None or fold.shard != shard:
            if fold is not None:
                yield from fold.lines()
            fold = AuditFold(shard, shards_by(payload), wish)
        if fold.after is not None:
            continue
        damage = fold.damage
        folded = fold.fold_on(offset, payload)
        is_void = folded is not None and folded.verdict is RecordVerdict.VOID and folded.record is None
        if is_void or fold.damage is not damage:
            yield Line(UNREADABLE, [(shard, offset)])
    if fold is not None:
        yield from fold.lines()


def _of_command(shard: int, offset: int, index: int, at_ms: int, outcome: Outcome) -> _Values:
    named = (outcome.cluster, outcome.id, outcome.type, outcome.by, outcome.reason, outcome.plan)
    return (at_ms, shard, offset, index, *named)
