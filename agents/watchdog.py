"""A thread that ends the process when its event loop hangs, or when a stop takes too long.

It must be a thread, because it detects a loop that no longer runs, as happens in the Kafka client and in Faust while
brokers are down. Ending the process is safe, because the log holds the whole state.
"""

import contextlib
import os
import threading
import time

import structlog

EXIT_FAULT = 70
EXIT_STOP_DEADLINE = 71
HEARTBEAT_TIMEOUT_S = 20.0
STOP_DEADLINE_S = 15.0
# A check that is this late means that the whole process was suspended (SIGSTOP, a sleeping machine), not only its loop.
SLEPT_S = 2.0
# The longest wait for the final line of output, because the loop may hang in writing to a full pipe.
TOLD_WITHIN_S = 2.0
_log = structlog.get_logger(__name__)


class Watchdog:
    """Ends the process with 70 after 20 s without `beat`, with 71 when `stopping` was called 15 s ago."""

    def __init__(self) -> None:
        self._beat = time.monotonic()
        self._stopping: float | None = None
        self._doing = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self.beat()
        self._thread.start()

    def beat(self) -> None:
        """Report that the event loop runs."""
        self._beat = time.monotonic()

    def stopping(self, doing: str) -> None:
        """Report a step of the stop, such as "leaving the group"; the deadline counts from the first call."""
        self._doing = doing
        self._stopping = self._stopping or time.monotonic()

    def close(self) -> None:
        """Stop watching."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._ended.wait(0.25):
            moment = time.monotonic()
            if moment - looked > SLEPT_S:
                self.beat()
            looked = moment
            if moment - self._beat > HEARTBEAT_TIMEOUT_S:
                _end(f"the event loop has not run for {HEARTBEAT_TIMEOUT_S:.0f} s", EXIT_FAULT)
            if self._stopping is not None and moment - self._stopping > STOP_DEADLINE_S:
                why = f"the stop took more than {STOP_DEADLINE_S:.0f} s; the worker was still {self._doing}"
                _end(why, EXIT_STOP_DEADLINE)


def _end(why: str, code: int) -> None:
    """End the process, and log the reason if possible."""
    # In a thread, because a loop that hangs on a full pipe holds the lock of the logger.
    telling = threading.Thread(target=_tell, args=(why, code), name="watchdog-end", daemon=True)
    with contextlib.suppress(RuntimeError):  # no further thread can be started
        telling.start()
        telling.join(TOLD_WITHIN_S)
    os._exit(code)


def _tell(why: str, code: int) -> None:
    _log.critical("the watchdog ends the worker", why=why, exit_code=code)
