"""`--follow` after a document for programs: what changes is for people, and the document stays whole."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from rich.console import Console

from drover.cli import status
from drover.cli.exits import ExitCode, Failure
from drover.cli.output import print_document
from drover.cli.status import Choice, follow_plan, follow_status, is_idle, status_document, status_layout
from drover.client.live_view import View
from drover.events.plans import PlanOpened, PlanPaused
from drover.events.reassignments import FailureReason, ReassignmentCompleted, ReassignmentCreated, ReassignmentFailed
from drover.journal.connection import LogConnection
from drover.state.plans import Plan
from tests.client.log import CLUSTER
from tests.web.scene import Scene, keys

WHERE: dict[str, Any] = {"cluster": CLUSTER, "topic": "orders", "partition": 0}


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log in which a plan begins, moves and ends."""

    async def views(*_: object) -> AsyncGenerator[View, None]:
        scene = Scene()
        scene.say(PlanOpened(cluster=CLUSTER, plan="p", by="ann", reason="r"))
        scene.say(
            ReassignmentCreated(**WHERE, topic_id="QBjRZu1kRSm0SVvmuSHUxg", plan="p", original=(1, 2), target=(3, 4))
        )
        yield scene.view
        scene.say(ReassignmentCompleted(**WHERE, replicas=(3, 4)))
        yield scene.view

    monkeypatch.setattr(status, "watch", views)


def followed(output: str) -> None:
    print_document({"outcomes": []}, [], output)
    follow_plan(LogConnection("kafka:9092"), CLUSTER, "p", output)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_document_stays_parsable_while_its_plan_is_followed(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    followed(output)
    said = capsys.readouterr()
    found: Any = json.loads(said.out) if output == "json" else yaml.safe_load(said.out)
    assert found == {"outcomes": []}
    assert "orders:0 pending" in said.err
    assert "orders:0 ended" in said.err


def test_lines_of_json_are_all_that_is_printed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    followed("jsonl")
    said = capsys.readouterr()
    assert [json.loads(line)["state"] for line in said.out.splitlines()] == ["pending", "ended"]


def test_people_read_the_lines_where_they_read_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    follow_plan(LogConnection("kafka:9092"), CLUSTER, "p", "table")
    said = capsys.readouterr()
    assert "orders:0 ended" in said.out
    assert "Plan p has ended: 1 partition completed" in said.err


def test_a_plan_of_which_kafka_refused_a_step_has_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was moved: that is not done, and where to find the reason is said."""

    async def views(*_: object) -> AsyncGenerator[View, None]:
        scene = Scene()
        scene.say(PlanOpened(cluster=CLUSTER, plan="p", by="ann", reason="r"))
        queued = ReassignmentCreated(
            **WHERE, topic_id="QBjRZu1kRSm0SVvmuSHUxg", plan="p", original=(1, 2), target=(3, 4)
        )
        scene.say(queued)
        yield scene.view
        why = FailureReason.REFUSED_BY_KAFKA
        scene.say(ReassignmentFailed(**WHERE, why=why, detail="Kafka refused the step: code 39", replicas=(1, 2)))
        yield scene.view

    monkeypatch.setattr(status, "watch", views)
    assert follow_plan(LogConnection("kafka:9092"), CLUSTER, "p", "json") is ExitCode.FAILED
    told = capsys.readouterr().err
    assert "0 partitions completed, 0 rolled back, 0 stopped, 1 failed" in told
    assert "drover history --cluster prod --plan p" in told


class _Endless:
    """A log in which a plan was forgotten before anybody looked, or while somebody did."""

    def __init__(self, *, is_seen: bool) -> None:
        self.views = 0
        self._is_seen = is_seen

    async def watch(self, *_: object) -> AsyncGenerator[View, None]:
        scene = Scene()
        scene.say(PlanOpened(cluster=CLUSTER, plan="p", by="ann", reason="r"))
        state = scene.view.log.cluster(CLUSTER)
        plan = state.plans.pop("p")
        if self._is_seen:
            yield replace_plan(scene.view, replace(plan, more=True))
            state.plans.clear()
        while True:
            self.views += 1
            assert self.views < 1000, "it is followed for ever"
            yield scene.view
            await asyncio.sleep(0.01)


def replace_plan(view: View, plan: Plan) -> View:
    view.log.cluster(CLUSTER).plans[plan.name] = plan
    return view


def test_a_plan_that_was_forgotten_is_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 7 days a command that is sent again is a repetition; of its plan, 10,000 later ones leave nothing."""
    monkeypatch.setattr(status, "APPEARS_WITHIN_S", 0.1)
    monkeypatch.setattr(status, "watch", _Endless(is_seen=False).watch)
    with pytest.raises(Failure, match="drover history --cluster prod --plan p"):
        followed("json")


def test_a_plan_that_is_forgotten_while_it_is_followed_has_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "watch", _Endless(is_seen=True).watch)
    followed("json")
    assert "Plan p has ended" in capsys.readouterr().err


