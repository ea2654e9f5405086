"""The job as a program that kills itself: `deadly_job.py DIRECTORY KILL`.

KILL is `sink:batch:moment`; the moment is `inside` or `after` the sink's transaction. The sink is `sqlite`, the real
one, or `unfenced`, a control without a fence. Spark is started at once, which takes long; the job begins when there is
a line to be read, which names the bootstrap servers and the prefix of the topics.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from events.topics import TopicNames
from spark.job import APPLICATION, JobOptions, run
from spark.reading import LogSource
from spark.session import open_session
from spark.sinks.port import Applied, Position
from spark.sinks.sqlite import SqliteSink

RECORDS_PER_BATCH = 12
UNFENCED = "unfenced"


class DeadlySink(SqliteSink):
    """The real sink, in a process that dies at a given batch."""

    def __init__(self, file: Path, kill: str, name: str = "sqlite") -> None:
        super().__init__(file)
        self._name = name
        sink, _, rest = kill.partition(":")
        self._deadly = rest if sink == name else ""

    @property
    def name(self) -> str:
        return self._name

    def apply(self, checkpoint: str, applied: Applied) -> bool:
        done = super().apply(checkpoint, applied)
        self._maybe_die(applied, "after")
        return done

    def _carry_on(self, applied: Applied) -> None:
        super()._carry_on(applied)
        self._maybe_die(applied, "inside")

    def _maybe_die(self, applied: Applied, moment: str) -> None:
        if self._deadly == f"{applied.batch}:{moment}":
            print(f"killed {self.name} {moment} batch {applied.batch}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


class UnfencedSink(DeadlySink):
    """What a sink without a fence does: it applies what comes."""

    def position(self, checkpoint: str) -> Position | None:
        known = super().position(checkpoint)
        return None if known is None else known._replace(batch=-1)

    def _is_applied(self, last: int | None, batch: int) -> bool:
        del last, batch
        return False

    def _check_follows(self, last: int | None, batch: int) -> None:
        del last, batch  # whatever comes is applied


def deadly_sink(directory: Path, kill: str) -> DeadlySink:
    """The real sink, or the control, where that is named."""
    if kill.startswith(UNFENCED):
        return UnfencedSink(directory / "unfenced.sqlite", kill, UNFENCED)
    return DeadlySink(directory / "tables.sqlite", kill)


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
    run(options, threading.Event(), sinks=lambda _: (deadly_sink(directory, kill),))


if __name__ == "__main__":
    main()
