"""The emergency stop at its real size: 20,000 partitions under way, and the bounds as they are."""

from drover.events.partitions import TopicPartition
from drover.state.scheduling import Limits
from tests.shard.world import World, alter, cancel

UNDER_WAY = 20_000
KEYS = [TopicPartition("orders", number) for number in range(UNDER_WAY)]
# What one alter command of the client holds.
PORTION = 10_000


async def test_a_cancel_of_everything_among_20_000_is_one_record_of_some_bytes_for_each() -> None:
    limits = Limits(max_partitions_in_flight=1250, max_moves_per_broker=500)
    world = World(brokers=5, limits=limits, joins_by_itself=False)
    world.model.create_topic("orders", {key.partition: [1, 2, 3] for key in KEYS}, partition_bytes=1_000_000)
    for first in range(0, UNDER_WAY, PORTION):
        some, more = KEYS[first : first + PORTION], first + PORTION < UNDER_WAY
        world.put(alter(dict.fromkeys(some, (4, 2, 1)), id=f"drain-{first}", plan="drain", more=more))
    while len(world.state.reassignments) < UNDER_WAY:
        assert await world.turn()
    written = len(world.log)
    world.put(cancel(all=True, mode="rollback", id="away"))
    await world.turn()
    assert len(world.log[written]) < 15 * UNDER_WAY
    outcome = world.outcomes()[-1]
    assert (outcome.id, len(outcome.accepted), outcome.refusals) == ("away", UNDER_WAY, ())
    assert all(found.is_cancelled for found in world.state.reassignments.values())