@pytest.mark.parametrize("cluster", [CLUSTER, None])
def test_the_status_of_a_plan_is_followed_until_the_plan_has_ended(
    cluster: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "watch", _Endless(is_seen=True).watch)
    follow_status(LogConnection("kafka:9092"), Choice(cluster, "p"), "table")
    assert "No reassignment is under way." in capsys.readouterr().out


def test_the_status_of_a_plan_that_is_not_there_is_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "APPEARS_WITHIN_S", 0.1)
    monkeypatch.setattr(status, "watch", _Endless(is_seen=False).watch)
    with pytest.raises(Failure, match="there is no plan elsewhere in prod"):
        follow_status(LogConnection("kafka:9092"), Choice(CLUSTER, "elsewhere"), "table")


async def _once(view: View) -> AsyncGenerator[View, None]:
    yield view
    raise AssertionError("it is followed although nothing is under way")


def test_following_ends_when_nothing_is_under_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "watch", lambda *_: _once(Scene().view))
    follow_status(LogConnection("kafka:9092"), Choice(), "table")
    assert "No reassignment is under way." in capsys.readouterr().out


def test_following_goes_on_while_a_command_is_undecided_or_a_plan_announces_more() -> None:
    scene = Scene()
    assert is_idle(scene.view, Choice())
    scene.view.undecided[0] = 1
    assert not is_idle(scene.view, Choice())
    scene.view.undecided.clear()
    scene.open_plan("p", "ann", "r", None, keys("orders", 1))
    assert not is_idle(scene.view, Choice(CLUSTER, topic="orders"))
    assert is_idle(scene.view, Choice(CLUSTER, topic="payments"))


def test_status_has_a_line_for_each_plan_and_groups_what_partitions_wait_for() -> None:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 3", None, keys("orders", 12))
    scene.start(*keys("orders", 2))
    scene.say(PlanPaused(cluster=CLUSTER, plan="friday", by="ben", reason="lunch"))
    document = status_document(scene.view, Choice())
    (plan,) = document["plans"]
    assert (plan["plan"], plan["percent"], plan["accepted"]) == ("friday", 0.0, 12)
    assert [group["sentence"] for group in document["waits"]] == [
        "10 are withheld, plan friday is paused by ben (lunch): `drover resume friday`"
    ]
    console = Console(width=200)
    with console.capture() as captured:
        console.print(status_layout(scene.view, Choice()))
    shown = captured.get()
    assert re.search(r"friday +ann +0 of 12 +0 +2 +10 +0", shown)
    assert "10 are withheld, plan friday is paused" in shown
    assert "orders:" not in shown
    console = Console(width=200)
    with console.capture() as captured:
        console.print(status_layout(scene.view, Choice(by_partition=True)))
    assert captured.get().count("orders:") == 12
