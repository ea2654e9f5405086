"""`min.insync.replicas` is kept for a while, also when two calls read it at a time."""

import math
import time
from collections.abc import Collection
from typing import Any

import pytest

from drover.cluster import configs
from drover.cluster.kafka import MIN_ISR, KafkaDriver
from drover.cluster.messages import DescribedConfigs
from drover.cluster.wire import Deadline
from drover.facts import NONE, CallResult

DEADLINE = Deadline.after_ms(1000)


async def test_what_another_call_lets_go_of_meanwhile_is_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = KafkaDriver("c", "localhost:1")
    driver._min_isr = {"kept": (time.monotonic(), 2)}
    others = [["other"]]

    async def read(_connection: Any, names: Collection[str], *_arguments: Any) -> dict[str, DescribedConfigs]:
        if others:
            driver._min_isr = {"kept": (-math.inf, 2)}
            await driver._min_isrs(others.pop(), DEADLINE)
        return {name: DescribedConfigs(CallResult(NONE), own={}, effective={MIN_ISR: "1"}) for name in names}

    monkeypatch.setattr(configs, "topic_configs", read)
    assert await driver._min_isrs(["kept", "new"], DEADLINE) == {"kept": 2, "new": 1}
    await driver.close()
