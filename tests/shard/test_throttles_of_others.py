"""Throttles that others change while moves need them: the stock tool's `--cancel` deletes every broker's rates."""

from drover.cluster.throttle_lists import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, parse_rates, parse_throttled
from drover.events.partitions import TopicPartition
from drover.events.throttles import BrokerThrottleChanged, BrokerThrottleLeft, Rates, TopicThrottleChanged
from drover.facts import BrokerRates
from drover.reconcile.observations import METADATA_LAG_MS
from drover.reconcile.throttles.watch import WATCH_MS
from tests.shard.sound import sound
from tests.shard.world import World, alter

KEY = TopicPartition("orders", 0)
RATE = 100_000
OURS = BrokerRates(RATE, RATE)


async def copying() -> World:
    """[1,2,3] on its way to [4,2,1], which takes a long time behind its throttle, and half as long without."""
    made = World(copy_bytes_per_second=2 * RATE)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=20_000_000)
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=RATE))
    await made.run(3000)
    assert rates(made) == dict.fromkeys((1, 2, 3, 4), OURS)
    return made


def rates(made: World) -> dict[int, BrokerRates]:
    return {broker: parse_rates(known.configs) for broker, known in made.model.brokers.items()}


def delete_rates(made: World) -> None:
    """What the stock tool does at the end of `--verify` and of `--cancel`, to all brokers."""
    for broker in made.model.brokers.values():
        broker.configs.pop(LEADER_RATE, None)
        broker.configs.pop(FOLLOWER_RATE, None)


def changes(made: World) -> list[BrokerThrottleChanged | TopicThrottleChanged]:
    return [event for event in made.events() if isinstance(event, BrokerThrottleChanged | TopicThrottleChanged)]


async def test_rates_that_somebody_deletes_are_back_within_ten_seconds_and_in_the_log() -> None:
    made = await copying()
    delete_rates(made)
    made.model.topics["orders"].configs.pop(FOLLOWER_REPLICAS)
    await made.run(WATCH_MS + 500)
    assert rates(made) == dict.fromkeys((1, 2, 3, 4), OURS)
    assert parse_throttled(made.model.topics["orders"].configs).follower == ("0:4",)
    found = changes(made)
    assert [event.broker for event in found if isinstance(event, BrokerThrottleChanged)] == [1, 2, 3, 4]
    assert [event.gone.follower for event in found if isinstance(event, TopicThrottleChanged)] == [("0:4",)]
    assert all(
        known.others is not None and known.others.times_deleted == 1 for known in made.state.broker_throttles.values()
    )
    await made.finish(300_000)
    assert rates(made) == dict.fromkeys((1, 2, 3, 4), BrokerRates(None, None))
    sound(made)


async def test_a_rate_of_others_stays_through_the_move_and_after_it() -> None:
    made = await copying()
    made.model.brokers[4].configs[FOLLOWER_RATE] = "42000"
    await made.run(3 * WATCH_MS)
    assert rates(made)[4] == BrokerRates(RATE, 42_000)
    (change,) = changes(made)
    assert change == BrokerThrottleChanged(
        cluster=made.state.name, broker=4, found=Rates(RATE, 42_000), bytes_per_second=RATE
    )
    await made.finish(1_000_000)
    assert rates(made)[4] == BrokerRates(None, 42_000)
    sound(made)


async def test_both_rates_of_others_take_the_broker_out_of_the_ledger_only_at_the_end() -> None:
    made = await copying()
    made.model.brokers[4].configs.update({FOLLOWER_RATE: "300000", LEADER_RATE: "300000"})
    await made.run(3 * WATCH_MS)
    assert 4 in made.state.broker_throttles
    await made.finish(300_000)
    left = [event for event in made.events() if isinstance(event, BrokerThrottleLeft)]
    assert [(event.broker, event.found) for event in left] == [(4, Rates(300_000, 300_000))]
    assert rates(made)[4] == BrokerRates(300_000, 300_000)


async def test_a_successor_looks_as_soon_as_brokers_must_show_what_was_written_last() -> None:
    made = await copying()
    made.crash()
    delete_rates(made)
    await made.run(METADATA_LAG_MS + 500)
    assert rates(made) == dict.fromkeys((1, 2, 3, 4), OURS)
    assert len(changes(made)) == 4


async def test_nothing_is_read_again_once_nothing_needs_it() -> None:
    made = await copying()
    await made.finish(300_000)
    delete_rates(made)
    before = len(made.log)
    await made.run(5 * WATCH_MS)
    assert len(made.log) == before
