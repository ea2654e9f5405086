"""Throttles that Kafka refuses to set: an alter policy forbids them, or Drover's user has lost an ACL."""

import pytest

from drover.cluster.throttle_lists import parse_rates
from drover.errors import ClusterAccessError
from drover.events.commands import Throttle
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentBlocked
from drover.events.throttles import BrokerThrottleRefused, TopicThrottleRefused
from drover.facts import BrokerRates, CallResult
from drover.reconcile.throttles.refusals import REFUSED_RETRY_MS
from drover.state.phase import Phase
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, Death, World, alter, rollback

KEY = TopicPartition("orders", 0)
RATE = 100_000
LOST_ACL = CallResult(31, "Cluster authorization failed.")
POLICY = CallResult(44, "The policy allows no throttled replicas.")
BROKER_4, TOPIC = ("broker", "4"), ("topic", "orders")
REFUSALS = {
    BROKER_4: (
        LOST_ACL,
        (
            "Kafka refuses to set leader.replication.throttled.rate and follower.replication.throttled.rate of broker "
            "4: code 31 (Cluster authorization failed.)"
        ),
    ),
    TOPIC: (
        POLICY,
        (
            "Kafka refuses to change leader.replication.throttled.replicas and follower.replication.throttled.replicas "
            "of topic orders: code 44 (The policy allows no throttled replicas.)"
        ),
    ),
}


async def asked(*, refused: tuple[str, str] | None = None) -> World:
    """A throttled move of [1,2,3] to [4,2,1] was asked for; Kafka may refuse the throttle of one resource."""
    made = World(copy_bytes_per_second=RATE)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=3_000_000)
    if refused is not None:
        made.driver.config_refusals[refused] = REFUSALS[refused][0]
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=RATE))
    await made.run(5000)
    return made


def refusals(made: World) -> list[BrokerThrottleRefused | TopicThrottleRefused]:
    return [event for event in made.events() if isinstance(event, BrokerThrottleRefused | TopicThrottleRefused)]


def blocks(made: World) -> list[ReassignmentBlocked]:
    return [event for event in made.events() if isinstance(event, ReassignmentBlocked)]


def rates(made: World) -> list[BrokerRates]:
    return [parse_rates(broker.configs) for broker in made.model.brokers.values()]


@pytest.mark.parametrize("refused", [BROKER_4, TOPIC])
async def test_a_move_whose_throttle_is_refused_is_blocked_with_the_setting_the_code_and_kafkas_words(
    refused: tuple[str, str],
) -> None:
    made = await asked(refused=refused)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.THROTTLE_REFUSED
    assert REFUSALS[refused][1] in block.detail
    assert "`drover throttle set friday none`" in block.detail
    assert made.replicas(KEY) == (1, 2, 3), "it does not begin without its throttle"


@pytest.mark.parametrize("code", [29, 31, 42, 44])
async def test_every_final_code_is_recorded_once_however_often_it_is_tried(code: int) -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.driver.config_refusals[BROKER_4] = CallResult(code, "no")
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=RATE))
    await made.run(4 * REFUSED_RETRY_MS)
    assert refusals(made) == [BrokerThrottleRefused(cluster=CLUSTER, broker=4, code=code, message="no")]
    assert len(blocks(made)) == 1


@pytest.mark.parametrize("code", [7, 8, 41])
async def test_a_transient_code_is_no_refusal_and_is_tried_again_within_seconds(code: int) -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.driver.config_refusals[BROKER_4] = CallResult(code, "a moment")
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=RATE))
    await made.run(3000)
    assert (refusals(made), blocks(made)) == ([], [])
    made.driver.config_refusals.clear()
    await made.run(3000)
    assert KEY not in made.state.reassignments
    assert made.replicas(KEY) == (4, 2, 1)


@pytest.mark.parametrize("refused", [BROKER_4, TOPIC])
async def test_it_goes_on_by_itself_within_ten_seconds_of_being_allowed(refused: tuple[str, str]) -> None:
    made = await asked(refused=refused)
    made.driver.config_refusals.clear()
    await made.run(REFUSED_RETRY_MS + 1000)
    assert made.reassignment(KEY).phase is Phase.COPYING
    assert made.reassignment(KEY).block is None
    assert rates(made) == [BrokerRates(RATE, RATE)] * 4
    await made.finish(60_000)
    assert made.replicas(KEY) == (4, 2, 1)
    sound(made)


@pytest.mark.parametrize("refused", [BROKER_4, TOPIC])
async def test_a_refused_write_is_repeated_every_ten_seconds_and_no_sooner(refused: tuple[str, str]) -> None:
    made = await asked(refused=refused)
    records = len(made.log)
    await made.run(6 * REFUSED_RETRY_MS)
    assert 5 <= len(made.log) - records <= 7, "each repetition takes one record, and nothing else happens"


