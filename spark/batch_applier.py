"""One batch of the stream: folded in one pass and applied; the body of `foreachBatch`."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from drover.errors import SparkJobError
from drover.spark.contributions import contributions
from drover.spark.folding.contribution import Contribution
from drover.spark.merge import part_of
from drover.spark.sinks.port import BEGINNING, Applied, Sink

MOST_CHARACTERS = 500
# The first words are a pattern of Spark's.
JAVA_ERROR = "py4j.protocol.Py4JJavaError: An error occurred while calling Spark: "
ApplyBatch = Callable[[DataFrame, int], None]


def batch_applier(sink: Sink, checkpoint: Path, samples_topic: str) -> ApplyBatch:
    """Return the function that applies each batch of a query to a sink; `checkpoint` is the query's directory.

    A batch that was applied before is not read. All is computed from the batch and the sink's carry, so a batch that is
    repeated after a crash gives the same result.
    """

    def apply(records: DataFrame, number: int) -> None:
        identity = checkpoint_identity(checkpoint)
        assert identity is not None, "Spark writes a checkpoint's identity before its first batch"
        before = sink.position(identity) or BEGINNING
        if number > before.batch:
            frame = contributions(records, samples_topic, before.carry, keeps_history=sink.keeps_history)
            try:
                rows = frame.collect()
            except Py4JJavaError as error:
                raise SparkJobError(in_one_line(str(error))) from None
            part = part_of(Contribution(row[0], bytes(row[1])) for row in rows)
            sink.apply(identity, Applied(number, part, _now_ms()))

    return apply


def in_one_line(message: str) -> str:
    """Return Java's message about a failed call without its stack traces: the error, and its first cause.

    Spark searches our exceptions for an interruption, with a pattern whose recursion grows with the text after these
    first words (`PROXY_ERROR` of `StreamExecution`): a Java stack trace in it would overflow the stack.
    """
    lines = [line.strip() for line in message.splitlines()]
    first = next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0] if lines else "")
    causes = [line for line in lines if line.startswith("Caused by: ")]
    summary = "; ".join([first, *causes[-1:]])
    return f"{JAVA_ERROR}{summary[:MOST_CHARACTERS]}"


def checkpoint_identity(directory: Path) -> str | None:
    """Return the identity that Spark gave a checkpoint when it was made; None where there is none yet."""
    try:
        identity = json.loads((directory / "metadata").read_text(encoding="utf-8"))["id"]
    except FileNotFoundError:
        return None
    return str(identity)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
