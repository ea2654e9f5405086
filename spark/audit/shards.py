"""Folds one shard for an audit, from its first record or from a kept state, and reports the audited part.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from operator import attrgetter

from msgspec import Struct

from drover.errors import UnusableSnapshotError
from drover.events.codec import chain_hash
from drover.events.plans import PlanOpened
from drover.events.records import Batch
from drover.fold.log import RecordVerdict
from drover.spark.audit.facts import Decided, ShardDamage, ShardFacts
from drover.spark.audit.kept import NOTHING_KEPT, Kept, KeptShard, Place, encoded
from drover.spark.audit.lives import LIVES, under_way
from drover.spark.audit.parts import AuditSpan
from drover.spark.audit.shard_report import ShardReport, Wanted, shard_report
from drover.spark.folding.carry import packed, unpacked
from drover.spark.folding.parts import Stored
from drover.spark.folding.shard import HANDLERS, EventHandlers, TablesFold, shards_by
from drover.spark.tables.registry import tables_of
from drover.spark.tables.row_buffer import RowBuffer

_PLANS, _LIVES = "plans", "lives"
_HANDLERS = (*HANDLERS, LIVES)
_TABLES = tables_of(_HANDLERS)
_KEPT_HANDLERS = EventHandlers(_HANDLERS, {_PLANS, _LIVES})
# The number of events after which a shard is kept; it is kept at its end, too.
KEPT_EVERY_EVENTS = 100_000


class Stale(Struct, tag="stale"):
    """A shard whose kept state is of another log; it has no report."""

    shard: int


Line = ShardReport | Kept | Stale


class AuditFold(TablesFold):
    """A shard's fold for an audit of the part that was asked for, which begins at `first` and ends before `after`.

    A batch that puts the log's time back (R6) may show that the part begins or ends later than it seemed before. So the
    report is made where the part seems to end, the fold goes on, and the report is made again if there is more.
    """

    __slots__ = (
        "_fresh_events",
        "_report",
        "_span",
        "_wanted",
        "after",
        "decided",
        "first",
        "mentions",
        "unreadable",
    )

    def __init__(self, shard: int, shards: int, span: AuditSpan, wanted: Wanted) -> None:
        super().__init__(shard, shards, RowBuffer(_TABLES), _KEPT_HANDLERS)
        self._span = span
        self._wanted = wanted
        self._report: ShardReport | None = None
        self.first: int | None = None
        self.after: int | None = None
        self.decided: list[Decided] = []
        self.mentions: dict[str, int] = {}
        self.unreadable: list[int] = []
        self._fresh_events = 0

    @classmethod
    def of_kept(cls, kept: KeptShard, span: AuditSpan, wanted: Wanted) -> "AuditFold":
        """Continue from a kept shard. Raises `UnusableSnapshotError` for a damaged value."""
        fold, memories = unpacked(kept.carried, _HANDLERS)
        made = cls(fold.shard, fold.shards, span, wanted)
        made.take_over(fold)
        made.memories = memories
        made.buffer.rows[_PLANS] = kept.rows
        made.mentions, made.unreadable = dict(kept.mentions), list(kept.unreadable)
        return made

    def apply(self, offset: int, record: Batch) -> None:
        """Apply a batch; make the report before the first batch after the part, and keep the decisions within it."""
        if self.after is None and self._span.ends_before(self.shard, offset, record.at_ms):
            self.after = offset
            self._report = self._reported()
        if self.first is None and self._span.has_begun(self.shard, offset, record.at_ms):
            self.first = offset
            # Reassignments that ended before the part do not belong to it.
            self.buffer.rows[_LIVES].clear()
        if self.first is not None:
            self.decided += (Decided(record.at_ms, self.shard, offset, outcome) for outcome in record.outcomes)
        self._note(offset, record)
        super().apply(offset, record)

    def _note(self, offset: int, record: Batch) -> None:
        """Note the first mention of each plan, by which later audits choose where to begin."""
        self._fresh_events += len(record.events)
        for outcome in record.outcomes:
            if outcome.plan is not None:
                self.mentions.setdefault(outcome.plan, offset)
        for event in record.events:
            if type(event) is PlanOpened:  # by type, since every event comes here
                self.mentions.setdefault(event.plan, offset)

    def kept(self, *, is_over: bool) -> Iterator[Kept]:
        """Yield the shard for later audits, after enough new events or at its end; call it between two records only."""
        if self._fresh_events < (1 if is_over else KEPT_EVERY_EVENTS):
            return
        self._fresh_events = 0
        kept = KeptShard(
            shard=self.shard,
            position=self.position,
            chain_offset=self.chain_offset,
            latest_ms=self.at_ms,
            mentions=self.mentions,
            unreadable=tuple(self.unreadable),
            plans=[((str(cluster), str(plan)), row) for (cluster, plan), row in self.buffer.rows[_PLANS].items()],
            carried=packed(self, self.memories),
        )
        yield Kept(self.shard, Place(self.position, self.at_ms), encoded(kept))

    def report(self) -> ShardReport:
        """Report the part, once no more records come."""
        return self._reported() if self._report is None else self._report

    def _reported(self) -> ShardReport:
        plans = self.buffer.rows[_PLANS]
        # On copies, because the report fills in rows with which the fold may go on.
        self.buffer.rows[_PLANS] = {key: dict(row) for key, row in plans.items()}
        reported = shard_report(self._facts(), self._wanted)
        self.buffer.rows[_PLANS] = plans
        return reported

    def _facts(self) -> ShardFacts:
        self.fill_in()
        if self.first is None:
            self.buffer.rows[_LIVES].clear()
        open_lives = (
            life
            for state in self.state.clusters.values()
            for life in under_way(state, self.memories_of(state.name)[LIVES.name], self.shard)
        )
        return ShardFacts(
            shard=self.shard,
            first=self.first,
            after=self.after,
            plans=self.buffer.rows[_PLANS],
            lives=(*self.buffer.rows[_LIVES].values(), *open_lives),
            decided=self.decided,
            unreadable=self.unreadable,
            damage=None if self.damage is None else ShardDamage(self.shard, *self.damage),
        )


def audited(
    records: Iterable[Stored], span: AuditSpan, wanted: Wanted, kept: Mapping[int, KeptShard] = NOTHING_KEPT
) -> Iterator[Line]:
    """Audit records of the log; those of one shard come together.

    They begin with the shard's first record, or with the last batch of its kept shard, which must be the same batch. If
    it is not, the shard has a single line, `Stale`.
    """
    for shard, of_shard in groupby(records, attrgetter("partition")):
        if not span.has_shard(shard):
            continue
        first = next(of_shard)
        fold = _begun(first, span, wanted, kept.get(shard))
        if fold is None:
            yield Stale(shard)
            continue
        for _, _, offset, _, value in chain((first,), of_shard):
            # Neither offsets nor the log's time go back.
            if fold.after is not None:
                break
            damage = fold.damage
            folded = fold.fold_on(offset, value or b"")
            is_void = folded is not None and folded.verdict is RecordVerdict.VOID and folded.record is None
            if is_void or fold.damage is not damage:
                fold.unreadable.append(offset)
            yield from fold.kept(is_over=False)
        yield from fold.kept(is_over=True)
        yield fold.report()


def _begun(first: Stored, span: AuditSpan, wanted: Wanted, kept: KeptShard | None) -> AuditFold | None:
    """Return the fold of a shard by its first record; None if the kept shard is of another log."""
    if kept is None:
        return AuditFold(first.partition, shards_by(first.value), span, wanted)
    try:
        fold = AuditFold.of_kept(kept, span, wanted)
    except UnusableSnapshotError:
        return None
    is_same = (fold.chain_offset, fold.chain) == (first.offset, chain_hash(first.value or b""))
    return fold if is_same else None
