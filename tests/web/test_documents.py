"""What the documents of the views say above everything else."""

from typing import Any

import pytest

from drover.client.time_travel import Point
from drover.events.clusters import UnreachableBrokersChanged
from drover.events.plans import PlanFinished
from drover.web.documents import document
from drover.web.past import Past
from drover.web.present import Present
from drover.web.query import Query, ViewName
from tests.client.log import CLUSTER
from tests.web.scene import BYTES, Scene, busy, keys, now_ms
from tests.web.showing import Showing

FIGHT = "two groups of workers (blue, green) take shard 0 from each other: give all of them the same worker.group"


def notices(present: Present, view: ViewName = ViewName.NOW) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(present, Query(view))["notices"]
    return found


@pytest.mark.parametrize("view", ViewName)
def test_groups_of_workers_that_take_a_shard_from_each_other_have_a_banner_in_every_view(view: ViewName) -> None:
    scene = Scene()
    assert notices(Present(scene.view), view) == []
    scene.conflict("blue", "green", "blue", "green")
    assert notices(Present(scene.view), view) == [{"key": FIGHT, "level": "bad"}]


def test_the_banner_of_groups_that_fight_goes_when_the_fight_is_over() -> None:
    scene = Scene()
    scene.conflict("blue", "green", "blue")
    assert notices(Present(scene.view))
    scene.view.now_ms += 120_000
    assert {"key": FIGHT, "level": "bad"} not in notices(Present(scene.view))


async def test_the_past_says_nothing_of_groups_that_fight_now() -> None:
    showing = Showing(Scene())
    showing.scene.conflict("blue", "green", "blue")
    past = await Past(showing.travel).at(CLUSTER, Point(at_ms=now_ms()), Present(showing.scene.view).archive)
    assert {"key": FIGHT, "level": "bad"} not in notices(past)


def test_a_move_names_what_is_against_its_brokers() -> None:
    scene = busy()
    scene.say(UnreachableBrokersChanged(cluster=CLUSTER, brokers=(6,)))
    shown = document(Present(scene.view), Query(ViewName.PLAN))["moves"]
    marks = {(one["broker"], one["mark"]) for move in shown for one in move["marks"]}
    assert marks == {(3, "closed"), (4, "gone"), (6, "demoted"), (6, "unreachable")}
    assert all(one["broker"] in (*move["original"], *move["target"]) for move in shown for one in move["marks"])


def test_the_end_of_a_plan_counts_what_waits_and_a_plan_that_has_ended_says_what_it_took() -> None:
    scene, orders = Scene(), keys("orders", 4)
    scene.open_plan("friday", "ann", "drain broker 1", None, orders)
    scene.start(orders[0])
    scene.sample(orders[0], BYTES // 2, 100_000_000)
    scene.breathe()
    now = document(Present(scene.view), Query(ViewName.NOW))
    # 6 GB of one copy and 36 GB that wait, at about 100 MB/s: samples have the time at which they were taken.
    latest_ms = now["plans"][0]["tally"]["latest_ms"]
    assert latest_ms == pytest.approx(420_000, rel=0.1)
    assert (now["figures"]["latest_ms"], now["figures"]["rest_bytes"]) == (latest_ms, 3 * BYTES)
    assert now["plans"][0]["took_ms"] is None
    scene.start(*orders[1:])
    scene.complete(*orders)
    scene.say(PlanFinished(cluster=CLUSTER, plan="friday", completed=4, rolled_back=0, failed=0))
    (plan,) = document(Present(scene.view), Query(ViewName.PLAN, plan="friday"))["plan"]
    assert (plan["status"], plan["copied_bytes"], plan["unmeasured"]) == ("finished", 4 * BYTES, 0)
    assert plan["took_ms"] > 0


def test_an_owner_that_is_silent_within_its_session_timeout_has_a_notice() -> None:
    scene = Scene()
    scene.view.now_ms += 8000
    (notice,) = notices(Present(scene.view))
    assert notice["level"] == "warn"
    assert notice["key"] == (
        f"{scene.owner}, which owns this cluster's shard, has been silent for 8 s: another worker takes over after its "
        "session timeout"
    )
