"""The job as a program that kills itself: `job_main.py DIRECTORY BOOTSTRAP PREFIX KILL [alone]`.

KILL is `sink:batch:moment`; the moment is `inside` or `after` the sink's transaction. Beside the real sink, unless that
is to be alone, runs one without a fence, as a control, and that has applied a batch before the program dies. Spark is
started at once, which takes long; the job begins when there is a line to be read.
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
from spark.sinks.port import Applied, Position, Sink
from spark.sinks.sqlite import SqliteSink

RECORDS_PER_BATCH = 12
CONTROL_S = 60.0
control_has_applied = threading.Event()


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
            assert control_has_applied.wait(CONTROL_S), "the control runs, too"
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

    def _maybe_die(self, applied: Applied, moment: str) -> None:
        if moment == "after":
            control_has_applied.set()
        super()._maybe_die(applied, moment)


def main() -> None:
    directory, bootstrap, prefix, kill, *alone = sys.argv[1:]
    place = Path(directory)

    def sinks(_: JobOptions) -> tuple[Sink, ...]:
        real = DeadlySink(place / "tables.sqlite", kill)
        if alone:
            control_has_applied.set()
            return (real,)
        return real, UnfencedSink(place / "unfenced.sqlite", kill, "unfenced")

    options = JobOptions(
        LogSource(bootstrap, TopicNames(prefix)),
        place,
        trigger_ms=100,
        max_records_per_batch=RECORDS_PER_BATCH,
    )
    open_session(APPLICATION, directory=place)
    if sys.stdin.readline():
        run(options, threading.Event(), sinks=sinks)


if __name__ == "__main__":
    main()
