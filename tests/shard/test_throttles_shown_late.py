"""Brokers that do not show yet what was last written to their rates and to a topic's lists."""

from collections.abc import Collection

import pytest

from drover.cluster.throttle_lists import FOLLOWER_RATE, parse_rates, parse_throttled
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended
from drover.events.throttles import BrokerThrottleChanged, TopicThrottleChanged, TopicThrottleLeft
from drover.facts import BrokerRates, ThrottledReplicas
from drover.reconcile.observations import METADATA_LAG_MS
from drover.reconcile.throttles.readings import REREAD_MS
from drover.testing.metadata_image import MetadataImage
from tests.shard.sound import sound
from tests.shard.world import World, alter, rollback

KEY = TopicPartition("orders", 0)
RATE = 100_000
NOTHING = BrokerRates(None, None)
LAG_MS = METADATA_LAG_MS - 200


class OldConfigs:
    """From `keep` on every broker shows the configs of that moment, for `LAG_MS`; everything else is true."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._until_ms = -1
        self._image = MetadataImage.of(world.model)
        self.rates_read = 0
        patch.setattr(world.driver, "_broker_rates", self._rates)
        patch.setattr(world.driver, "_throttled_replicas", self._lists)

    def keep(self) -> None:
        self._image, self._until_ms = MetadataImage.of(self._world.model), self._world.model.now_ms + LAG_MS

    @property
    def shown(self) -> MetadataImage:
        model = self._world.model
        return self._image if model.now_ms <= self._until_ms else MetadataImage.of(model)

    def _rates(self, brokers: Collection[int]) -> dict[int, BrokerRates]:
        self.rates_read += 1
        return {broker: self.shown.rates[broker] for broker in brokers}

    def _lists(self, topics: Collection[str]) -> dict[str, ThrottledReplicas]:
        shown = self.shown.throttled_replicas
        return {name: shown[name] for name in topics if name in shown}


@pytest.fixture
async def world() -> World:
    """Two partitions of one topic, and an owner that took over a while ago."""
    made = World(copy_bytes_per_second=10 * RATE)
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=500_000)
    await made.run(METADATA_LAG_MS + 100)
    return made


@pytest.fixture
def old(world: World, monkeypatch: pytest.MonkeyPatch) -> OldConfigs:
    return OldConfigs(world, monkeypatch)


def rates(world: World) -> set[BrokerRates]:
    return {parse_rates(broker.configs) for broker in world.model.brokers.values()}


def lists(world: World) -> ThrottledReplicas:
    return parse_throttled(world.model.topics["orders"].configs)


async def move(world: World, plan: str, *replicas: int, rate: int = RATE, partition: int = 0) -> None:
    await world.send(alter({TopicPartition("orders", partition): replicas}, plan=plan, throttle_bytes_per_second=rate))


async def until_nothing_is_throttled(world: World, old: OldConfigs, *, lists: bool = False) -> None:
    """Run until Drover has taken everything away; brokers do not show yet that rates, or `lists`, are gone."""
    was_held = False
    for _ in range(600):
        await world.run(100)
        if world.state.topic_throttles if lists else world.state.broker_throttles:
            was_held = True
            old.keep()
        elif was_held and not (world.state.topic_throttles or world.state.broker_throttles):
            return
    raise AssertionError("throttles stay")


async def until_a_copy_begins(world: World) -> None:
    def calls() -> int:
        return len([event for event in world.events() if isinstance(event, CallIntended)])

    before = calls()
    for _ in range(100):
        await world.run(100)
        if calls() > before:
            return
    raise AssertionError("no copy begins")


def nobody_else_changed_anything(world: World) -> None:
    found = (BrokerThrottleChanged, TopicThrottleChanged, TopicThrottleLeft)
    assert not [event for event in world.events() if isinstance(event, found)]


async def test_a_rate_that_was_just_put_back_is_no_baseline_of_the_next_plan(world: World, old: OldConfigs) -> None:
    await move(world, "first", 4, 2, 1)
    await until_nothing_is_throttled(world, old)
    await move(world, "second", 3, 2, 1)
    await world.finish(300_000)
    assert rates(world) == {NOTHING}
    nobody_else_changed_anything(world)
    sound(world)


async def test_a_rate_that_was_replaced_twice_is_nobody_elses(world: World, old: OldConfigs) -> None:
    await move(world, "friday", 4, 2, 1)
    await world.run(300)
    old.keep()
    await move(world, "friday", 4, 2, 1, rate=2 * RATE)
    await world.run(300)
    await move(world, "friday", 4, 2, 1, rate=3 * RATE)
    await world.run(300)
    assert old.shown.rates[4] == BrokerRates(RATE, RATE)
    await world.finish(300_000)
    assert rates(world) == {NOTHING}
    nobody_else_changed_anything(world)
    sound(world)


async def test_a_copy_waits_for_entries_that_are_removed_but_still_shown(world: World, old: OldConfigs) -> None:
    await move(world, "first", 4, 2, 1)
    await until_nothing_is_throttled(world, old, lists=True)
    assert "0:2" in old.shown.throttled_replicas["orders"].leader
    await move(world, "second", 3, 2, 1)
    await until_a_copy_begins(world)
    assert lists(world) == ThrottledReplicas(("0:1", "0:2", "0:4"), ("0:3",))
    await world.finish(300_000)
    sound(world)


async def test_an_entry_that_is_not_shown_yet_is_removed_once_it_is(world: World, old: OldConfigs) -> None:
    old.keep()
    await move(world, "friday", 4, 2, 1)
    await world.run(LAG_MS // 2)
    await world.send(rollback(KEY))
    await world.finish(300_000)
    assert lists(world) == ThrottledReplicas((), ())
    nobody_else_changed_anything(world)
    sound(world)


async def test_entries_that_do_not_show_yet_were_not_deleted_by_others(world: World, old: OldConfigs) -> None:
    old.keep()
    await move(world, "friday", 4, 2, 1)
    await world.run(300)
    await move(world, "saturday", 4, 2, 1, partition=1)
    await world.finish(300_000)
    nobody_else_changed_anything(world)
    assert lists(world) == ThrottledReplicas((), ())
    sound(world)


async def test_a_new_owner_does_not_take_what_the_last_one_put_back_for_a_baseline(
    world: World, old: OldConfigs
) -> None:
    await move(world, "first", 4, 2, 1)
    await until_nothing_is_throttled(world, old)
    world.crash()
    await move(world, "second", 3, 2, 1)
    await world.finish(300_000)
    assert rates(world) == {NOTHING}
    sound(world)


async def test_a_rate_of_others_that_was_there_first_is_still_the_baseline_after_a_takeover(world: World) -> None:
    world.model.brokers[4].configs[FOLLOWER_RATE] = "42000"
    world.crash()
    await move(world, "friday", 4, 2, 1)
    await world.run(METADATA_LAG_MS + 1000)
    assert rates(world) == {BrokerRates(RATE, RATE)}
    await world.finish(300_000)
    assert parse_rates(world.model.brokers[4].configs) == BrokerRates(None, 42_000)
    sound(world)


async def test_a_topic_that_is_made_anew_has_none_of_the_entries_that_are_still_shown(
    world: World, old: OldConfigs
) -> None:
    small = TopicPartition("orders", 1)
    world.model.write(KEY, 5_000_000)
    await world.send(alter({KEY: (4, 2, 1), small: (4, 2, 1)}, plan="first", throttle_bytes_per_second=RATE))
    await until_a_copy_begins(world)
    while small in world.state.reassignments:
        await world.run(100)
    await world.run(METADATA_LAG_MS)
    old.keep()
    assert "1:4" in old.shown.throttled_replicas["orders"].follower
    world.model.delete_topic("orders")
    world.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=500_000)
    await move(world, "second", 4, 2, 1, partition=1)
    await until_a_copy_begins(world)
    assert "1:4" in lists(world).follower
    await world.finish(300_000)
    assert lists(world) == ThrottledReplicas((), ())
    sound(world)


async def test_a_broker_that_is_behind_is_asked_five_times_a_second_at_most(world: World, old: OldConfigs) -> None:
    await move(world, "friday", 4, 2, 1, rate=RATE)
    await world.run(300)
    old.keep()
    await move(world, "friday", 4, 2, 1, rate=2 * RATE)
    before = old.rates_read
    await move(world, "friday", 4, 2, 1, rate=3 * RATE)
    await world.run(1000)
    assert 1000 // REREAD_MS <= old.rates_read - before <= 7
    await world.finish(300_000)


async def test_a_new_owner_removes_what_the_last_one_added_once_every_broker_shows_it(
    world: World, old: OldConfigs
) -> None:
    """Simulation seed 81510134."""
    old.keep()
    await move(world, "friday", 4, 2, 1)
    await world.run(LAG_MS // 2)
    world.crash()
    await world.send(rollback(KEY))
    await world.finish(300_000)
    assert lists(world) == ThrottledReplicas((), ())
    sound(world)


async def test_what_was_just_added_for_one_partition_stays_when_what_another_one_had_is_removed(
    world: World, old: OldConfigs
) -> None:
    """A list that shows only what is to go was deleted as a whole, and the next move copied without a throttle."""
    await move(world, "a", 4, 2, 3)
    await world.run(METADATA_LAG_MS + 100)
    old.keep()
    await move(world, "b", 4, 2, 3, partition=1)
    await world.run(500)
    assert lists(world).follower == ("0:4", "1:4")
    await world.send(rollback(KEY, TopicPartition("orders", 1)))
    await world.run(500)
    assert old.shown.throttled_replicas["orders"].follower == ("0:4",)
    assert lists(world).follower == ("1:4",)
