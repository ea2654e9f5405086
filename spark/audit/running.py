"""An audit from beginning to end: a session of Spark, one reading of the log, and the session's end."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from drover.errors import SparkJobError
from spark.audit.facts import Facts
from spark.audit.gathering import gather
from spark.audit.parts import Wish
from spark.audit.verifying import Verification, verify
from spark.reading import LogSource, read_batch
from spark.session import open_session


@dataclass(frozen=True, slots=True)
class Log:
    """The log as it was when the audit began: `starts` and `ends` are the offsets of every shard.

    What Spark itself says goes to `spark.log` in `directory`. `master` is Spark's, None for two threads of this
    machine; `settings` are Spark's own.
    """

    source: LogSource
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    directory: Path
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def records(self, only: int | None = None) -> Iterator[DataFrame]:
        """Open Spark and give the log's records, of all shards or of one.

        Raises `ConfigurationError` where Spark cannot be had, `SparkJobError` with the cause when it fails.
        """
        topic = self.source.topics.events
        # Spark wants to be told of every partition.
        starts = {shard: start if only in {None, shard} else self.ends[shard] for shard, start in self.starts.items()}
        session = open_session("drover audit", directory=self.directory, master=self.master, settings=self.settings)
        try:
            yield read_batch(session, self.source, (topic,), {topic: starts}, {topic: self.ends})
        except (PySparkException, Py4JError) as error:
            said = str(error).strip().splitlines() or ["it does not say why"]
            log = self.directory / "spark.log"
            raise SparkJobError(f"Spark could not read the log: {said[0]} (more in {log})") from error
        finally:
            session.stop()


def audited(log: Log, wish: Wish) -> Facts:
    """Gather what a part of the log says; see `Log.records` for what it raises."""
    with log.records() as records:
        return gather(records, wish, log.starts, log.ends)


def verified(log: Log, shard: int | None = None) -> Verification:
    """Hold every shard of the log, or one, against the log's rules; see `Log.records` for what it raises."""
    with log.records(shard) as records:
        return verify(records, len(log.ends))
