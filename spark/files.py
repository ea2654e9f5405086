"""The files in the job's directory, for the job and the readers of its tables, without imports of Spark."""

from pathlib import Path
from typing import NamedTuple

# What helps against a file of the job's that is damaged.
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
        """Held by the job's process: one job per directory."""
        return self.directory / "lock"

    @property
    def jvm(self) -> Path:
        """Which JVM the last job had."""
        return self.directory / "jvm.json"

    @property
    def spark_log(self) -> Path:
        """What Spark itself says."""
        return self.directory / "spark.log"

    @property
    def java_log(self) -> Path:
        """What Java and Python's workers print."""
        return self.directory / "java.log"

    def checkpoint(self, sink: str) -> Path:
        """The checkpoint of one sink's query."""
        return self.directory / "checkpoints" / sink
