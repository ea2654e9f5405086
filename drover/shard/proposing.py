"""From a finished batch to the next record of the log."""

from drover.capability.batch import BatchBuilder
from drover.shard.fold import ShardFold
from drover.shard.intake import Intake
from drover.shard.messages import ProposedBatch
from drover.state.hashing import CURRENT_FORM
from events.codec import encode_record
from events.records import SCHEMA_VERSION, Batch, Cursor


def proposed_batch(
    fold: ShardFold,
    token: bytes,
    cursors: tuple[Cursor, ...],
    batch: BatchBuilder,
    intake: Intake,
    state_hash: bytes | None,
) -> ProposedBatch:
    """Make the record that follows what is folded; `state_hash` is of the state before it, None in most records."""
    record = Batch(
        schema=SCHEMA_VERSION,
        token=token,
        epoch=fold.epoch,
        sequence=fold.sequence + 1,
        at_ms=batch.at_ms,
        cursors=cursors,
        previous_hash=fold.chain,
        outcomes=tuple(batch.outcomes),
        events=tuple(batch.events),
        state_hash=state_hash,
        state_hash_form=1 if state_hash is None else CURRENT_FORM,
    )
    aside = (tuple(intake.taken), tuple(intake.forward), tuple(intake.dead_letters))
    return ProposedBatch(record, encode_record(record), *aside)
