"""One batch of the stream: folded in one pass and applied; the body of `foreachBatch`."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from spark.executing import contributions
from spark.folding.contribution import Contribution
from spark.merging import part_of
from spark.sinks.port import BEGINNING, Applied, Sink

ApplyBatch = Callable[[DataFrame, int], None]


def batch_applier(
    sink: Sink, checkpoint: Path, samples_topic: str, applied: Callable[[], None] = lambda: None
) -> ApplyBatch:
    """Return what applies each batch of a query to a sink; `checkpoint` is the query's directory.

    `applied` is called after each batch.

    A batch that was applied before is not even read. Everything is computed from the batch and what the sink carries,
    so a batch that comes again after a crash gives the same.
    """

    def apply(records: DataFrame, number: int) -> None:
        identity = checkpoint_identity(checkpoint)
        assert identity is not None, "Spark writes a checkpoint's identity before its first batch"
        before = sink.position(identity) or BEGINNING
        if number > before.batch:
            found = contributions(records, samples_topic, before.carry, keeps_history=sink.keeps_history).collect()
            part = part_of(Contribution(row[0], bytes(row[1])) for row in found)
            sink.apply(identity, Applied(number, part, _now_ms()))
            applied()

    return apply


def checkpoint_identity(directory: Path) -> str | None:
    """Return the identity that Spark gave a checkpoint when it was made; None where there is none yet."""
    try:
        identity = json.loads((directory / "metadata").read_text(encoding="utf-8"))["id"]
    except FileNotFoundError:
        return None
    return str(identity)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
