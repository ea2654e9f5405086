"""A throttle below what producers write: the copy never catches up, and the log says so (L6)."""

import pytest

from drover.cluster.throttle_lists import FOLLOWER_RATE, LEADER_RATE, parse_rates
from drover.events.commands import Throttle
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanThrottleRaised
from drover.events.reassignments import Blocker, ReassignmentBlocked
from drover.reconcile.messages import BytesSampled
from drover.state.phase import Phase
from tests.shard.world import CLUSTER, World, alter

KEY = TopicPartition("orders", 0)
BLOCK = ["reassignment-blocked"]
INGEST = 300_000


async def throttled_at(rate: int) -> World:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=rate))
    return made


async def write(made: World, seconds: int, *, samples: bool = True) -> None:
    """Let producers write for so long, while the owner reads the sizes on disk once a second."""
    for _ in range(seconds):
        made.model.write(KEY, INGEST)
        await made.run(1000)
        if samples and made.core.cluster(CLUSTER).copying():
            seen = await made.driver.log_directories({KEY.topic})
            made.core.deliver(BytesSampled(CLUSTER, made.model.now_ms, seen.sizes, seen.directories))
            await made.settle()


def news(made: World) -> list[str]:
    """What was said of the partition since its call was accepted."""
    tags = made.tags(KEY)
    return tags[tags.index("call-accepted") + 1 :]


async def test_a_copy_that_can_never_catch_up_is_named_once_and_goes_on() -> None:
    made = await throttled_at(INGEST - 20_000)
    await write(made, 55)
    assert news(made) == []
    await write(made, 20)
    assert news(made) == BLOCK
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.THROTTLE_TOO_LOW
    assert "the leader grows by 300.0 kB/s and the copy on broker 4 by 280.0 kB/s" in block.detail
    await write(made, 200)
    assert news(made) == BLOCK
    assert made.reassignment(KEY).phase is Phase.COPYING


async def test_a_throttle_above_what_is_written_is_never_named_however_slow_the_copy() -> None:
    made = await throttled_at(INGEST + 5000)
    await write(made, 120)
    assert made.reassignment(KEY).phase is Phase.COPYING
    assert news(made) == []


async def test_a_higher_throttle_lifts_the_block_and_the_copy_ends() -> None:
    made = await throttled_at(INGEST - 20_000)
    await write(made, 300)
    assert news(made) == BLOCK
    again = alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=INGEST + 50_000)
    assert (await made.send(again)).verdict == "accepted"
    await write(made, 80)
    assert news(made) == [*BLOCK, "reassignment-unblocked"]
    assert made.reassignment(KEY).phase is Phase.COPYING
    await write(made, 120)
    assert news(made) == [*BLOCK, "reassignment-unblocked", "reassignment-completed"]


