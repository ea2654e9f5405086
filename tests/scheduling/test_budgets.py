"""Budgets: copies in and out of each broker, copies, bytes and leaders of the cluster; what exceeds one goes alone."""

from collections.abc import Sequence
from typing import Any

import pytest

from drover.client.views.waiting_reason import waiting_reason
from drover.events.clusters import Budgets
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.reassignments import CallIntended
from drover.state.broker_directions import BrokerDirection
from drover.state.scheduling import Limits
from tests.leadership.support import demote, until_intended
from tests.shard.world import World, alter

KEYS = tuple(TopicPartition("orders", number) for number in range(6))
TARGETS: dict[TopicPartition, Sequence[int] | None] = {key: [4 + key.partition % 3, 2, 3] for key in KEYS}


def world(budgets: Budgets, *, size: int = 0, **limits: Any) -> World:
    made = World(brokers=6, limits=Limits(budgets=budgets, **limits), joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS}, partition_bytes=size)
    return made


def running(made: World) -> list[int]:
    return [key.partition for key in made.state.moves.in_flight]


def why(made: World, key: TopicPartition) -> str:
    return str(waiting_reason(made.state, key))


async def test_copies_into_a_broker_have_a_bound_of_their_own() -> None:
    made = world(Budgets(max_incoming_per_broker=1))
    await made.send(alter(TARGETS))
    await made.run(1000)
    assert running(made) == [0, 1, 2]
    assert "slots of broker 4 (1 of 1 copies in)" in why(made, KEYS[3])
    assert "max_incoming_per_broker is 1" in why(made, KEYS[3])
    made.model.join_isr(KEYS[0], 4)
    await made.run(1000)
    assert running(made) == [1, 2, 3]


async def test_copies_out_of_a_broker_have_a_bound_of_their_own() -> None:
    made = world(Budgets(max_outgoing_per_broker=2))
    made.model.create_topic("other", {0: (2, 1, 3)})
    other = TopicPartition("other", 0)
    await made.send(alter({**TARGETS, other: [4, 1, 3]}))
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEYS[0], KEYS[1], other}
    assert made.state.moves.loads[BrokerDirection(1, "out")] == 2


async def test_copies_of_the_whole_cluster_have_a_bound() -> None:
    made = world(Budgets(max_replica_copies_in_flight=3), max_replicas_per_step=2)
    await made.send(alter({key: [4, 5, 3] for key in KEYS}))
    await made.run(1000)
    assert (running(made), made.state.moves.copies_in_flight) == ([0], 2)
    assert "max_replica_copies_in_flight is 3" in why(made, KEYS[1])
    made.model.join_isr(KEYS[0], 4)
    made.model.join_isr(KEYS[0], 5)
    await made.run(1000)
    assert running(made) == [1]


async def test_a_step_with_many_copies_is_not_passed_by_smaller_ones_at_the_budget_of_the_cluster() -> None:
    made = world(Budgets(max_replica_copies_in_flight=3), max_replicas_per_step=2)
    made.model.create_topic("other", dict.fromkeys(range(2), (1, 2, 3)))
    running_already, small = TopicPartition("other", 0), TopicPartition("other", 1)
    await made.send(alter({KEYS[0]: [4, 5, 3], running_already: [6, 2, 3]}))
    await made.run(1000)
    assert made.state.moves.copies_in_flight == 3
    await made.send(alter({KEYS[1]: [4, 5, 3]}))
    await made.send(alter({small: [6, 2, 3]}))
    made.model.join_isr(running_already, 6)
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEYS[0]}
    made.model.join_isr(KEYS[0], 4)
    made.model.join_isr(KEYS[0], 5)
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEYS[1], small}


async def test_what_is_more_than_all_copies_at_once_goes_alone() -> None:
    made = world(Budgets(max_replica_copies_in_flight=1), max_replicas_per_step=3)
    await made.send(alter({key: [4, 5, 6] for key in KEYS}))
    await made.run(1000)
    assert (running(made), made.state.moves.copies_in_flight) == ([0], 3)
    assert "max_replica_copies_in_flight is 1" in why(made, KEYS[1])


async def test_bytes_have_a_bound_and_the_log_says_how_much_each_step_copies() -> None:
    made = world(Budgets(max_bytes_in_flight=2_500_000), size=1_000_000)
    await made.freeze()
    await made.send(alter(TARGETS))
    await made.measure()
    await made.unfreeze()
    await made.run(1000)
    assert running(made) == [0, 1, 2]
    assert made.state.moves.bytes_in_flight == 3_000_000
    intents = [event for event in made.events() if isinstance(event, CallIntended)]
    assert {intent.copy_bytes for intent in intents} == {1_000_000}
    assert "3,000,000 bytes are being copied" in why(made, KEYS[3])
    assert "max_bytes_in_flight is 2,500,000" in why(made, KEYS[3])
    made.crash()
    assert made.state.moves.bytes_in_flight == 3_000_000
    await made.measure()
    made.model.join_isr(KEYS[1], 5)
    await made.run(7000)
    assert running(made) == [0, 2, 3]


async def test_leaders_that_move_have_a_bound_and_others_pass_them() -> None:
    """R435-8: leader steps up to the bound, and others fill up."""
    made = world(Budgets(), max_leader_movements=1)
    moving = {KEYS[0]: [4, 2, 3], KEYS[1]: [5, 2, 3]}
    staying = {KEYS[2]: [1, 2, 4], KEYS[3]: [1, 2, 5]}
    await made.send(alter({**moving, **staying}))
    await made.run(1000)
    assert running(made) == [0, 2, 3]
    assert made.state.moves.leader_steps == 1
    assert "max_leader_movements is 1" in why(made, KEYS[1])
    made.model.join_isr(KEYS[0], 4)
    await made.run(1000)
    assert set(running(made)) == {1, 2, 3}


async def test_leaders_that_order_calls_move_leave_less_for_steps() -> None:
    made = world(Budgets(), max_leader_movements=2)
    made.model.create_topic("listed", dict.fromkeys(range(2), (5, 1, 4)))
    await made.send(demote(5))
    await until_intended(made)
    assert len(made.state.intended_orders) == 2
    made.hold_effects = True
    await made.send(alter({KEYS[0]: [4, 2, 3], KEYS[1]: [1, 2, 4]}))
    await made.run(1000)
    assert running(made) == [1]
    assert "2 leaders are on their way" in why(made, KEYS[0])
    made.hold_effects = False
    await made.release_effects()
    await made.run(1000)
    assert set(running(made)) == {0, 1}


async def test_steps_that_move_no_leader_yet_are_not_counted_as_leader_movements() -> None:
    made = world(Budgets(), max_leader_movements=1)
    await made.send(alter({key: [4, 5, 6] for key in KEYS[:3]}))
    await made.run(1000)
    assert running(made) == [0, 1, 2]
    assert made.state.moves.leader_steps == 0


@pytest.mark.parametrize("stepping", list(Stepping))
async def test_within_every_budget_everything_arrives(stepping: Stepping) -> None:
    budgets = Budgets(1, 1, 1, 1_000)
    made = world(budgets, size=1_000, max_leader_movements=1, max_replicas_per_step=2)
    made.model.joins_by_itself = True
    await made.send(alter({key: [4, 5, 6] for key in KEYS}, stepping=stepping))
    await made.finish(120_000)
    assert {made.replicas(key) for key in KEYS} == {(4, 5, 6)}
    assert (made.state.moves.loads, made.state.moves.copies_in_flight, made.state.moves.bytes_in_flight) == ({}, 0, 0)
    assert made.state.moves.leader_steps == 0
