"""A cluster is out of reach: since when, and what the metrics show meanwhile."""

from collections.abc import Sequence

import pytest

from drover.agents import clusters
from drover.agents.clock import now
from drover.agents.clusters import ClusterServices
from drover.events.partitions import TopicPartition
from drover.events.progress import Progress
from drover.local.deadline import wait_until
from drover.planner.rules import NO_RULES
from drover.reconcile.messages import BytesSampled, Input, OutOfReach, Timestamp
from drover.service.metrics import Metrics
from tests.shard.world import CLUSTER, World, alter

HOUR_MS = 3_600_000


async def test_an_outage_does_not_begin_before_the_shard_came_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster was away when the shard was lost, and for a moment when it came back an hour later."""
    world, delivered, looks, passed_ms = World(joins_by_itself=False), list[Input](), list[int](), [0]
    world.model.now_ms = now().monotonic_ms
    world.core.own(world.core.fold.token, now())
    world.driver.unreachable = True
    monkeypatch.setattr(world.core, "deliver", delivered.append)

    def later() -> Timestamp:
        moment = now()
        return Timestamp(moment.wall_ms + passed_ms[0], moment.monotonic_ms + passed_ms[0])

    monkeypatch.setattr(clusters, "now", later)

    async def publish(_: Sequence[Progress]) -> None: ...

    def fail(error: BaseException) -> None:
        raise error

    services = ClusterServices({CLUSTER: world.driver}, publish, fail, Metrics(), {CLUSTER: NO_RULES})
    services.own(world.core, lambda: looks.append(1))
    await wait_until(lambda: bool(looks), what="a look that fails")
    services.disown(world.core)
    passed_ms[0] = HOUR_MS
    looks.clear()
    services.own(world.core, lambda: looks.append(1))
    await wait_until(lambda: bool(looks), what="another one")
    await services.close()
    assert [entry for entry in delivered if isinstance(entry, OutOfReach)] == []


async def test_an_outage_does_not_look_as_if_all_were_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauge fell to 0 for as long as the cluster was away, and the alert for copies that stall began anew."""
    world, metrics, delivered = World(joins_by_itself=False), Metrics(), list[Input]()
    world.model.now_ms = now().monotonic_ms
    world.core.own(world.core.fold.token, now())
    world.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    await world.send(alter({TopicPartition("orders", 0): [4, 2, 3]}))
    await world.settle()
    monkeypatch.setattr(world.core, "deliver", delivered.append)
    monkeypatch.setattr(clusters, "SAMPLE_MS", 10)

    async def publish(_: Sequence[Progress]) -> None: ...

    def fail(error: BaseException) -> None:
        raise error

    def remaining() -> float | None:
        return metrics.registry.get_sample_value("drover_copy_remaining_bytes", {"cluster": CLUSTER})

    services = ClusterServices({CLUSTER: world.driver}, publish, fail, metrics, {CLUSTER: NO_RULES})
    services.own(world.core, lambda: None)
    await wait_until(lambda: bool(remaining()), what="a sample")
    before = remaining()
    world.driver.unreachable = True
    delivered.clear()

    def failed() -> bool:
        return sum(isinstance(one, BytesSampled) and not one.sizes for one in delivered) > 1

    await wait_until(failed, what="samples that fail")
    assert remaining() == before
    await services.close()
