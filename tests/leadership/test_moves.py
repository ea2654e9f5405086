"""Partitions on the move while brokers are listed: steps in the order of their day (X8), canonical orders kept (X9)."""

from typing import Any

import pytest
from msgspec.structs import replace

from drover.cluster.port import AlterRequest
from drover.events.leadership import LeaderElectionIntended, LeaderOrderKept, LeaderWaiting, LeaderWaitReason
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.reassignments import Call, CallIntended, ReassignmentCompleted
from drover.facts import Move, PartitionFacts
from drover.reconcile.debounce import CERTAIN_AFTER_MS
from drover.reconcile.leaders.judgement import Elect, LeaderPolicy, Wait
from drover.reconcile.leaders.moving_partitions import judge_moving
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.leadership.support import FIRST, KEYS, LISTS, WITHOUT_3, blacklist, demote, leader, restore, world
from tests.reassignment.support import reassignment
from tests.shard.world import World, alter, rollback, stop

SLOW: dict[str, Any] = {"copy_bytes_per_second": 50_000, "partition_bytes": 1_000_000}
BUSY = TopicPartition("busy", 0)


def steps(made: World) -> list[tuple[int, ...]]:
    """List what each step of the first partition's moves sent."""
    return [
        event.replicas
        for event in made.events()
        if isinstance(event, CallIntended)
        and event.key == FIRST
        and event.call is Call.STEP
        and event.replicas is not None
    ]


def swapping(**model: Any) -> World:
    return world(limits=Limits(stepping=Stepping.SWAP), **model)


async def test_no_step_of_a_swap_makes_a_listed_broker_lead() -> None:
    made = swapping(brokers=6)
    await made.send(demote(4))
    await made.send(alter({FIRST: (4, 5, 6)}))
    seen = set()
    for _ in range(100):
        await made.run(100)
        seen.add(leader(made))
    assert steps(made) == [(5, 3, 1, 2), (5, 3, 1), (5, 6, 1), (5, 6, 4)]
    assert 4 not in seen
    assert made.state.orders[FIRST].canonical == (4, 5, 6)
    await made.send(restore(4))
    await made.run(5000)
    assert made.replicas(FIRST) == (4, 5, 6)
    assert leader(made) == 4
    assert not made.state.orders


async def test_a_leader_that_is_dropped_waits_for_one_that_may_follow() -> None:
    """Broker 1 is to lead after the move, is not in sync, and broker 4 is listed: the leader stays until 1 is back."""
    made = world(joins_by_itself=False)
    made.model.stop_broker(1)
    made.model.start_broker(1)
    await made.send(demote(4))
    await made.send(alter({FIRST: (4, 1)}))
    await made.run(10_000)
    assert leader(made) == 3
    made.model.joins_by_itself = True
    await made.run(10_000)
    assert (made.replicas(FIRST), leader(made)) == ((1, 4), 1)


async def test_the_first_step_of_a_move_gives_up_leadership() -> None:
    """Its list has the listed broker last, and the first one is elected while the copy goes on."""
    made = world(limits=Limits(max_leader_movements=1), brokers=6, **SLOW)
    await made.freeze()
    await made.send(demote(3))
    await made.send(alter({FIRST: (4, 5, 6)}))
    await made.unfreeze()
    await made.run(3000)
    assert made.state.reassignments[FIRST].phase is Phase.COPYING
    assert steps(made)[0] == (1, 2, 4, 3)
    assert leader(made) == 1
    kept = made.state.orders[FIRST]
    assert (kept.canonical, kept.replicas) == ((3, 1, 2), (3, 1, 2))


async def test_a_broker_that_is_listed_during_a_copy_is_shown_as_waiting_and_leads_no_longer_than_that() -> None:
    made = world(brokers=6, **SLOW)
    await made.send(alter({FIRST: (4, 5, 6)}))
    await made.run(1000)
    await made.send(demote(3))
    await made.run(8000)
    assert leader(made) == 3
    assert made.state.waiting[FIRST].why is LeaderWaitReason.BEING_MOVED
    assert sum(isinstance(event, LeaderWaiting) and event.key == FIRST for event in made.events()) == 1
    await made.run(20_000)
    assert steps(made)[1] == (1, 2, 4, 5, 3)
    assert leader(made) == 1
    assert FIRST not in made.state.waiting
    await made.run(60_000)
    assert made.replicas(FIRST) == (4, 5, 6)
    assert FIRST not in made.state.orders


async def test_a_move_that_has_not_begun_holds_up_no_election() -> None:
    """Its list has another broker first already, which lost leadership for a while."""
    made = World(limits=Limits(max_moves_per_broker=1), copy_bytes_per_second=1)
    made.model.create_topic("t", {0: (1, 3, 2)}, partition_bytes=1_000_000)
    made.model.create_topic("busy", {0: (2, 1)}, partition_bytes=1_000_000)
    made.model.stop_broker(1)
    made.model.start_broker(1)
    await made.run(3000)
    assert leader(made) == 3
    await made.send(alter({BUSY: (2, 4)}))
    await made.send(alter({FIRST: (4, 3, 2)}))
    await made.run(2000)
    assert made.state.reassignments[FIRST].phase is Phase.PENDING
    await made.send(demote(3))
    await made.run(3000)
    assert leader(made) == 1
    assert made.state.reassignments[FIRST].phase is Phase.PENDING
    assert any(isinstance(event, LeaderElectionIntended) for event in made.events())


