"""One shard's part of an audit: folded from its beginning or from where it was kept, told from where the part begins.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from drover.errors import UnusableSnapshotError
from drover.shard.fold import RecordVerdict
from drover.tables.registry import CAPABILITIES, tables_of
from drover.tables.sheet import Sheet
from events.codec import chain_hash
from events.plans import PlanOpened
from events.records import Batch, Outcome
from spark.audit.facts import ShardDamage
from spark.audit.kept import NOTHING_KEPT, KeptShard, encoded
from spark.audit.lives import LIVES, under_way
from spark.audit.parts import Wish
from spark.folding.carry import packed, unpacked
from spark.folding.parts import Stored
from spark.folding.records import LOG_TABLES, verdicts
from spark.folding.shard import TellingFold, Tellings, shards_by

# The kinds of lines that a shard gives; those of the two tables have their columns, keys first.
BOUNDS, UNREADABLE, DAMAGE = "bounds", "unreadable", "damage"
KEPT, STALE = "kept", "stale"
COMMANDS, REFUSALS, PLANS, LIVES_ROWS = "commands", "refusals", "plans", "lives"
_TABLES = {**tables_of((*CAPABILITIES, LIVES)), **{table.name: table for table in LOG_TABLES}}
_TELLING = (*CAPABILITIES, LIVES)
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
    KEPT: ("shard", "position", "latest_ms", "content"),
    STALE: ("shard",),
}
# A shard is kept after so many events of it, and at its end.
KEPT_EVERY_EVENTS = 100_000
_Values = tuple[Any, ...]


class Line(NamedTuple):
    """Rows of one kind; their columns are those of `COLUMNS`."""

    kind: str
    rows: list[_Values]


class AuditFold(TellingFold):
    """A shard's fold up to the end of the part that was asked for, which begins at `first` and ends before `after`."""

    __slots__ = (
        "_fresh_events",
        "_wish",
        "after",
        "commands",
        "first",
        "latest_ms",
        "mentions",
        "refusals",
        "unreadable",
    )

    def __init__(self, shard: int, shards: int, wish: Wish) -> None:
        super().__init__(shard, shards, Sheet(_TABLES), _TOLD)
        self._wish = wish
        self.first: int | None = None
        self.after: int | None = None
        self.commands: list[_Values] = []
        self.refusals: list[_Values] = []
        self.latest_ms = 0
        self.mentions: dict[str, int] = {}
        self.unreadable: list[int] = []
        self._fresh_events = 0

    @classmethod
    def of_kept(cls, kept: KeptShard, wish: Wish) -> "AuditFold":
        """Go on from where a shard was kept. Raises `UnusableSnapshotError` for a damaged value."""
        fold, memories = unpacked(kept.carried, _TELLING)
        made = cls(fold.shard, fold.shards, wish)
        made.take_over(fold)
        made.memories = memories
        made.sheet.rows[PLANS] = kept.rows
        made.latest_ms, made.mentions, made.unreadable = kept.latest_ms, dict(kept.mentions), list(kept.unreadable)
        return made

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
        self._note(offset, record)
        super().apply(offset, record)

    def _note(self, offset: int, record: Batch) -> None:
        """Note what tells later audits where they may begin."""
        self.latest_ms = max(self.latest_ms, record.at_ms)
        self._fresh_events += len(record.events)
        named = [outcome.plan for outcome in record.outcomes]
        for plan in (*named, *(event.plan for event in record.events if isinstance(event, PlanOpened))):
            if plan is not None:
                self.mentions.setdefault(plan, offset)

    def kept(self, *, is_over: bool) -> Iterator[Line]:
        """Yield the shard for later audits, when enough of it is new, or when it is over; between two records only."""
        if self._fresh_events < (1 if is_over else KEPT_EVERY_EVENTS) or self.after is not None:
            return
        self._fresh_events = 0
        kept = KeptShard(
            shard=self.shard,
            position=self.position,
            chain_offset=self.chain_offset,
            latest_ms=self.latest_ms,
            mentions=self.mentions,
            unreadable=tuple(self.unreadable),
            plans=list(self.sheet.rows[PLANS].items()),  # type: ignore[arg-type]  # its keys are two names
            carried=packed(self, self.memories),
        )
        yield Line(KEPT, [(self.shard, self.position, self.latest_ms, encoded(kept))])

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
        yield from self.kept(is_over=True)
        self.fill_in()
        if self.first is None:
            self.sheet.rows[LIVES_ROWS].clear()
        for cluster, state in self.state.clusters.items():
            for key, row in under_way(state, self.memories_of(cluster)[LIVES.name], self.shard).items():
                self.sheet.put(LIVES_ROWS, key, **row)
        yield Line(BOUNDS, [(self.shard, self.first, self.after)])
        if self.damage is not None:
            yield Line(DAMAGE, [(self.shard, *self.damage)])
        yield Line(UNREADABLE, [(self.shard, offset) for offset in self.unreadable])
        yield Line(COMMANDS, self.commands)
        yield Line(REFUSALS, self.refusals)
        for name, rows in self.sheet.complete():
            if name in {PLANS, LIVES_ROWS}:
                yield Line(name, rows)


def audited(records: Iterable[Stored], wish: Wish, kept: Mapping[int, KeptShard] = NOTHING_KEPT) -> Iterator[Line]:
    """Audit records of the log; those of one shard come together.

    They come from the shard's first on, or from the last batch that a kept one has: it must be the same batch. Where it
    is not, the shard has one line that says so, and no other.
    """
    for shard, of_shard in groupby(records, attrgetter("partition")):
        if not wish.has_shard(shard):
            continue
        first = next(of_shard)
        fold = _begun(shard, first.offset, first.value or b"", wish, kept.get(shard))
        if fold is None:
            yield Line(STALE, [(shard,)])
            continue
        for _, _, offset, _, value in chain((first,), of_shard):
            if fold.after is not None:
                break
            damage = fold.damage
            folded = fold.fold_on(offset, value or b"")
            is_void = folded is not None and folded.verdict is RecordVerdict.VOID and folded.record is None
            if is_void or fold.damage is not damage:
                fold.unreadable.append(offset)
            yield from fold.kept(is_over=False)
        yield from fold.lines()


def _begun(shard: int, offset: int, payload: bytes, wish: Wish, kept: KeptShard | None) -> AuditFold | None:
    """Return the fold of a shard whose first record is given; None if this is not the log of what was kept."""
    if kept is None:
        return AuditFold(shard, shards_by(payload), wish)
    try:
        fold = AuditFold.of_kept(kept, wish)
    except UnusableSnapshotError:
        return None
    is_same = (fold.chain_offset, fold.chain) == (offset, chain_hash(payload))
    return fold if is_same else None


def _of_command(shard: int, offset: int, index: int, at_ms: int, outcome: Outcome) -> _Values:
    named = (outcome.cluster, outcome.id, outcome.type, outcome.by, outcome.reason, outcome.plan)
    return (at_ms, shard, offset, index, *named)
