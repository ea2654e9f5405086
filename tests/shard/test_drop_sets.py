"""KIP-236's drop set (R236-25): which replicas a further target of a moving partition takes away.

Drover rolls back first (X18), so exactly those go that the old target has added.
"""

from drover.decide.replica_sets import after_cancel
from drover.events.partitions import TopicPartition
from drover.facts import Move
from drover.reconcile.moves.next_calls import SendCancel
from drover.reconcile.moves.route import next_call
from drover.state.phase import Phase
from drover.state.reassignment import Step
from tests.reassignment.support import context, reassignment, sight
from tests.shard.world import World, alter

T0 = TopicPartition("t", 0)


async def replaced(original: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]) -> list[set[int]]:
    """Move a partition to `second` while it is copying to `first`; returns who held it, ten times a second."""
    world = World(brokers=5, copy_bytes_per_second=1000)
    world.model.create_topic("t", {0: original}, partition_bytes=2000)
    await world.send(alter({T0: first}, stepping="single"))
    await world.run(600)
    assert T0 in world.model.moves()
    await world.send(alter({T0: second}, stepping="single"))
    held: list[set[int]] = []
    for _each_tenth_of_a_second in range(100):
        await world.run(100)
        held.append(set(world.model.stored_bytes(T0)))
    assert world.replicas(T0) == second
    return held


async def test_tv_208_what_the_old_target_added_goes_and_the_originals_stay_until_the_new_one_is_copied() -> None:
    held = await replaced((1, 2), (2, 3), (2, 4))
    assert {1, 2} in held, "broker 3 is dropped before anything else is copied"
    assert all({1, 2} <= each for each in held[: held.index({2, 4})])
    assert all(3 not in each for each in held[held.index({1, 2}) :])


def test_tv_209_a_leader_that_the_old_target_added_goes_and_what_the_new_target_has_stays() -> None:
    """The page keeps the leader and drops broker 2, which its new target adds again."""
    step = Step(1, True, (1, 2), (2, 3), 1)
    about = reassignment(Phase.ROLLING_BACK, original=(1, 2), target=(2, 3), current=(1, 2), step=step)
    seen = sight((2, 3, 1), (3, 1, 2), leader=3, move=Move((2, 3, 1), (3,), (1,)))
    assert next_call(about, seen, context()) == SendCancel()
    assert set(after_cancel(step)) == {1, 2}


async def test_tv_211_a_replica_that_the_new_target_has_too_is_dropped_and_copied_again() -> None:
    """A review of the page asks that it be kept; but some re-targets never end on Kafka 4.3.1, so Drover goes back."""
    held = await replaced((1, 2, 3), (2, 3, 4), (3, 4, 5))
    assert {1, 2, 3} in held
    assert held[-1] == {3, 4, 5}
