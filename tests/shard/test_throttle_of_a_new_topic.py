"""A broker that has not heard of a new topic yet, although another one has shown it, knows nothing of its lists."""

from collections.abc import Callable, Collection, Mapping, Sequence

import pytest

from drover.cluster.port import SetBrokerRates, ThrottleChange
from drover.cluster.throttle_lists import parse_throttled
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended, ReassignmentFailed
from drover.events.throttles import TopicThrottleLeft
from drover.facts import UNKNOWN_TOPIC_OR_PARTITION, CallResult, ThrottledReplicas
from drover.testing.simulated import SimulatedDriver
from tests.shard.sound import sound
from tests.shard.world import World, alter

KEY = TopicPartition("orders", 0)
RATE = 100_000
UNAWARE_MS = 5000
Unaware = Callable[[World, pytest.MonkeyPatch], None]
Results = Mapping[ThrottleChange, CallResult]


def when_they_are_read(made: World, patch: pytest.MonkeyPatch) -> None:
    read = SimulatedDriver.throttled_replicas

    async def unaware(driver: SimulatedDriver, topics: Collection[str]) -> Mapping[str, ThrottledReplicas]:
        return await read(driver, topics) if made.model.now_ms > UNAWARE_MS else {}

    patch.setattr(SimulatedDriver, "throttled_replicas", unaware)


def when_they_are_written(made: World, patch: pytest.MonkeyPatch) -> None:
    change = SimulatedDriver.change_throttles
    unknown = CallResult(UNKNOWN_TOPIC_OR_PARTITION, "topic orders does not exist")

    async def unaware(driver: SimulatedDriver, changes: Sequence[ThrottleChange]) -> Results:
        if made.model.now_ms > UNAWARE_MS:
            return await change(driver, changes)
        rates = [one for one in changes if isinstance(one, SetBrokerRates)]
        return {**dict.fromkeys(changes, unknown), **await change(driver, rates)}

    patch.setattr(SimulatedDriver, "change_throttles", unaware)


@pytest.fixture(params=[when_they_are_read, when_they_are_written])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    """A throttled alter of a new topic was sent, and the broker that is asked for its lists has not heard of it."""
    made = World(copy_bytes_per_second=10 * RATE)
    unaware: Unaware = request.param
    unaware(made, monkeypatch)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=2_000_000)
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=RATE))
    return made


async def test_nothing_is_copied_before_the_lists_are_set(world: World) -> None:
    await world.run(UNAWARE_MS)
    assert not [event for event in world.events() if isinstance(event, CallIntended | TopicThrottleLeft)]
    await world.run(3000)
    assert [event.key for event in world.events() if isinstance(event, CallIntended)] == [KEY]
    assert parse_throttled(world.model.topics["orders"].configs).follower == ("0:4",)
    await world.finish(300_000)
    assert not parse_throttled(world.model.topics["orders"].configs).follower
    sound(world)


async def test_a_topic_that_is_deleted_meanwhile_leaves_nothing_to_be_set(world: World) -> None:
    await world.run(2000)
    world.model.delete_topic("orders")
    await world.finish(60_000)
    assert [event.key for event in world.events() if isinstance(event, ReassignmentFailed)] == [KEY]
    assert not world.state.topic_throttles
    sound(world)


async def test_the_broker_is_not_asked_more_often_than_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    made = World()
    asked: list[int] = []

    async def never(_driver: SimulatedDriver, _topics: Collection[str]) -> Mapping[str, ThrottledReplicas]:
        asked.append(made.model.now_ms)
        return {}

    monkeypatch.setattr(SimulatedDriver, "throttled_replicas", never)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=2_000_000)
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=RATE))
    await made.run(10_000)
    assert 3 <= len(asked) <= 10
