"""Moments of the past: what the page remembers of them is what a later look would find."""

import asyncio
from collections.abc import Sequence

import aiohttp
import pytest

from drover.client.time_travel import Point, Travel
from drover.web import past as pasts
from drover.web.archive import Archive
from drover.web.past import Past, TooManyQuestionsError
from tests.client.log import CLUSTER
from tests.web.scene import Scene, freeze, keys
from tests.web.showing import Showing, showing


class _Journeys:
    """A past of a scene that counts how often the log was read for it."""

    def __init__(self, scene: Scene) -> None:
        self.shown = Showing(scene)
        self.past = Past(self._travel)
        self.archive = Archive()
        self.count = 0
        self.may_begin = asyncio.Event()
        self.may_begin.set()

    async def _travel(self, cluster: str, points: Sequence[Point]) -> Travel:
        self.count += 1
        shown = self.shown
        await self.may_begin.wait()
        return await shown.travel(cluster, points)

    async def is_frozen(self, point: Point) -> bool:
        present = await self.past.at(CLUSTER, point, self.archive)
        return present.view.log.cluster(CLUSTER).freeze is not None


async def test_a_moment_to_come_is_not_remembered_as_what_is_now() -> None:
    scene = Scene()
    journeys, to_come = _Journeys(scene), Point(at_ms=scene.at_ms + 2 * scene.pace_ms)
    assert not await journeys.is_frozen(to_come)
    freeze(scene)
    assert to_come.at_ms is not None
    assert scene.at_ms <= to_come.at_ms
    assert await journeys.is_frozen(to_come)


async def test_a_moment_behind_which_the_log_went_on_is_read_once() -> None:
    scene = Scene()
    journeys, moment, place = _Journeys(scene), Point(at_ms=scene.at_ms), Point(offset=len(scene.writer.records) - 1)
    freeze(scene)
    for point in (moment, place):
        assert not await journeys.is_frozen(point)
        assert not await journeys.is_frozen(point)
    assert journeys.count == 2


async def test_moments_of_a_large_cluster_are_kept_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a state of its own: 32 of 100,000 moves took gigabytes."""
    scene = Scene()
    scene.open_plan("p", "ann", "why", None, keys("orders", 100))
    for _ in range(6):
        freeze(scene)
    end = len(scene.writer.records) - 1
    monkeypatch.setattr(pasts, "KEPT_ENTRIES", 350, raising=False)
    journeys = _Journeys(scene)
    for offset in range(end - 5, end):
        await journeys.is_frozen(Point(offset=offset))
    assert journeys.count == 5
    for offset in range(end - 1, end - 4, -1):
        await journeys.is_frozen(Point(offset=offset))
    assert journeys.count == 5
    await journeys.is_frozen(Point(offset=end - 4))
    assert journeys.count == 6
    monkeypatch.setattr(pasts, "KEPT_ENTRIES", 1)
    for _ in range(2):
        await journeys.is_frozen(Point(offset=end - 5))
    assert journeys.count == 7


@pytest.mark.parametrize("is_under_way", [False, True])
async def test_nothing_is_remembered_of_a_log_that_was_made_anew(is_under_way: bool) -> None:
    scene = Scene()
    journeys, place = _Journeys(scene), Point(offset=len(scene.writer.records))
    freeze(scene)
    freeze(scene)
    if is_under_way:
        journeys.may_begin.clear()
    asked = asyncio.create_task(journeys.is_frozen(place))
    if not is_under_way:
        assert await asked
    await asyncio.sleep(0)
    journeys.shown = Showing(Scene())
    for _ in range(2):
        journeys.shown.scene.open_plan("p", "ann", "why", None, [])
    # As the page does when it has lost the log and found it again.
    journeys.archive = Archive()
    if is_under_way:
        late = asyncio.create_task(journeys.is_frozen(Point(offset=0)))
        await asyncio.sleep(0)
        journeys.may_begin.set()
        await asyncio.gather(asked, late)
    assert not await journeys.is_frozen(place)
    assert journeys.count == 2 + is_under_way


async def test_a_moment_that_several_ask_for_at_a_time_is_read_once() -> None:
    scene = Scene()
    journeys, moment = _Journeys(scene), Point(at_ms=scene.at_ms)
    freeze(scene)
    journeys.may_begin.clear()
    asking = [asyncio.create_task(journeys.is_frozen(moment)) for _ in range(5)]
    await asyncio.sleep(0)
    journeys.may_begin.set()
    assert await asyncio.gather(*asking) == [False] * 5
    assert journeys.count == 1


async def test_only_so_many_questions_about_the_past_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasts, "MAX_ASKED", 2)
    scene = Scene()
    journeys, first, last = _Journeys(scene), Point(offset=0), Point(at_ms=scene.at_ms)
    journeys.may_begin.clear()
    asking = asyncio.create_task(journeys.is_frozen(last))
    comparing = asyncio.create_task(journeys.past.difference(CLUSTER, first, last))
    await asyncio.sleep(0)
    for _ in range(2):
        with pytest.raises(TooManyQuestionsError, match="2 questions about the past"):
            await journeys.is_frozen(first)
    journeys.may_begin.set()
    assert (await comparing)["cluster"] == CLUSTER
    assert not await asking
    assert not await journeys.is_frozen(first)


async def test_a_question_too_many_about_the_past_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasts, "MAX_ASKED", 0)
    said = {"error": "0 questions about the past are waiting: try again in a moment"}
    async with showing(Scene()) as shown, aiohttp.ClientSession() as http:
        response = await http.get(f"{shown.address}/api/document", params={"at": "@0"})
        assert (response.status, await response.json()) == (503, said)
