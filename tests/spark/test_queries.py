"""Queries on real topics in this process: checkpoints that are lost, the history, a topic that goes away."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from drover.local import LocalCluster
from drover.spark import job
from drover.spark.batch_applier import in_one_line
from drover.spark.job import JobOptions
from drover.spark.log_source import LogSource, read_batch
from drover.spark.schema import TABLES
from drover.spark.sinks.port import Sink
from tests.integration.support import Installation, installation, wait_for
from tests.spark import live
from tests.spark.comparing import Rows, difference
from tests.spark.pure import tables_of
from tests.spark.simulated import LOG, SAMPLES

pytestmark = pytest.mark.cluster


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def written(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """A simulated log on real topics; no worker reads it."""
    async with installation(local_cluster, tmp_path_factory.mktemp("queries"), "queries") as drover:
        await live.append(drover, drover.names.events, LOG, 3)
        await live.append(drover, drover.names.progress, SAMPLES, 2)
        yield drover


def options(drover: Installation, directory: Path) -> JobOptions:
    source = LogSource(drover.cluster.bootstrap, drover.names)
    return JobOptions(source, directory, trigger_ms=100, max_records_per_batch=200, keeps_history=True)


def run_to_the_end(session: SparkSession, chosen: JobOptions) -> dict[str, dict[str, Rows]]:
    """Run every query over all there is, as the job does, and return each sink's tables."""
    sinks = job.open_sinks(chosen)
    queries = [job._start(session, chosen, sink) for sink in sinks]
    for query in queries:
        query.processAllAvailable()
    job._stop(queries)
    found = {sink.name: tables_of_sink(sink) for sink in sinks}
    for sink in sinks:
        sink.close()
    return found


def tables_of_sink(sink: Sink) -> dict[str, Rows]:
    rows = {
        name: {tuple(row[key] for key in table.keys): row for row in sink.rows(name)}
        for name, table in TABLES.items()
        if sink.name == "parquet" or not table.is_history
    }
    return tables_of(rows)


async def test_both_sinks_hold_the_plain_tables_also_after_checkpoint_or_tables_were_lost(
    written: Installation, spark: SparkSession, tmp_path: Path
) -> None:
    chosen = options(written, tmp_path)
    wanted = await live.plain_tables(written)
    first = run_to_the_end(spark, chosen)
    for found in first.values():
        assert difference(wanted, found, found) == []
    assert first["parquet"]["ended"]
    assert sum(row["durations"] for row in first["sqlite"]["durations"].values()) > 10
    # Anew in one batch: how the log is cut changes nothing.
    chosen = replace(chosen, max_records_per_batch=100_000)
    shutil.rmtree(chosen.files.checkpoint("sqlite"))
    shutil.rmtree(chosen.files.history)
    for again in run_to_the_end(spark, chosen).values():
        assert difference(wanted, again, again) == []
    shutil.rmtree(chosen.files.checkpoint("parquet"))
    chosen.files.tables.unlink()
    for again in run_to_the_end(spark, chosen).values():
        assert difference(wanted, again, again) == []


async def test_each_shard_is_a_task_of_its_own(written: Installation, spark: SparkSession) -> None:
    """So n shards use n processors, on as many machines; and no shard comes in two tasks."""
    source = LogSource(written.cluster.bootstrap, written.names)
    records = read_batch(spark, source, (written.names.events,))
    found = records.select("partition", F.spark_partition_id()).distinct().collect()
    assert len({shard for shard, _ in found}) == len({task for _, task in found}) == len(found) == 6


async def test_a_topic_that_goes_away_ends_the_query_and_its_cause_names_it(
    written: Installation, spark: SparkSession, tmp_path: Path
) -> None:
    gone = LogSource(written.cluster.bootstrap, written.names)
    async with installation(written.cluster, tmp_path, "going") as going:
        chosen = JobOptions(LogSource(gone.bootstrap, going.names), tmp_path, trigger_ms=100)
        sinks = job.open_sinks(chosen)
        (query,) = [job._start(spark, chosen, sink) for sink in sinks]
        query.processAllAvailable()
        admin = KafkaAdminClient(bootstrap_servers=gone.bootstrap)
        admin.delete_topics([going.names.progress])
        admin.close()

        async def ended() -> bool:
            return not query.isActive

        await wait_for(ended, "the query to end", timeout_s=120)
        cause = job._cause(query, chosen.files)
        assert "drover_sqlite failed" in cause
        assert going.names.progress in cause or "UnknownTopicOrPartition" in cause, cause
        for sink in sinks:
            sink.close()


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("", "it ended without saying why"),
        ("org.apache.kafka: gone\n\tat a.b.c\n\n=== Streaming Query ===\nLogical Plan:", "org.apache.kafka: gone"),
        (
            "An error occurred while calling o8.start.\n: java.io.IOException: gone\n\tat a.b.c",
            "java.io.IOException: gone",
        ),
        (
            "It: Traceback (most recent call last):\n  File x\ndrover.errors.Bad: no\n\n=== Streaming Query ===\ny",
            "drover.errors.Bad: no",
        ),
        (
            "It: Traceback (most recent call last):\n  File x\na.B: " + in_one_line("calling o2.\n: c.D: away"),
            "c.D: away",
        ),
    ],
)
def test_the_cause_of_a_failed_query_is_one_line(said: str, cause: str) -> None:
    assert job.root_cause(said) == cause


def test_what_java_says_of_a_failed_batch_is_one_line_that_spark_can_search() -> None:
    trace = "\tat a.b.c(D.scala:1)\n" * 200
    interrupted = f"An error occurred while calling o2.collectToPython.\n: java.lang.InterruptedException\n{trace}"
    begin = "py4j.protocol.Py4JJavaError: An error occurred while calling Spark: "
    assert in_one_line(interrupted) == f"{begin}java.lang.InterruptedException"
    failed = f"calling o2.\n: a.B: no\n{trace}Caused by: c.D: why\n{trace}Caused by: e.F: {'x' * 1000}\n{trace}"
    assert in_one_line(failed).startswith(f"{begin}a.B: no; Caused by: e.F: xxx")
    assert len(in_one_line(failed)) < 600
    assert in_one_line("") == begin
