"""How long a cluster has been out of reach counts from what this owner has seen."""

from collections.abc import Sequence

import pytest

from drover.capability.messages import Input, Moment, OutOfReach
from drover.local.waiting import wait_until
from drover.runtime import clusters
from drover.runtime.clock import now
from drover.runtime.clusters import ClusterServices
from drover.runtime.metrics import Metrics
from events.progress import Progress
from tests.shard.world import CLUSTER, World

HOUR_MS = 3_600_000


async def test_an_outage_does_not_begin_before_the_shard_came_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster was away when the shard was lost, and for a moment when it came back an hour later."""
    world, delivered, looks, passed_ms = World(joins_by_itself=False), list[Input](), list[int](), [0]
    world.model.now_ms = now().monotonic_ms
    world.core.own(world.core.fold.token, now())
    world.driver.unreachable = True
    monkeypatch.setattr(world.core, "deliver", delivered.append)

    def later() -> Moment:
        moment = now()
        return Moment(moment.wall_ms + passed_ms[0], moment.monotonic_ms + passed_ms[0])

    monkeypatch.setattr(clusters, "now", later)

    async def publish(_: Sequence[Progress]) -> None: ...

    def fail(error: BaseException) -> None:
        raise error

    services = ClusterServices({CLUSTER: world.driver}, publish, fail, Metrics())
    services.own(world.core, lambda: looks.append(1))
    await wait_until(lambda: bool(looks), what="a look that fails")
    services.disown(world.core)
    passed_ms[0] = HOUR_MS
    looks.clear()
    services.own(world.core, lambda: looks.append(1))
    await wait_until(lambda: bool(looks), what="another one")
    await services.close()
    assert [entry for entry in delivered if isinstance(entry, OutOfReach)] == []