async def test_a_throttle_that_may_rise_does_so_until_the_copy_gains_and_not_before_it_was_measured_again() -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    rise = {"throttle_bytes_per_second": INGEST // 4, "throttle_may_rise_to": 2 * INGEST}
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", **rise))
    await write(made, 75)
    (raised,) = [event for event in made.events() if isinstance(event, PlanThrottleRaised)]
    assert raised.previous_bytes_per_second == INGEST // 4
    assert INGEST < raised.bytes_per_second <= INGEST * 5 // 4
    assert "the leader of orders:0 grows by 300.0 kB/s and its copy on broker 4 by 75.0 kB/s" in raised.detail
    await write(made, 5)
    assert parse_rates(made.model.brokers[4].configs).follower_bytes_per_second == raised.bytes_per_second
    made.crash()
    await write(made, 300)
    assert sum(isinstance(event, PlanThrottleRaised) for event in made.events()) == 1
    assert news(made)[:2] == [*BLOCK, "reassignment-unblocked"]


async def test_a_throttle_rises_no_further_than_its_bound() -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    bound = INGEST - 20_000
    rise = {"throttle_bytes_per_second": INGEST // 4, "throttle_may_rise_to": bound}
    await made.send(alter({KEY: [4, 2, 1]}, plan="friday", **rise))
    await write(made, 250)
    raised = [event.bytes_per_second for event in made.events() if isinstance(event, PlanThrottleRaised)]
    assert raised == [bound]
    assert news(made) == BLOCK


def set_throttle(id_: str, rate: int, may_rise_to: int) -> Throttle:
    return Throttle(
        id=id_,
        cluster=CLUSTER,
        by="ana",
        reason="producers come first",
        plan="friday",
        bytes_per_second=rate,
        may_rise_to=may_rise_to,
    )


@pytest.mark.parametrize("had_a_bound", [False, True])
async def test_a_rate_that_was_just_set_is_not_raised_by_what_was_measured_under_the_one_before(
    had_a_bound: bool,
) -> None:
    made = await throttled_at(INGEST // 2)
    if had_a_bound:
        assert (await made.send(set_throttle("first", INGEST // 2, INGEST // 2))).verdict == "accepted"
    await write(made, 150)
    assert news(made) == BLOCK
    enough = INGEST * 3 // 2
    assert (await made.send(set_throttle("second", enough, 10 * INGEST))).verdict == "accepted"
    await write(made, 200)
    assert not any(isinstance(event, PlanThrottleRaised) for event in made.events())
    assert made.state.plans["friday"].throttle_bytes_per_second == enough


async def test_a_rate_that_was_just_set_and_is_still_too_low_rises_by_what_it_lacks_itself() -> None:
    made = await throttled_at(INGEST // 4)
    await write(made, 150)
    assert (await made.send(set_throttle("again", INGEST // 2, 10 * INGEST))).verdict == "accepted"
    await write(made, 70)
    assert not any(isinstance(event, PlanThrottleRaised) for event in made.events())
    await write(made, 15)
    (raised,) = [event for event in made.events() if isinstance(event, PlanThrottleRaised)]
    assert raised.previous_bytes_per_second == INGEST // 2
    assert INGEST < raised.bytes_per_second <= INGEST * 5 // 4


async def test_a_rate_that_somebody_else_has_set_is_not_raised() -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    await made.send(
        alter({KEY: [4, 2, 1]}, plan="friday", throttle_bytes_per_second=INGEST, throttle_may_rise_to=2 * INGEST)
    )
    await made.run(2000)
    for broker in made.model.brokers.values():
        broker.configs.update({LEADER_RATE: "50000", FOLLOWER_RATE: "50000"})
    await write(made, 200)
    assert news(made) == BLOCK
    assert not any(isinstance(event, PlanThrottleRaised) for event in made.events())


async def test_a_successor_keeps_the_block_until_it_has_seen_for_itself() -> None:
    made = await throttled_at(INGEST - 20_000)
    await write(made, 80)
    made.crash()
    await write(made, 30, samples=False)
    await write(made, 80)
    assert news(made) == BLOCK
    blocks = [event for event in made.events() if isinstance(event, ReassignmentBlocked)]
    assert made.reassignment(KEY).block is not None
    assert len(blocks) == 1


async def test_what_was_measured_in_an_older_step_says_nothing_about_the_next() -> None:
    """The first added replica has joined after a while; the minute begins again with the second."""
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    await made.send(alter({KEY: [4, 5, 1]}, plan="friday", throttle_bytes_per_second=INGEST - 20_000))
    await write(made, 50)
    made.model.replication.join(KEY, 4)
    await write(made, 40)
    assert news(made) == ["step-confirmed", "step-prepared", "call-intended", "call-accepted"]
    await write(made, 40)
    assert news(made) == ["step-confirmed", "step-prepared", "call-intended", "call-accepted", *BLOCK]
    block = made.reassignment(KEY).block
    assert block is not None
    assert "broker 5" in block.detail
