"""The record by which an owner says that a snapshot may be used."""

from drover.events.records import SCHEMA_VERSION, Batch
from drover.fold.log import ShardFold


def anchoring_batch(fold: ShardFold, digest: bytes | None) -> Batch:
    """The next batch of the shard's owner, with nothing else in it."""
    return Batch(
        schema=SCHEMA_VERSION,
        token=fold.token,
        epoch=fold.epoch,
        sequence=fold.sequence + 1,
        at_ms=fold.at_ms,
        cursors=fold.cursors,
        previous_hash=fold.chain,
        snapshot_digest=digest,
    )
