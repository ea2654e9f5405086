"""How the cost of a call grows with its input, whatever the machine: two costs of the same minute are compared."""

from collections.abc import Callable
from time import process_time

TRIES = 3


def processor_seconds(call: Callable[[], object]) -> float:
    """Return the least processor time of a few calls: the others waited for caches that busy neighbours had taken."""
    return min(_once(call) for _ in range(TRIES))


def _once(call: Callable[[], object]) -> float:
    began = process_time()
    call()
    return process_time() - began
