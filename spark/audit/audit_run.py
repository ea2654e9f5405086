"""An audit from beginning to end: a session of Spark, one reading of the log, and the session's end."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from drover.errors import ConfigurationError, SparkJobError
from drover.spark.audit.kept_files import KeptFiles
from drover.spark.audit.log_reading import Gathered, gather
from drover.spark.audit.parts import AuditSpan
from drover.spark.audit.report import Report
from drover.spark.audit.shard_report import Wanted
from drover.spark.audit.verification import Verification, verify
from drover.spark.java_process import end_of_java
from drover.spark.log_source import LogSource, read_batch
from drover.spark.session import close_session, open_session


@dataclass(frozen=True, slots=True)
class Log:
    """The log as it was when the audit began: `starts` and `ends` are the offsets of every shard.

    Spark's own log goes to `spark.log` in `directory`. `master` is Spark's, None for two threads of this
    machine; `settings` are Spark's own.
    """

    source: LogSource
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    directory: Path
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def reading(self) -> Iterator[Callable[[Mapping[int, int]], DataFrame]]:
        """Open Spark and yield a function that returns the log's records from given offsets of its shards on.

        Raises `ConfigurationError` if Spark or the directory cannot be used, and `SparkJobError` with the cause if
        Spark fails.
        """
        topic = self.source.topics.events
        try:
            session = open_session(
                "drover audit",
                directory=self.directory,
                master=self.master,
                settings=self.settings,
                needs=self.source.java,
            )
        except OSError as error:
            raise ConfigurationError(
                f"{error.filename or self.directory} cannot be used ({error.strerror}): the audit keeps its files in "
                f"{self.directory}; `directory` in the section `[spark]` names another place"
            ) from error
        try:
            yield lambda starts: read_batch(session, self.source, (topic,), {topic: starts}, {topic: self.ends})
        except (PySparkException, Py4JError, ConnectionError) as error:
            reasons = [end_of_java() or "", *str(error).strip().splitlines(), "it does not say why"]
            log = self.directory / "spark.log"
            raise SparkJobError(
                f"Spark could not read the log: {next(filter(None, reasons))} (more in {log})"
            ) from error
        finally:
            close_session(session)


def audited(log: Log, span: AuditSpan, wanted: Wanted) -> Report:
    """Audit a part of the log; see `Log.reading` for what it raises.

    Reads each shard from where an earlier audit has kept it, if that is before the part, and keeps it for later ones.
    If a plan is wanted, records before the first one that names it may be left out.
    """
    files = KeptFiles(log.directory / "kept", log.source.topics.events)
    with log.reading() as read:
        gathered = _gathered(log, span, wanted, files, read)
        if gathered.stale:  # there was another log of this name
            with suppress(OSError):  # the files may be another user's
                for shard in gathered.stale:
                    files.forget(shard)
            gathered = _gathered(log, span, wanted, files, read, unusable=gathered.stale)
    with suppress(OSError):  # without kept shards later audits are only slower
        for kept_shard in gathered.kept:
            files.keep(kept_shard.shard, kept_shard.place, kept_shard.content)
    return gathered.report


def _gathered(
    log: Log,
    span: AuditSpan,
    wanted: Wanted,
    files: KeptFiles,
    read: Callable[[Mapping[int, int]], DataFrame],
    unusable: Collection[int] = (),
) -> Gathered:
    """Read each shard from the nearest place where it was kept; `unusable` ones from the first record."""
    shards = (shard for shard in log.ends if span.has_shard(shard) and shard not in unusable)
    nearest = {shard: files.nearest(shard, log.ends[shard], span, wanted.plan) for shard in shards}
    kept = {shard: kept_shard for shard, kept_shard in nearest.items() if kept_shard is not None}
    starts = {
        # Spark needs an offset for every partition.
        shard: kept[shard].chain_offset if shard in kept else start if span.has_shard(shard) else log.ends[shard]
        for shard, start in log.starts.items()
    }
    return gather(read(starts), span, wanted, log.starts, log.ends, kept)


def verified(log: Log, shard: int | None = None) -> Verification:
    """Check every shard of the log, or one, by the log's rules; see `Log.reading` for what it raises."""
    starts = {number: start if shard in {None, number} else log.ends[number] for number, start in log.starts.items()}
    with log.reading() as read:
        return verify(read(starts), len(log.ends))
