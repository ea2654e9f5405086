"""Each trouble in the middle of each kind of work: it ends, or waits by name, and goes on when the trouble is over."""

from collections.abc import Awaitable, Callable, Mapping

import pytest

from drover.client.views.waiting_reason import waiting_reason
from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker
from drover.reconcile.debounce import CERTAIN_AFTER_MS
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.world import World, alter, rollback, stop

KEY = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
Situation = Callable[[World], None]


def world(**options: object) -> World:
    made = World(brokers=5, joins_by_itself=False, **options)  # type: ignore[arg-type]  # passed on as they are
    configs = {"min.insync.replicas": "2"}
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, partition_bytes=1000, configs=configs)
    return made


# -- what was going on


async def queued(made: World) -> None:
    await made.send(alter({OTHER: [4, 3, 1]}))
    await made.run(300)
    await made.send(alter({KEY: [3, 4, 5]}))
    assert made.reassignment(KEY).phase is Phase.PENDING


async def copying(made: World) -> None:
    await made.send(alter({KEY: [3, 4, 5]}))
    await made.run(500)
    assert made.reassignment(KEY).phase is Phase.COPYING


async def second_step(made: World) -> None:
    await copying(made)
    made.model.join_isr(KEY, 4)
    await made.run(1000)
    assert made.reassignment(KEY).current == (1, 2, 3, 4)


async def between_steps(made: World) -> None:
    await copying(made)
    await made.freeze()
    made.model.join_isr(KEY, 4)
    await made.run(1000)
    assert made.reassignment(KEY).phase is Phase.CONFIRMED


async def rolling_back(made: World) -> None:
    await second_step(made)
    await made.send(rollback(KEY))


async def stopping(made: World) -> None:
    await second_step(made)
    await made.send(stop(KEY))


WORK: Mapping[str, Callable[[World], Awaitable[None]]] = {
    work.__name__: work for work in (queued, copying, second_step, between_steps, rolling_back, stopping)
}


# -- what happens


def topic_deleted(made: World) -> None:
    made.model.delete_topic("orders")


def topic_recreated(made: World) -> None:
    made.model.delete_topic("orders")
    made.model.create_topic("orders", {0: [3, 4, 5], 1: [3, 4, 5]})


def topic_grown(made: World) -> None:
    topic = made.model.topics["orders"]
    topic.partitions[2], topic.written[2] = topic.partitions[1], 1000


def stops(*brokers: int) -> Situation:
    def kill(made: World) -> None:
        for broker in brokers:
            made.model.stop_broker(broker)

    return kill


def out_of_sync(made: World) -> None:
    """Below min ISR: only the leader is left, and nobody joins."""
    stops(2, 3, 4)(made)
    for broker in (2, 3, 4):
        made.model.start_broker(broker)


def another_cluster(made: World) -> None:
    made.model.kafka_cluster_id = "another"


def unreachable(made: World) -> None:
    made.driver.unreachable = True


def retargeted(made: World) -> None:
    made.model.alter([AlterRequest(KEY, (5, 2, 3))])


def retargeted_to_the_original(made: World) -> None:
    made.model.alter([AlterRequest(KEY, (1, 2, 3))])


def cancelled(made: World) -> None:
    made.model.alter([AlterRequest(KEY, None)])


SITUATIONS: Mapping[str, Situation] = {
    "topic deleted": topic_deleted,
    "topic recreated": topic_recreated,
    "topic grown": topic_grown,
    "source dead": stops(1),
    "kept dead": stops(3),
    "destination dead": stops(5),
    "both destinations dead": stops(4, 5),
    "all originals dead, leaderless": stops(1, 2, 3),
    "all dead": stops(1, 2, 3, 4, 5),
    "below min ISR": out_of_sync,
    "another cluster": another_cluster,
    "out of reach": unreachable,
    "re-targeted": retargeted,
    "re-targeted to the original": retargeted_to_the_original,
    "cancelled by others": cancelled,
}


def heal(made: World) -> None:
    made.driver.unreachable = False
    made.model.kafka_cluster_id = "simulated-cluster"
    for broker in range(1, 6):
        if not made.model.brokers[broker].alive:
            made.model.start_broker(broker)


def everybody_joins(made: World) -> None:
    for name, topic in made.model.topics.items():
        for number in tuple(topic.partitions):
            for broker in topic.partitions[number].replicas:
                made.model.join_isr(TopicPartition(name, number), broker)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("work", WORK)
async def test_whatever_happens_it_ends_or_waits_by_name_and_goes_on_afterwards(work: str, situation: str) -> None:
    """L1, L8."""
    made = world(limits=Limits(max_partitions_in_flight=1))
    await WORK[work](made)
    SITUATIONS[situation](made)
    # What may be no more than a broker's old metadata is acted on after 30 s.
    await made.run(CERTAIN_AFTER_MS + 8000)
    for key, entry in made.state.reassignments.items():
        reason = waiting_reason(made.state, key)
        quiet = entry.phase is Phase.COPYING or situation == "out of reach"
        assert reason is not None or quiet, f"{entry} waits for no reason"
    await made.unfreeze()
    heal(made)
    for _ in range(30):
        everybody_joins(made)
        await made.run(1000)
        if not made.state.reassignments:
            break
    left = made.state.reassignments.values()
    assert all(entry.block is not None and entry.block.why is Blocker.UNMANAGED_CHANGE for entry in left), list(left)
    if left:
        # Somebody else's list is not overwritten unasked (S11); the way out that the block names is an end.
        await made.send(rollback(all=True))
    await made.finish()
    assert not any(key == KEY for key in made.model.moves())


@pytest.mark.parametrize("work", [rolling_back, stopping])
async def test_a_way_back_finishes_while_the_cluster_is_frozen(work: Callable[[World], Awaitable[None]]) -> None:
    """R236-9."""
    made = world()
    await work(made)
    await made.freeze()
    await made.finish()
    assert made.replicas(KEY) == ((1, 2, 3) if work is rolling_back else (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("situation", "work", "why"),
    [
        ("destination dead", second_step, Blocker.DEAD_DESTINATION),
        ("all originals dead, leaderless", copying, Blocker.NO_LEADER),
        ("re-targeted", copying, Blocker.UNMANAGED_CHANGE),
    ],
)
async def test_what_blocks_has_the_right_name(
    situation: str, work: Callable[[World], Awaitable[None]], why: Blocker
) -> None:
    made = world()
    await work(made)
    SITUATIONS[situation](made)
    await made.unfreeze()
    await made.run(8000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is why


async def test_the_throttle_of_a_broker_that_never_returns_holds_up_nothing_else() -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 3]}, throttle_bytes_per_second=1000))
    await made.run(2000)
    made.model.stop_broker(4)
    await made.send(rollback(KEY))
    await made.run(60_000)
    assert made.state.reassignments == {}
    assert set(made.state.broker_throttles) == {4}
    await made.send(alter({OTHER: [5, 3, 1]}, throttle_bytes_per_second=1000))
    await made.run(2000)
    made.model.join_isr(OTHER, 5)
    await made.run(5000)
    assert made.replicas(OTHER) == (5, 3, 1)
    assert set(made.state.broker_throttles) == {4}
    made.model.start_broker(4)
    await made.finish()