@pytest.mark.parametrize("phase", list(Phase))
def test_no_election_comes_beside_an_open_call_or_before_a_cancel(phase: Phase) -> None:
    """S20; an election between a rollback's calls would have to be waited for."""
    moving = reassignment(phase, original=(1, 2, 3), target=(4, 5, 6))
    seen = PartitionFacts("id", 3, (1, 2, 3), (1, 2, 3))
    found = judge_moving(seen, moving, LeaderPolicy(listed={3}, live={1, 2, 3}))
    elects = phase in {Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED, Phase.COPYING}
    assert isinstance(found, Elect) is elects
    assert isinstance(found, Wait) is not elects
    others = replace(seen, move=Move((7, 1, 2, 3), (7,), ()))
    assert isinstance(judge_moving(others, moving, LeaderPolicy(listed={3}, live={1, 2, 3})), Wait)


@pytest.mark.parametrize("how", ["stop", "rollback", "cancelled elsewhere"])
async def test_however_a_move_ends_the_canonical_order_comes_back(how: str) -> None:
    made = world(brokers=6, **SLOW)
    await made.freeze()
    await made.send(demote(3))
    await made.send(alter({FIRST: (4, 5, 6)}))
    await made.unfreeze()
    await made.run(25_000)
    assert made.state.reassignments[FIRST].current == (1, 2, 4, 3)
    if how == "cancelled elsewhere":
        await made.driver.alter([AlterRequest(FIRST, None)])
        await made.run(2 * CERTAIN_AFTER_MS)
    else:
        await made.send(stop(FIRST) if how == "stop" else rollback(FIRST))
    await made.run(10_000)
    assert FIRST not in made.state.reassignments
    after = (3, 1, 2) if how == "rollback" else (3, 1, 2, 4)
    if how == "cancelled elsewhere":
        assert set(made.replicas(FIRST)) == {1, 2, 3, 4}
        return
    assert made.replicas(FIRST) == (*(one for one in after if one != 3), 3)
    await made.send(restore(3))
    await made.run(5000)
    assert (made.replicas(FIRST), leader(made)) == (after, 3)
    assert not made.state.orders


async def test_a_rollback_by_steps_is_sent_in_todays_order_and_keeps_the_canonical_one() -> None:
    made = swapping(brokers=6, copy_bytes_per_second=400_000, partition_bytes=1_000_000)
    await made.send(alter({FIRST: (4, 5, 6)}))
    for _ in range(100):
        await made.run(100)
        if 1 not in made.replicas(FIRST):
            break
    await made.send(demote(1))
    await made.send(rollback(FIRST))
    await made.run(40_000)
    assert made.replicas(FIRST) == (3, 2, 1)
    assert made.state.orders[FIRST].canonical == (3, 1, 2)
    await made.send(blacklist())
    await made.run(5000)
    assert made.replicas(FIRST) == (3, 1, 2)


async def test_a_list_that_changes_while_the_last_copy_goes_back_leaves_the_original_order_to_be_restored() -> None:
    made = swapping(brokers=6, copy_bytes_per_second=400_000, partition_bytes=1_000_000)
    await made.send(alter({FIRST: (4, 5, 6)}))
    for _ in range(100):
        await made.run(100)
        if 1 not in made.replicas(FIRST):
            break
    await made.send(demote(1))
    await made.send(rollback(FIRST))
    for _ in range(400):
        await made.run(100)
        if steps(made)[-1] == (3, 2, 1):
            break
    await made.send(blacklist())
    await made.run(20_000)
    assert made.replicas(FIRST) == (3, 1, 2)
    assert not made.state.orders


async def test_the_order_of_a_topic_that_is_gone_is_not_restored_in_its_successor() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    assert FIRST in made.state.orders
    await made.freeze()
    made.model.delete_topic("t")
    made.model.create_topic("t", {0: (1, 2, 3)})
    await made.run(1000)
    await made.send(alter({FIRST: (2, 1, 4)}))
    await made.unfreeze()
    await made.run(3000)
    assert any(isinstance(event, ReassignmentCompleted) for event in made.events())
    await made.send(restore(3))
    await made.run(12_000)
    assert made.replicas(FIRST) == (2, 1, 4)
    assert not made.state.orders
    assert not any(isinstance(event, LeaderOrderKept) and event.canonical == (2, 4, 1) for event in made.events())


async def with_a_reorder_that_waits() -> World:
    """Let a list that was reordered wait to be reordered once more, since another one takes the only slot."""
    made = world(joins_by_itself=False, limits=Limits(max_partitions_in_flight=1))
    await made.send(demote(3))
    await made.run(4000)
    made.model.stop_broker(1)
    await made.send(demote(1))
    for _ in range(30):
        if KEYS[1] in made.state.reassignments:
            break
        await made.run(100)
    assert made.state.reassignments[KEYS[1]].phase is Phase.PENDING
    assert made.replicas(KEYS[1]) == WITHOUT_3[1]
    return made


async def test_an_alter_in_the_place_of_a_reorder_that_waits_keeps_the_canonical_order() -> None:
    made = await with_a_reorder_that_waits()
    await made.send(alter({KEYS[1]: (2, 4)}))
    assert made.state.reassignments[KEYS[1]].original == LISTS[1]
    await made.send(rollback(KEYS[1]))
    assert made.state.orders[KEYS[1]].canonical == LISTS[1]


async def test_who_asks_for_the_very_list_that_is_there_makes_its_order_canonical() -> None:
    made = await with_a_reorder_that_waits()
    await made.send(alter({KEYS[1]: WITHOUT_3[1]}))
    assert KEYS[1] not in made.state.orders
