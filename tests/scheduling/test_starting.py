"""Slots: how much runs at once, in which order, and what waits without a slot says."""

import pytest

from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, CallIntended, ReassignmentCompleted
from drover.reconcile.messages import Identified
from drover.reconcile.starts import starter as starts
from drover.reconcile.starts.starter import Starter
from drover.state.broker_directions import BrokerDirection
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter, reconciler, rollback

KEYS = tuple(TopicPartition("orders", number) for number in range(6))


def world(limits: Limits, original: tuple[int, ...] = (1, 2, 3), brokers: int = 6) -> World:
    made = World(brokers=brokers, limits=limits, joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: original for key in KEYS})
    return made


def running(made: World) -> list[int]:
    return [key.partition for key in made.state.moves.in_flight]


async def test_no_more_partitions_than_the_limit_and_in_the_order_of_acceptance() -> None:
    made = world(Limits(max_partitions_in_flight=2))
    await made.send(alter({key: [4, 2, 1] for key in reversed(KEYS)}))
    await made.run(300)
    assert running(made) == [5, 4]
    made.model.join_isr(KEYS[5], 4)
    await made.run(300)
    assert running(made) == [4, 3]


async def test_each_copy_weighs_on_the_way_out_of_its_leader_and_the_way_into_its_newcomer() -> None:
    made = world(Limits(max_moves_per_broker=2, max_replicas_per_step=2))
    await made.send(alter({key: [4, 5, 1] for key in KEYS}))
    await made.run(300)
    assert running(made) == [0]
    assert made.state.moves.loads == {
        BrokerDirection(1, "out"): 2,
        BrokerDirection(4, "in"): 1,
        BrokerDirection(5, "in"): 1,
    }
    assert made.state.moves.copies_in_flight == 2


async def test_copies_in_and_copies_out_are_counted_apart() -> None:
    made = world(Limits(max_moves_per_broker=1))
    made.model.create_topic("back", {0: (4, 2, 3)})
    await made.send(alter({KEYS[0]: [4, 2, 3], TopicPartition("back", 0): [1, 2, 3]}))
    await made.run(300)
    assert len(made.state.moves.in_flight) == 2


async def test_a_step_with_more_copies_than_the_limit_goes_alone() -> None:
    made = world(Limits(max_moves_per_broker=2, max_replicas_per_step=3))
    await made.send(alter({key: [4, 5, 6] for key in KEYS}))
    await made.run(300)
    assert running(made) == [0]
    assert made.state.moves.loads[BrokerDirection(1, "out")] == 3


async def test_what_finds_its_brokers_busy_lets_others_pass() -> None:
    made = world(Limits(max_moves_per_broker=1))
    made.model.create_topic("other", {0: [3, 5, 6]})
    free = TopicPartition("other", 0)
    await made.send(alter({KEYS[0]: [4, 2, 1], KEYS[1]: [5, 2, 1], free: [2, 5, 6]}))
    await made.run(300)
    assert set(made.state.moves.in_flight) == {KEYS[0], free}


async def test_what_copies_nothing_needs_no_broker() -> None:
    made = world(Limits(max_moves_per_broker=1))
    await made.send(alter({KEYS[0]: [4, 2, 1], KEYS[1]: [3, 2, 1], KEYS[2]: [1, 2]}))
    await made.run(300)
    completed = {event.partition for event in made.events() if isinstance(event, ReassignmentCompleted)}
    assert completed == {1, 2}


async def test_the_slot_is_kept_between_steps() -> None:
    made = world(Limits(max_partitions_in_flight=1))
    await made.send(alter({KEYS[0]: [4, 5, 1], KEYS[1]: [4, 2, 1]}))
    await made.run(300)
    made.model.join_isr(KEYS[0], 4)
    await made.run(300)
    assert running(made) == [0]
    assert made.state.moves.loads == {BrokerDirection(1, "out"): 1, BrokerDirection(5, "in"): 1}


async def test_a_dead_destination_takes_no_slot_and_says_so_until_it_is_back() -> None:
    made = world(Limits(max_partitions_in_flight=1))
    await made.send(alter({KEYS[0]: [4, 2, 1], KEYS[1]: [5, 2, 1]}))
    made.model.stop_broker(5)
    await made.run(300)
    made.model.join_isr(KEYS[0], 4)
    await made.run(3000)
    block = made.reassignment(KEYS[1]).block
    assert block is not None
    assert block.why is Blocker.DEAD_DESTINATION
    assert made.reassignment(KEYS[1]).phase is Phase.PENDING
    made.model.start_broker(5)
    await made.run(3000)
    assert made.reassignment(KEYS[1]).phase is Phase.COPYING


async def test_a_reason_that_is_gone_is_not_shown_while_only_a_slot_is_missing() -> None:
    made = world(Limits(max_moves_per_broker=1))
    made.model.create_topic("other", {0: [1, 5, 6]})
    await made.send(alter({TopicPartition("other", 0): [2, 5, 6]}))
    await made.send(alter({KEYS[0]: [4, 2, 3]}))
    made.model.stop_broker(4)
    await made.run(3000)
    block = made.reassignment(KEYS[0]).block
    assert block is not None
    assert block.why is Blocker.DEAD_DESTINATION
    made.model.start_broker(4)
    await made.run(3000)
    assert made.reassignment(KEYS[0]).phase is Phase.PENDING
    assert made.reassignment(KEYS[0]).block is None


