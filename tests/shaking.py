"""Make threads late and event loops stall by chance, to find tests and code that rely on who is first.

`.venv/bin/pytest -p tests.shaking PATHS`. A slow machine does the same, but only once in some hundred runs. `SHAKING`
in the environment multiplies the delays, 1 by default, and `SHAKING_SEED` chooses others. Only the process of the tests
is shaken, and tests that measure time may fail for that alone.
"""

import os
import random
import threading
import time
from asyncio import base_events
from collections.abc import Callable
from typing import Any

_LEVEL = float(os.environ.get("SHAKING", "1"))
_RANDOM = random.Random(int(os.environ.get("SHAKING_SEED", "1")))
_SLEEP = time.sleep


def _late(likelihood: float, at_most_s: float) -> None:
    if _RANDOM.random() < likelihood:
        _SLEEP(_RANDOM.random() * at_most_s * _LEVEL)


def _shaken(function: Callable[..., Any], likelihood: float, at_most_s: float) -> Callable[..., Any]:
    """Return the function with a delay before and after it, each of them by chance."""

    def shaken(*arguments: Any, **options: Any) -> Any:
        _late(likelihood, at_most_s)
        result = function(*arguments, **options)
        _late(likelihood, at_most_s)
        return result

    return shaken


def _shake(owner: Any, name: str, likelihood: float, at_most_s: float) -> None:
    setattr(owner, name, _shaken(getattr(owner, name), likelihood, at_most_s))


_shake(threading.Thread, "run", 0.5, 0.15)
_shake(threading.Condition, "wait", 0.1, 0.05)
_shake(base_events.BaseEventLoop, "call_soon_threadsafe", 0.3, 0.05)
_shake(base_events.BaseEventLoop, "_run_once", 0.005, 0.4)
_shake(time, "sleep", 0.1, 0.05)
