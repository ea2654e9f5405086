"""Sizes before the first starts: the order is right from the beginning, and nothing waits long for a size."""

from drover.events.partitions import TopicPartition
from drover.reconcile.messages import BytesSampled
from drover.reconcile.starts.starter import SIZE_PATIENCE_MS
from drover.state.scheduling import Limits
from drover.state.slot_share import WHOLE_SLOT_BYTES
from tests.shard.world import CLUSTER, World, alter

KEYS = tuple(TopicPartition("orders", number) for number in range(4))
LARGEST = KEYS[3]


def world(limits: Limits, *, reads_sizes: bool) -> World:
    made = World(brokers=6, limits=limits, joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS}, partition_bytes=2 * WHOLE_SLOT_BYTES)
    made.model.write(LARGEST, 10 * WHOLE_SLOT_BYTES)
    if reads_sizes:
        made.core.cluster(CLUSTER).topics_to_sample(made.now)
    return made


async def read_sizes(made: World) -> None:
    topics = made.core.cluster(CLUSTER).topics_to_sample(made.now)
    seen = await made.driver.log_directories(topics)
    made.core.deliver(BytesSampled(CLUSTER, made.now.monotonic_ms, seen.sizes, seen.directories))


async def move_all(made: World) -> None:
    await made.send(alter({key: [4, 2, 3] for key in KEYS}))
    await made.run(300)


async def test_the_largest_copy_is_the_first_that_begins() -> None:
    made = world(Limits(max_moves_per_broker=1), reads_sizes=True)
    await move_all(made)
    assert not made.state.moves.in_flight
    await read_sizes(made)
    await made.run(300)
    assert set(made.state.moves.in_flight) == {LARGEST}


async def test_sizes_that_do_not_come_are_not_waited_for() -> None:
    made = world(Limits(max_moves_per_broker=1), reads_sizes=True)
    await move_all(made)
    await made.run(SIZE_PATIENCE_MS)
    assert set(made.state.moves.in_flight) == {KEYS[0]}


async def test_what_may_begin_at_once_waits_for_no_size() -> None:
    made = world(Limits(max_moves_per_broker=4), reads_sizes=True)
    await move_all(made)
    assert set(made.state.moves.in_flight) == set(KEYS)


async def test_nothing_waits_for_sizes_that_nobody_reads() -> None:
    made = world(Limits(max_moves_per_broker=1), reads_sizes=False)
    await move_all(made)
    assert set(made.state.moves.in_flight) == {KEYS[0]}
