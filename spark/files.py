"""The files in the job's directory, for the job and the readers of its tables, without imports of Spark."""

from pathlib import Path
from typing import NamedTuple

# The remedy for a damaged file of the job.
DAMAGED = "a damaged file may be removed while no job runs: `drover spark run` makes it anew from the log"


class JobFiles(NamedTuple):
    """The files of one job, all below its directory."""

    directory: Path

    @property
    def tables(self) -> Path:
        """The SQLite file with the tables."""
        return self.directory / "tables.sqlite"

    @property
    def history(self) -> Path:
        """The directory of the Parquet history."""
        return self.directory / "history"

    @property
    def alive(self) -> Path:
        """The job's sign of life (`drover.spark.heartbeat`)."""
        return self.directory / "alive"

    @property
    def lock(self) -> Path:
        """The lock that the job's process holds, so that a directory has one job."""
        return self.directory / "lock"

    @property
    def jvm(self) -> Path:
        """The record of the last job's JVM."""
        return self.directory / "jvm.json"

    @property
    def spark_log(self) -> Path:
        """Spark's own log."""
        return self.directory / "spark.log"

    @property
    def java_log(self) -> Path:
        """The output of Java and of Python's workers."""
        return self.directory / "java.log"

    def checkpoint(self, sink: str) -> Path:
        """The checkpoint of one sink's query."""
        return self.directory / "checkpoints" / sink