async def test_a_successor_knows_of_the_refusal_and_says_nothing_again() -> None:
    made = await asked(refused=TOPIC)
    made.crash()
    await made.run(2 * REFUSED_RETRY_MS)
    refusal = made.state.topic_throttles["orders"].refusal
    assert refusal is not None
    assert (refusal.code, refusal.message) == (POLICY.code, POLICY.message)
    assert len(refusals(made)) == len(blocks(made)) == 1
    made.driver.config_refusals.clear()
    await made.finish(60_000)
    assert made.replicas(KEY) == (4, 2, 1)


async def test_a_successor_of_an_owner_that_died_before_the_refusal_was_recorded_finds_it_again() -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.driver.config_refusals[TOPIC] = POLICY
    made.put(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=RATE))
    for _ in range(20):
        await made.look()
        await made.turn(Death.AFTER_EFFECTS if made.state.topic_throttles else None)
        if made.state.topic_throttles:
            break
    await made.run(20_000)
    assert len(refusals(made)) == len(blocks(made)) == 1


@pytest.mark.parametrize("refused", [BROKER_4, TOPIC])
async def test_a_plan_whose_throttle_is_taken_away_goes_on_although_kafka_still_refuses(
    refused: tuple[str, str],
) -> None:
    made = await asked(refused=refused)
    await made.send(Throttle(id="t-1", cluster=CLUSTER, by="ana", reason="x", plan="friday", clear=True))
    await made.finish(60_000)
    assert made.replicas(KEY) == (4, 2, 1)
    assert rates(made) == [BrokerRates(None, None)] * 4
    sound(made)


@pytest.mark.parametrize("refused", [BROKER_4, TOPIC])
async def test_a_cancelled_move_leaves_nothing_behind_that_kafka_refused(refused: tuple[str, str]) -> None:
    made = await asked(refused=refused)
    await made.send(rollback(KEY))
    await made.finish(60_000)
    assert not made.state.broker_throttles
    assert not made.state.topic_throttles
    assert rates(made) == [BrokerRates(None, None)] * 4
    sound(made)


async def test_another_rate_is_tried_at_once_and_needs_no_retry_of_the_refused_one() -> None:
    made = await asked(refused=BROKER_4)
    made.driver.config_refusals.clear()
    await made.send(Throttle(id="t-1", cluster=CLUSTER, by="ana", reason="x", plan="friday", bytes_per_second=2 * RATE))
    await made.run(1000)
    assert rates(made) == [BrokerRates(2 * RATE, 2 * RATE)] * 4
    assert made.state.broker_throttles[4].refusal is None


async def test_a_raise_that_is_refused_leaves_the_copy_alone_and_shows_in_the_ledger() -> None:
    made = World(copy_bytes_per_second=10 * RATE)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=100_000_000)
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=RATE))
    await made.run(5000)
    made.driver.config_refusals[BROKER_4] = LOST_ACL
    await made.send(Throttle(id="t-1", cluster=CLUSTER, by="ana", reason="x", plan="friday", bytes_per_second=2 * RATE))
    await made.run(3 * REFUSED_RETRY_MS)
    assert made.reassignment(KEY).block is None
    assert rates(made)[3] == BrokerRates(RATE, RATE)
    assert made.state.broker_throttles[4].others is None, "nobody else has changed it"
    await made.send(Throttle(id="t-2", cluster=CLUSTER, by="ana", reason="x", plan="friday", bytes_per_second=RATE))
    await made.run(5000)
    assert made.state.broker_throttles[4].refusal is None, "what is wanted again is what is there"


async def test_rates_that_somebody_else_sets_as_wanted_count_although_drover_may_not() -> None:
    made = await asked(refused=BROKER_4)
    made.model.brokers[4].configs.update(made.model.brokers[1].configs)
    await made.run(2 * REFUSED_RETRY_MS)
    assert made.reassignment(KEY).phase is Phase.COPYING
    assert made.reassignment(KEY).block is None


async def test_a_throttle_that_may_not_be_put_back_is_in_the_log_and_goes_when_allowed() -> None:
    made = await asked()
    made.driver.config_refusals[BROKER_4] = LOST_ACL
    await made.run(60_000)
    assert KEY not in made.state.reassignments
    assert refusals(made) == [BrokerThrottleRefused(cluster=CLUSTER, broker=4, code=31, message=LOST_ACL.message)]
    assert set(made.state.broker_throttles) == {4}
    made.driver.config_refusals.clear()
    await made.finish(20_000)
    assert rates(made) == [BrokerRates(None, None)] * 4


async def test_rates_that_kafka_does_not_show_block_the_move_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]})
    shown = made.driver.broker_rates

    async def refuse(brokers: object) -> dict[int, BrokerRates]:
        raise ClusterAccessError("Drover may not read the configs of broker 1", 31)

    monkeypatch.setattr(made.driver, "broker_rates", refuse)
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=RATE))
    await made.run(5000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.THROTTLE_REFUSED
    assert "Kafka refuses to show leader.replication.throttled.rate" in block.detail
    assert "Drover may not read the configs of broker 1" in block.detail
    monkeypatch.setattr(made.driver, "broker_rates", shown)
    await made.finish(20_000)
    assert made.replicas(KEY) == (4, 2, 1)
