"""A review keeps nobody waiting: neither the page that is told to stop, nor its viewers."""

import asyncio
import json
import threading
from typing import Any

import pytest

from drover.cli import page
from drover.cli.page import Reviewer, judge
from drover.cli.plan_file import PlanFile, parse_plan
from drover.errors import ConfigurationError
from drover.local import wait_until
from drover.planner.goals import Limits
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.settings.settings import LogSettings, Settings
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

    monkeypatch.setattr(page, "live_model", model)
    monkeypatch.setattr(page, "judge", judging)
    asyncio.run(stop())
    assert waited_for == []
    has_stopped.set()


def test_a_plan_is_read_and_judged_away_from_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read one of 8 MiB takes seconds, in which the page would answer nobody."""
    readers: list[threading.Thread] = []

    async def model(*_: object) -> ClusterModel:
        return ClusterModel.of((), (), "cluster-id")

    def read(text: str, name: str) -> PlanFile:
        readers.append(threading.current_thread())
        return parse_plan(text, name)

    monkeypatch.setattr(page, "live_model", model)
    monkeypatch.setattr(page, "parse_plan", read)
    reviewer = Reviewer(Settings(LogSettings("nowhere:1")))
    found = asyncio.run(reviewer.review(ClusterState(CLUSTER), PastedPlan(CLUSTER, PLAN)))
    assert found["problems"]
    assert readers
    assert threading.current_thread() not in readers
    with pytest.raises(ConfigurationError, match="is not JSON"):
        asyncio.run(reviewer.review(ClusterState(CLUSTER), PastedPlan(CLUSTER, "no plan")))


def test_a_review_names_the_log_directories_that_matter_to_the_plan() -> None:
    cordoned = Broker(4, log_dirs=(LogDir("/data", 1000, 900, cordoned=True),))
    partitions = [Partition("orders", 0, (1, 2, 3), 1, (1, 2, 3), 10)]
    model = ClusterModel.of((Broker(1), Broker(2), Broker(3), cordoned), partitions)
    found = judge(model, CLUSTER, PastedPlan(CLUSTER, PLAN), Limits())
    assert [(one["code"], one["broker"]) for one in found["log_directories"]] == [("cordoned", 4)]
    assert "broker 4 is cordoned" in found["problems"][0]
