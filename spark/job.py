"""The job: a query per sink on the two topics, until a signal stops it; a query that fails ends it, with its cause."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from drover.errors import SparkJobError
from drover.events.undecodable import UNDECODABLE
from drover.spark.batch_applier import JAVA_ERROR, batch_applier, checkpoint_identity
from drover.spark.files import DAMAGED, JobFiles
from drover.spark.heartbeat import Heartbeat, JobState, heartbeat
from drover.spark.java_process import end_of_java
from drover.spark.log_source import LogSource, read_stream
from drover.spark.only_one import only_job, remember_jvm
from drover.spark.session import close_session, jvm_pid, open_session
from drover.spark.sinks.parquet import ParquetSink
from drover.spark.sinks.port import Sink
from drover.spark.sinks.sqlite import SqliteSink

APPLICATION = "drover"
_QUERY = "drover_"
# The pause between checks of the queries, each of which asks Java; a stop does not wait for it.
LOOK_S = 2.0
DAY_MS = 86_400_000
# Spark's words for records that a topic has deleted before a query has read them. Spark's own advice is about an option
# that the job sets, so only its line with the reason is repeated.
_LOST, _REASON = ("KAFKA_DATA_LOSS", "OffsetOutOfRangeException"), "Reason: "


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of the job.

    `directory` holds everything that the job keeps. `master` is Spark's (None: what spark-submit said, else two threads
    of this machine), `spark` are further settings of Spark. `keeps_history` adds the Parquet history; the tables keep
    what has ended for `keeps_days` (None: for ever).
    """

    source: LogSource
    directory: Path
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    trigger_ms: int = 2000
    max_records_per_batch: int = 100_000
    keeps_history: bool = False
    keeps_days: int | None = None

    @property
    def files(self) -> JobFiles:
        """The job's files."""
        return JobFiles(self.directory.absolute())


def open_sinks(options: JobOptions) -> tuple[Sink, ...]:
    """Open the sinks that were asked for: SQLite, and Parquet for the history."""
    keeps_ms = None if options.keeps_days is None else options.keeps_days * DAY_MS
    tables: tuple[Sink, ...] = (SqliteSink(options.files.tables, keeps_ms=keeps_ms),)
    return (*tables, ParquetSink(options.files.history)) if options.keeps_history else tables


def run(
    options: JobOptions,
    stop: threading.Event,
    *,
    sinks: Callable[[JobOptions], Sequence[Sink]] = open_sinks,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Run the job until `stop` is set; `started` is called once every query runs.

    Raises `ConfigurationError` when another job runs in the directory, or there is no Java; `SparkJobError` with the
    cause when a query fails, a file cannot be used, or Java goes away before `stop` is set.
    """
    files = options.files
    try:
        with only_job(files), heartbeat(files.alive) as heart:
            _keep_running(options, stop, sinks, started, heart)
    except (PySparkException, Py4JError, ConnectionError, psutil.Error, SparkJobError) as error:
        # systemd stops a whole group of processes, so that Java may be stopped, too, even during its start.
        if stop.is_set():
            return
        if isinstance(error, SparkJobError):
            raise
        raise SparkJobError(_why(str(error), files)) from error
    except (OSError, sqlite3.Error, *UNDECODABLE) as error:
        # A file's fault outside the queries, as after a crash or on a full disk; Spark reports those of queries.
        if stop.is_set():
            return
        raise SparkJobError(f"a file in {files.directory} cannot be used ({error}); {DAMAGED}") from error


def _keep_running(
    options: JobOptions,
    stop: threading.Event,
    sinks: Callable[[JobOptions], Sequence[Sink]],
    started: Callable[[], None],
    heart: Heartbeat,
) -> None:
    files = options.files
    session = open_session(
        APPLICATION,
        directory=files.directory,
        master=options.master,
        settings=options.spark,
        needs=options.source.java,
    )
    opened: Sequence[Sink] = ()
    try:
        remember_jvm(files, jvm_pid(session))
        opened = sinks(options)
        queries = [_start(session, options, sink) for sink in opened]
        heart.tell(JobState.RUNNING)
        started()
        _watch(queries, files, stop)
        _stop(queries)
    finally:
        close_session(session)
        for sink in opened:
            sink.close()


def _start(session: SparkSession, options: JobOptions, sink: Sink) -> StreamingQuery:
    checkpoint = options.files.checkpoint(sink.name)
    _discard_unknown(sink, checkpoint)
    topics = options.source.topics
    stream = read_stream(session, options.source, (topics.events, topics.progress), options.max_records_per_batch)
    return (
        stream.writeStream.queryName(f"{_QUERY}{sink.name}")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{options.trigger_ms} milliseconds")
        .foreachBatch(batch_applier(sink, checkpoint, topics.progress))
        .start()
    )


def _discard_unknown(sink: Sink, checkpoint: Path) -> None:
    """Remove a checkpoint that the tables do not know: they were removed, or are of another version."""
    identity = checkpoint_identity(checkpoint)
    if checkpoint.exists() and (identity is None or sink.position(identity) is None):
        shutil.rmtree(checkpoint)


def _watch(queries: Sequence[StreamingQuery], files: JobFiles, stop: threading.Event) -> None:
    """Wait for the stop; a query that ends before it is a fault."""
    while not stop.wait(LOOK_S):
        for query in queries:
            if not query.isActive:
                raise SparkJobError(_cause(query, files))


def _stop(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        query.stop()


def _why(message: str, files: JobFiles) -> str:
    """Return the reason why the job ended: Java has ended, or Spark's own message."""
    ended = end_of_java()
    if ended is not None:
        return f"{ended}; start the job again, it continues where it was (more in {files.java_log})"
    return f"Spark failed: {root_cause(message)} (more in {files.spark_log})"


def _cause(query: StreamingQuery, files: JobFiles) -> str:
    error = query.exception()
    text = "" if error is None else str(error)
    reason = root_cause(text)
    if any(word in text for word in _LOST):
        reasons = [line.strip() for line in text.splitlines() if line.strip().startswith(_REASON)]
        checkpoint = files.checkpoint(query.name.removeprefix(_QUERY))
        remedy = (
            "a topic no longer has all that the job had still to read, such as samples after a week: remove "
            f"{checkpoint} and start the job again, it makes the tables anew from the log"
        )
        reason = "; ".join([reason.rstrip(";"), *reasons[:1], remedy])
    return f"the query {query.name} failed: {reason} (more in {files.spark_log})"


def root_cause(message: str) -> str:
    """Return the cause in one line, from Spark's message about a failed query.

    The description of the query comes after either Java's message, or a traceback of ours with the cause in its last
    line. The bridge to Java begins with the failed call, and has Java's message after a colon.
    """
    lines = [
        line.strip() for line in message.split("=== Streaming Query ===", maxsplit=1)[0].splitlines() if line.strip()
    ]
    if len(lines) > 1 and lines[1].startswith(": "):
        lines = [lines[1].removeprefix(": "), *lines[2:]]
    if not lines:
        return "it ended without saying why"
    is_ours = any("Traceback (most recent call last)" in line for line in lines)
    return lines[-1].rpartition(JAVA_ERROR)[2] if is_ours else lines[0]
