"""A job that was away while Kafka deleted what it had still to read: it cannot go on, and says what to do."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drover.spark import job
from drover.spark.batch_applier import in_one_line
from drover.spark.files import JobFiles

# As `kafka-error-conditions.json` of Spark's connector has it: a line for each of its own.
OF_SPARK = """org.apache.spark.sql.kafka010.KafkaIllegalStateException: [KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE]
Some data may have been lost because they are not available in Kafka any more;
either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.
Reason: Could not read records in offset [3, 9)
\tat a.b.c

=== Streaming Query ==="""
IN_A_TASK = "calling o2.\n: a.B: aborted\nCaused by: org.apache.kafka.clients.consumer.OffsetOutOfRangeException: 3"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (OF_SPARK, "Reason: Could not read records in offset [3, 9)"),
        (f"It: Traceback (most recent call last):\n  File x\na.B: {in_one_line(IN_A_TASK)}", "RangeException: 3"),
    ],
)
def test_a_job_that_was_away_for_longer_than_samples_are_kept_says_what_to_remove(
    tmp_path: Path, said: str, why: str
) -> None:
    query: Any = SimpleNamespace(name="drover_parquet", exception=lambda: said)
    files = JobFiles(tmp_path)
    cause = job._cause(query, files)
    assert f"{why}; a topic no longer has all that the job had still to read" in cause
    assert f"remove {files.checkpoint('parquet')} and start the job again" in cause
    assert "\n" not in cause
    assert "failOnDataLoss" not in cause, "it is the job that sets it"


def test_a_job_that_ends_for_another_reason_removes_nothing(tmp_path: Path) -> None:
    query: Any = SimpleNamespace(name="drover_sqlite", exception=lambda: "java.io.IOException: gone")
    assert "remove" not in job._cause(query, JobFiles(tmp_path))
