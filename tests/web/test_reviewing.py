"""A review while the page is told to stop."""

import asyncio
import json
import threading
from typing import Any

import pytest

from drover.cli import reviewing
from drover.cli.reviewing import Reviewer
from drover.local import wait_until
from drover.planning.model import ClusterModel
from drover.runtime.settings import LogSettings, Settings
from drover.state.cluster import ClusterState
from drover.web.surveys import PastedPlan
from tests.client.log import CLUSTER

PLAN = json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}]})


def test_a_page_that_stops_does_not_wait_for_a_review(monkeypatch: pytest.MonkeyPatch) -> None:
    has_stopped, has_begun, waited_for = threading.Event(), threading.Event(), []

    async def model(*_: object) -> ClusterModel:
        return ClusterModel.of((), (), "cluster-id")

    def judging(*_: object) -> dict[str, Any]:
        has_begun.set()
        waited_for.append(not has_stopped.wait(20))
        return {}

    async def stop() -> None:
        reviewer = Reviewer(Settings(LogSettings("nowhere:1")))
        judged = asyncio.create_task(reviewer.review(ClusterState(CLUSTER), PastedPlan(CLUSTER, PLAN)))
        await wait_until(has_begun.is_set, what="the plan to be judged")
        judged.cancel()
        await asyncio.gather(judged, return_exceptions=True)

    monkeypatch.setattr(reviewing, "live_model", model)
    monkeypatch.setattr(reviewing, "judge", judging)
    asyncio.run(stop())
    assert waited_for == []
    has_stopped.set()
