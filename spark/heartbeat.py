"""The heartbeat of a job for the readers of its tables: a file with the job's activity, written every second."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

BEAT_S = 1.0
# A job without a heartbeat for this long counts as gone.
ALIVE_MS = 3_000


class JobState(StrEnum):
    """The activity of a job: Spark starts, or its queries run."""

    STARTING = "starting"
    RUNNING = "running"


class Heartbeat:
    """Writes the state of a job to a file, at once when it changes; for any thread."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._state = JobState.STARTING
        # Two threads share one partial file, which one must not rename while the other writes it.
        self._writing = threading.Lock()

    def tell(self, state: JobState) -> None:
        """Write a new state, which further beats repeat."""
        self._state = state
        self.beat()

    def beat(self) -> None:
        """Write the state again; readers see the old or the new file, whole."""
        partial = self._file.with_name(f"{self._file.name}.part")
        with self._writing:
            partial.write_text(self._state, encoding="ascii")
            partial.replace(self._file)


@contextmanager
def heartbeat(file: Path) -> Iterator[Heartbeat]:
    """Beat during the block, also while it waits for Spark; the file is removed afterwards."""
    beating, over = Heartbeat(file), threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_S):
            with suppress(OSError):  # such as a full disk: there may be room again at the next beat
                beating.beat()

    beating.beat()
    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield beating
    finally:
        over.set()
        thread.join()
        file.unlink(missing_ok=True)


def state_of_job(file: Path, now_ms: int) -> JobState | None:
    """Return the activity in a job's last heartbeat; None if there is none, or it is too old."""
    try:
        is_alive = now_ms - file.stat().st_mtime * 1000 <= ALIVE_MS
        return JobState(file.read_text(encoding="ascii")) if is_alive else None
    except (OSError, ValueError):  # not there, or not to be read by this user
        return None