async def test_while_frozen_nothing_new_starts_and_what_runs_goes_on() -> None:
    """R236-9, and the next step of a move is something new."""
    made = world(Limits())
    await made.send(alter({KEYS[0]: [4, 5, 1]}))
    await made.run(300)
    await made.freeze()
    await made.send(alter({KEYS[1]: [4, 2, 1]}))
    made.model.join_isr(KEYS[0], 4)
    await made.run(3000)
    assert made.reassignment(KEYS[0]).phase is Phase.CONFIRMED
    assert made.reassignment(KEYS[1]).phase is Phase.PENDING
    await made.send(rollback(KEYS[0]))
    await made.run(3000)
    assert made.replicas(KEYS[0]) == (1, 2, 3)
    await made.unfreeze()
    await made.run(1000)
    assert made.reassignment(KEYS[1]).phase is Phase.COPYING


async def test_a_plan_waits_for_what_was_announced_and_no_longer_than_a_minute() -> None:
    made = world(Limits())
    made.model.joins_by_itself = True
    await made.send(alter({KEYS[0]: [4, 2, 1]}, plan="p", more=True))
    await made.run(5000)
    assert made.state.plans["p"].status == "open"
    await made.send(alter({KEYS[1]: [4, 2, 1]}, plan="p", more=True))
    await made.run(30_000)
    made.crash()
    await made.run(20_000)
    assert made.state.plans["p"].status == "open"
    await made.run(20_000)
    assert made.state.plans["p"].status == "finished"


async def test_a_plan_whose_last_part_was_refused_does_not_wait() -> None:
    made = world(Limits())
    made.model.joins_by_itself = True
    await made.send(alter({KEYS[0]: [4, 2, 1]}, plan="p", more=True))
    await made.run(5000)
    refused = await made.send(alter({KEYS[1]: [99]}, plan="p"))
    assert refused.verdict == "refused"
    assert made.state.plans["p"].status == "finished"


async def test_a_slot_that_becomes_free_is_used_in_the_same_record() -> None:
    made = world(Limits(max_partitions_in_flight=1))
    await made.send(alter({KEYS[0]: [4, 2, 3], KEYS[1]: [5, 2, 3]}))
    # Long enough for every observation from before the wait to be too old for a start.
    await made.run(5000)
    assert running(made) == [0]
    made.model.join_isr(KEYS[0], 4)
    await made.run(3000)
    (freeing,) = (batch for batch in made.batches() if any(isinstance(e, ReassignmentCompleted) for e in batch.events))
    assert [event.partition for event in freeing.events if isinstance(event, CallIntended)] == [1]


async def test_what_others_have_passed_too_often_gets_the_next_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its destination has a slot, its leader has none: at first others take the slot, and then it is kept."""
    monkeypatch.setattr(starts, "PATIENCE", 1)
    made = world(Limits(max_moves_per_broker=1))
    made.model.create_topic("many", {0: [2, 1, 3], 1: [2, 1, 3]})
    first, second = TopicPartition("many", 0), TopicPartition("many", 1)
    await made.send(alter({KEYS[0]: [5, 2, 3]}))
    await made.run(1000)
    await made.send(alter({KEYS[1]: [4, 2, 3], first: [4, 1, 3], second: [4, 1, 3]}))
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEYS[0], first}
    made.model.join_isr(first, 4)
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEYS[0]}
    made.model.join_isr(KEYS[0], 5)
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEYS[1]}


async def test_room_at_a_leader_that_died_after_the_look_is_not_waited_for() -> None:
    """Nothing would wake it: room at dead brokers counts for nothing (seed 81029090)."""
    made = World(brokers=7, limits=Limits(max_moves_per_broker=1), joins_by_itself=False)
    made.model.create_topic("orders", {0: (1, 2, 3)})
    made.model.create_topic("other", {0: (6, 1, 7)})
    other = TopicPartition("other", 0)
    await made.send(alter({KEYS[0]: [5, 2, 3]}))
    await made.run(1000)
    await made.freeze()
    await made.send(alter({other: [6, 1, 4]}))
    await made.run(1000)
    await made.unfreeze()
    made.model.stop_broker(6)
    await made.run(0)
    await made.look()
    starter = reconciler(made, Starter)
    assert starter is not None
    kafka_cluster_id, live = made.state.kafka_cluster_id, starter.observed.live
    assert kafka_cluster_id is not None
    made.core.deliver(Identified(CLUSTER, kafka_cluster_id, tuple(live - {1}), made.model.now_ms))
    await made.turn()
    await made.run(2000)
    assert made.reassignment(other).phase is Phase.PENDING
    made.model.join_isr(KEYS[0], 5)
    await made.run(2000)
    assert made.reassignment(other).phase is Phase.COPYING, "broker 1 is alive after all"
