"""The record that an owner proposes next, what follows it, and the deadline of the calls that it allows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from drover.events.cancelled_partitions import as_recorded
from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, AnyEvent, Batch, Cursor, Outcome
from drover.fold.log import ShardFold
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.messages import Timestamp
from drover.shard.messages import Arrival, ProposedBatch
from drover.shard.pipeline import Taken
from drover.state.hashing import is_hash_due

CALL_START_MS = 1000

# A record of the log may have 8 MiB. Events beyond this size go into the next record.
RECORD_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BatchContent:
    """The content of one record; `at_ms` is the log time at which its events were decided."""

    at_ms: int
    outcomes: tuple[Outcome, ...]
    events: tuple[AnyEvent, ...]


class Proposals:
    """The record under way, the rest of its batch, and how far the commands are decided by the log.

    `topic_ids` are the ids of the four command topics as they are now; the barrier has compared them.
    """

    def __init__(self, fold: ShardFold, topic_ids: tuple[str, ...]) -> None:
        self._fold = fold
        self._topic_ids = topic_ids
        self.begin(None)

    def begin(self, token: bytes | None) -> None:
        """Begin an ownership with its token, or end it with None; earlier proposals are dropped."""
        # The token under which this worker owns the shard; None while it does not.
        self.token = token
        self.is_under_way = False
        # Content that did not fit into the last record: it follows at once, and no call is made before it is durable.
        self._rest: tuple[BatchContent, ...] = ()
        # A snapshot that was written, and that the log does not anchor yet.
        self._snapshot_digest: bytes | None = None
        self._proposed_ms = 0
        # When the last valid record was proposed: until then this worker was certainly the owner.
        self._proved_ms = -CALL_START_MS - 1

    def anchor_snapshot(self, snapshot_digest: bytes) -> None:
        """Let the next record anchor this snapshot, so that it may be used."""
        self._snapshot_digest = snapshot_digest

    @property
    def has_rest(self) -> bool:
        """Whether a part of the last batch is still to follow."""
        return bool(self._rest)

    @property
    def has_snapshot_to_anchor(self) -> bool:
        """Whether a snapshot waits for a record that anchors it."""
        return self._snapshot_digest is not None

    @property
    def start_by_ms(self) -> int:
        """The moment (monotonic) by which a call must start.

        A process that has been suspended since it proposed its last valid record may not be the owner any more.
        """
        return self._proved_ms + CALL_START_MS

    def propose(
        self, contents: tuple[BatchContent, ...], taken: Taken, now: Timestamp, *, with_hash: bool = False
    ) -> ProposedBatch:
        """Make the next record, of the first content; the others are proposed by `propose_rest`, one at a time."""
        assert self.token is not None, "only the owner writes"
        assert not self.is_under_way, "the last batch was neither committed nor disowned"
        content, *rest = contents
        self.is_under_way, self._rest = True, tuple(rest)
        self._proposed_ms = now.monotonic_ms
        fold = self._fold
        has_hash = with_hash or is_hash_due(fold.sequence + 1, fold.state.clusters)
        state_hash = fold.state.hash() if has_hash else None
        cursors = following(self._cursors, taken.arrivals)
        return proposed_batch(fold, self.token, cursors, content, taken, state_hash, self._snapshot_digest)

    def propose_rest(self, now: Timestamp) -> ProposedBatch:
        """Make the record of the next content that is left."""
        return self.propose(self._rest, Taken(), now)

    def commit(self, proposed: ProposedBatch) -> None:
        """Note that the record is durable and was folded as valid."""
        assert self._fold.sequence >= proposed.record.sequence, "a batch is committed after its record was folded"
        self.is_under_way = False
        self._proved_ms = self._proposed_ms
        if proposed.record.snapshot_digest == self._snapshot_digest:
            self._snapshot_digest = None

    @property
    def next_offsets(self) -> tuple[int, ...]:
        """The next offset to decide in each command topic, from the log (R4)."""
        return tuple(cursor.next_offset for cursor in self._cursors)

    @property
    def _cursors(self) -> tuple[Cursor, ...]:
        cursors = self._fold.cursors or tuple(Cursor(topic_id, 0) for topic_id in self._topic_ids)
        return tuple(
            Cursor(topic_id, cursor.next_offset) for topic_id, cursor in zip(self._topic_ids, cursors, strict=True)
        )

    def at(self, now: Timestamp) -> Timestamp:
        """Return the same moment in log time, which never goes back."""
        return Timestamp(max(now.wall_ms, self._fold.at_ms), now.monotonic_ms)


def following(cursors: Sequence[Cursor], taken: Iterable[Arrival]) -> tuple[Cursor, ...]:
    """Move the cursors past the arrivals that a batch decides (R4); offsets that are skipped were proven empty."""
    offsets = [cursor.next_offset for cursor in cursors]
    for arrival in taken:
        offsets[arrival.topic_index] = arrival.offset + 1
    return tuple(Cursor(cursor.topic_id, offset) for cursor, offset in zip(cursors, offsets, strict=True))


def divided(batch: BatchBuilder) -> tuple[BatchContent, ...]:
    """Divide a batch into as many records as it takes: the outcomes and what was decided for them in the first.

    Decisions, with less than half of a record's size, come before the events of the reconcilers. Only the latter are
    divided, since each of them leads from one valid state to the next, as if it had a record of its own.
    """
    if batch.size <= RECORD_BYTES:
        return (BatchContent(batch.at_ms, tuple(batch.outcomes), tuple(batch.events)),)
    first, *others = _pieces(batch)
    return (
        BatchContent(batch.at_ms, tuple(batch.outcomes), first),
        *(BatchContent(batch.at_ms, (), events) for events in others),
    )


def _pieces(batch: BatchBuilder) -> Iterator[tuple[AnyEvent, ...]]:
    size, piece = batch.decided_size, batch.events[: batch.decided]
    for event in batch.events[batch.decided :]:
        added = len(msgspec.msgpack.encode(as_recorded(event)))
        if size + added > RECORD_BYTES:
            yield tuple(piece)
            piece, size = [], 0
        piece.append(event)
        size += added
    yield tuple(piece)


def proposed_batch(
    fold: ShardFold,
    token: bytes,
    cursors: tuple[Cursor, ...],
    content: BatchContent,
    taken: Taken,
    state_hash: bytes | None,
    snapshot_digest: bytes | None,
) -> ProposedBatch:
    """Make the record that follows the last folded one.

    `state_hash` is that of the state before it, `snapshot_digest` that of a snapshot to anchor; None in most records.
    """
    record = Batch(
        schema=SCHEMA_VERSION,
        token=token,
        epoch=fold.epoch,
        sequence=fold.sequence + 1,
        at_ms=content.at_ms,
        cursors=cursors,
        previous_hash=fold.chain,
        outcomes=content.outcomes,
        events=content.events,
        state_hash=state_hash,
        snapshot_digest=snapshot_digest,
    )
    aside = (tuple(taken.arrivals), tuple(taken.forward), tuple(taken.dead_letters))
    return ProposedBatch(record, encode_record(record), *aside)
