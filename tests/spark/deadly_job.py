"""The job as a program that kills itself: `deadly_job.py DIRECTORY BATCH:MOMENT`.

The moment is `inside` or `after` the sink's transaction of that batch. Spark is started at once, which takes
long; the job begins when there is a line to be read, which names the bootstrap servers and the prefix of the topics.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from drover.events.topics import TopicNames
from drover.spark.job import APPLICATION, JobOptions, run
from drover.spark.log_source import LogSource
from drover.spark.session import open_session
from drover.spark.sinks.port import Applied
from drover.spark.sinks.sqlite import SqliteSink

RECORDS_PER_BATCH = 12


class DeadlySink(SqliteSink):
    """The real sink, in a process that dies at a given batch."""

    def __init__(self, file: Path, kill: str) -> None:
        super().__init__(file)
        self._kill = kill

    def apply(self, checkpoint: str, applied: Applied) -> bool:
        done = super().apply(checkpoint, applied)
        self._maybe_die(applied, "after")
        return done

    def _carry_on(self, applied: Applied) -> None:
        super()._carry_on(applied)
        self._maybe_die(applied, "inside")

    def _maybe_die(self, applied: Applied, moment: str) -> None:
        if self._kill == f"{applied.batch}:{moment}":
            print(f"killed {moment} batch {applied.batch}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    directory, kill = Path(sys.argv[1]), sys.argv[2]
    open_session(APPLICATION, directory=directory)
    bootstrap, prefix = sys.stdin.readline().split()
    options = JobOptions(
        LogSource(bootstrap, TopicNames(prefix)),
        directory,
        trigger_ms=100,
        max_records_per_batch=RECORDS_PER_BATCH,
    )
    run(options, threading.Event(), sinks=lambda _: (DeadlySink(options.files.tables, kill),))


if __name__ == "__main__":
    main()
