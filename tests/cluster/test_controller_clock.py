"""The controller's clock, compared with that of this machine."""

import time

import pytest

from drover.cluster import controller_clock
from drover.cluster.controller_clock import read_clock_difference
from drover.local import LocalCluster

pytestmark = pytest.mark.cluster
SHIFT_MS = 90_000


@pytest.mark.parametrize("shift_ms", [0, SHIFT_MS, -SHIFT_MS])
async def test_the_controllers_clock_is_compared_with_ours(
    shift_ms: int, local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        @staticmethod
        def time_ns() -> int:
            return time.time_ns() - shift_ms * 1_000_000

    monkeypatch.setattr(controller_clock, "time", Clock)
    ahead_ms = await read_clock_difference(local_cluster.bootstrap, {})
    assert ahead_ms is not None
    # Never more than it is, however long the answer took.
    assert abs(ahead_ms) <= abs(shift_ms)
    assert (ahead_ms > controller_clock.TIMEOUT_MS) is (shift_ms > 0)
    assert (ahead_ms < -controller_clock.TIMEOUT_MS) is (shift_ms < 0)
