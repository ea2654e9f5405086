"""A world in which brokers die, with short times."""

from typing import Any, Literal, TypeVar

from drover.events.base import Event
from drover.events.commands import BrokerFailed, BrokerReturned, HealCommand
from drover.events.healing import HealingLimits
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World

EventT = TypeVar("EventT", bound=Event)
INTERVAL_MS, ALARM_MS = 24_000, 8_000


def healing_world(
    *,
    brokers: int = 6,
    partitions: int = 6,
    model: dict[str, Any] | None = None,
    max_partitions_in_flight: int = 1250,
    **limits: Any,
) -> World:
    """Make a world whose cluster is healed soon; topic `orders` has three replicas per partition."""
    given = {"failure_interval_ms": INTERVAL_MS, "alarm_ms": ALARM_MS, "chunk_partitions": 2, **limits}
    world = World(
        brokers=brokers, limits=Limits(max_partitions_in_flight, healing=HealingLimits(**given)), **(model or {})
    )
    lists = {number: [(number + place) % brokers + 1 for place in range(3)] for number in range(partitions)}
    world.model.create_topic("orders", lists, partition_bytes=1_000_000)
    return world


def told(world: World, *kinds: type[EventT]) -> list[EventT]:
    """List the events of these kinds."""
    return [event for event in world.events() if isinstance(event, kinds)]


def holders(world: World, broker: int) -> list[TopicPartition]:
    """List the partitions whose list names a broker."""
    return [key for key, partition in world.model.each_partition() if broker in partition.replicas]


async def heal_to_the_end(world: World, broker: int, within_ms: int = 120_000) -> None:
    """Run until no list names the broker and nothing is under way."""
    for _ in range(within_ms // 1000):
        await world.run(1000)
        if not holders(world, broker) and world.is_idle and world.state.heal is None:
            return
    raise AssertionError(f"not healed: {holders(world, broker)} {world.state.heal} {world.state.heal_left}")


def heal_command(action: Literal["start", "skip", "stop"], broker: int | None = None, **fields: Any) -> HealCommand:
    """Make a command about healing."""
    fields.setdefault("id", f"heal-{action}-{broker}")
    return HealCommand(cluster=CLUSTER, by="ana", reason="test", action=action, broker=broker, **fields)


def failed(broker: int, at_ms: int, **fields: Any) -> BrokerFailed:
    """Report a failure."""
    fields.setdefault("id", f"failed-{broker}-{at_ms}")
    return BrokerFailed(cluster=CLUSTER, by="watch", reason="no ping", broker=broker, at_ms=at_ms, **fields)


def returned(broker: int, at_ms: int) -> BrokerReturned:
    """Report a return."""
    return BrokerReturned(
        id=f"returned-{broker}-{at_ms}", cluster=CLUSTER, by="watch", reason="it is back", broker=broker, at_ms=at_ms
    )


def whole(facts: PartitionFacts) -> bool:
    """Whether every replica of a partition is in sync."""
    return set(facts.replicas) == set(facts.isr)
