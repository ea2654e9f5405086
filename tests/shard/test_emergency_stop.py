"""The emergency stop at its real size: 20,000 partitions under way, and the bounds as they are."""

from drover.events.outcomes import joined
from drover.events.partitions import TopicPartition
from drover.events.records import Outcome
from drover.shard.batch_records import RECORD_BYTES
from drover.state.scheduling import Limits
from tests.shard.world import World, alter, cancel

UNDER_WAY = 20_000
KEYS = [TopicPartition("orders", number) for number in range(UNDER_WAY)]
# What one alter command of the client holds.
PORTION = 4000


async def test_a_cancel_of_everything_among_20_000_is_decided_and_acts_from_its_first_record_on() -> None:
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

    def parts() -> list[Outcome]:
        return [outcome for outcome in world.outcomes() if outcome.id == "away"]

    await world.turn()
    (first_part,) = parts()
    assert first_part.more
    assert len(first_part.accepted) > 1000
    left = UNDER_WAY - len(world.state.reassignments)
    cancelled = sum(one.is_cancelled for one in world.state.reassignments.values())
    assert left + cancelled == len(first_part.accepted), "what the first record names has ended, or goes back"
    while parts()[-1].more:
        assert await world.turn()
    whole = joined(parts())
    assert (len(whole.accepted), whole.refusals, whole.verdict) == (UNDER_WAY, (), "accepted")
    assert len(parts()) < 15
    assert max(map(len, world.log[written:])) < RECORD_BYTES
