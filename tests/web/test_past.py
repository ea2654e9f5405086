"""Moments of the past: what the page remembers of them is what a later look would find."""

from collections.abc import Sequence

from drover.client.time_travel import Point, Travel
from drover.web.archive import Archive
from drover.web.past import Past
from tests.client.log import CLUSTER
from tests.web.scene import Scene, freeze
from tests.web.showing import Showing


class _Journeys:
    """A past of a scene that counts how often the log was read for it."""

    def __init__(self, scene: Scene) -> None:
        self._shown = Showing(scene)
        self.past = Past(self._travel)
        self.count = 0

    async def _travel(self, cluster: str, points: Sequence[Point]) -> Travel:
        self.count += 1
        return await self._shown.travel(cluster, points)

    async def is_frozen(self, point: Point) -> bool:
        present = await self.past.at(CLUSTER, point, Archive())
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
