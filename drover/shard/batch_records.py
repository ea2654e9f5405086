"""From a finished batch to the next record of the log."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, AnyEvent, Batch, Cursor, Outcome
from drover.events.references import as_recorded
from drover.fold.log import ShardFold
from drover.reconcile.batch import BatchBuilder
from drover.shard.intake import Intake
from drover.shard.messages import ProposedBatch
from drover.state.hashing import CURRENT_FORM

# A record of the log may have 8 MiB. What a decision adds beyond this goes into the next record.
RECORD_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of one record; `at_ms` is the log time at which its events were decided."""

    at_ms: int
    outcomes: tuple[Outcome, ...]
    events: tuple[AnyEvent, ...]


def divided(batch: BatchBuilder) -> tuple[Draft, ...]:
    """Divide a batch into as many records as it takes: the outcomes and what was decided for them in the first.

    Decisions take less than half of what a record may have, and come before what the capabilities say follows. Only the
    latter is ever divided: each event of it leads from one possible state to the next, as in records of their own.
    """
    if batch.size <= RECORD_BYTES:
        return (Draft(batch.at_ms, tuple(batch.outcomes), tuple(batch.events)),)
    first, *others = _pieces(batch)
    return (
        Draft(batch.at_ms, tuple(batch.outcomes), first),
        *(Draft(batch.at_ms, (), events) for events in others),
    )


def _pieces(batch: BatchBuilder) -> Iterator[tuple[AnyEvent, ...]]:
    size = sum(len(msgspec.msgpack.encode(outcome)) for outcome in batch.outcomes)
    piece: list[AnyEvent] = []
    for number, event in enumerate(batch.events):
        added = len(msgspec.msgpack.encode(as_recorded(event)))
        if size + added > RECORD_BYTES and number >= batch.decided:
            yield tuple(piece)
            piece, size = [], 0
        piece.append(event)
        size += added
    yield tuple(piece)


def proposed_batch(
    fold: ShardFold,
    token: bytes,
    cursors: tuple[Cursor, ...],
    draft: Draft,
    intake: Intake,
    state_hash: bytes | None,
    snapshot_digest: bytes | None,
) -> ProposedBatch:
    """Make the record that follows what is folded.

    `state_hash` is of the state before it, `snapshot_digest` of a snapshot that was written; None in most records.
    """
    record = Batch(
        schema=SCHEMA_VERSION,
        token=token,
        epoch=fold.epoch,
        sequence=fold.sequence + 1,
        at_ms=draft.at_ms,
        cursors=cursors,
        previous_hash=fold.chain,
        outcomes=draft.outcomes,
        events=draft.events,
        state_hash=state_hash,
        state_hash_form=1 if state_hash is None else CURRENT_FORM,
        snapshot_digest=snapshot_digest,
    )
    aside = (tuple(intake.taken), tuple(intake.forward), tuple(intake.dead_letters))
    return ProposedBatch(record, encode_record(record), *aside)
