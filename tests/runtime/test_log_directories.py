"""Log directories are looked at although nothing is copied."""

from collections.abc import Sequence

import pytest

from drover.agents import clusters
from drover.agents.clock import now
from drover.agents.clusters import ClusterServices
from drover.events.progress import Progress
from drover.local import wait_until
from drover.planner.rules import NO_RULES
from drover.reconcile.messages import BytesSampled, Input
from drover.service.metrics import Metrics
from tests.shard.world import CLUSTER, World


async def test_log_directories_are_looked_at_now_and_then_although_nothing_is_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clusters, "DIRECTORIES_MS", 1)
    world = World()
    world.model.now_ms = now().monotonic_ms
    world.core.own(world.core.fold.token, now())
    world.model.directories.cordon(4)
    looks: list[BytesSampled] = []

    def record(entry: Input) -> None:
        if isinstance(entry, BytesSampled):
            looks.append(entry)

    async def publish(_: Sequence[Progress]) -> None: ...

    def fail(error: BaseException) -> None:
        raise error

    def told() -> list[bool]:
        return [directory.is_cordoned for look in looks for directory in look.directories.get(4, ())]

    monkeypatch.setattr(world.core, "deliver", record)
    services = ClusterServices({CLUSTER: world.driver}, publish, fail, Metrics(), {CLUSTER: NO_RULES})
    services.own(world.core, lambda: None)
    await wait_until(lambda: told() != [], what="a look")
    world.model.directories.cordon(4, cordoned=False)
    await wait_until(lambda: not told()[-1], what="the end of the cordon")
    await services.close()
    assert told()[0]
    assert all(look.sizes == {} for look in looks)
