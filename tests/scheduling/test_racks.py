"""Copies between racks have a bound of their own: an uplink carries less than the ports of the brokers behind it."""

from collections.abc import Sequence
from typing import Any

from drover.client.views.waiting_reason import waiting_reason
from drover.events.clusters import Budgets
from drover.events.commands import ChangeLimits
from drover.events.partitions import TopicPartition
from drover.reconcile.gates import Uplink
from drover.reconcile.starts.room import uplinks_of
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter

# Brokers 1 and 4 are in rack r1, 2 and 5 in r2, 3 and 6 in r0.
KEYS = tuple(TopicPartition("orders", number) for number in range(6))
BETWEEN: dict[TopicPartition, Sequence[int] | None] = {key: [1, 2, 6] for key in KEYS}


def world(most: int | None) -> World:
    budgets = Budgets(max_moves_per_rack=most)
    made = World(brokers=6, limits=Limits(budgets=budgets, max_moves_per_broker=5), joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS})
    return made


def running(made: World) -> list[int]:
    return [key.partition for key in made.state.moves.in_flight]


async def change(made: World, id_: str, **fields: Any) -> None:
    outcome = await made.send(ChangeLimits(id=id_, cluster=CLUSTER, by="ann", reason="an uplink is slow", **fields))
    assert outcome.remarks, outcome


async def test_copies_between_racks_have_a_bound_and_each_that_ends_makes_room_for_the_next() -> None:
    made = world(2)
    await made.send(alter(BETWEEN))
    await made.run(1000)
    assert running(made) == [0, 1]
    assert "a rack's uplink is full (max_moves_per_rack is 2)" in str(waiting_reason(made.state, KEYS[2]))
    made.model.join_isr(KEYS[0], 6)
    await made.run(1000)
    assert running(made) == [1, 2]


async def test_a_copy_within_a_rack_passes_those_that_wait_for_an_uplink() -> None:
    made = world(1)
    within = {KEYS[5]: [1, 4, 3]}
    await made.send(alter({**BETWEEN, **within}))
    await made.run(1000)
    assert running(made) == [0, 5]


async def test_the_bound_can_be_set_and_lifted_while_moves_run() -> None:
    made = world(None)
    await made.look()
    await made.settle()
    await change(made, "set", values={"max_moves_per_rack": 1})
    await made.send(alter(BETWEEN))
    await made.run(1000)
    assert running(made) == [0]
    await change(made, "reset", reset=("max_moves_per_rack",))
    await made.run(1000)
    assert running(made) == [0, 1, 2, 3, 4]


async def test_a_successor_counts_what_its_predecessor_began() -> None:
    made = world(2)
    await made.send(alter(BETWEEN))
    await made.run(1000)
    made.crash()
    made.acquire()
    await made.run(1000)
    assert running(made) == [0, 1]


async def test_what_was_begun_without_a_bound_counts_when_one_is_set() -> None:
    made = world(None)
    first = {key: BETWEEN[key] for key in KEYS[:3]}
    await made.send(alter(first))
    await made.run(1000)
    await change(made, "set", values={"max_moves_per_rack": 3})
    await made.send(alter({key: BETWEEN[key] for key in KEYS[3:]}))
    await made.run(1000)
    assert running(made) == [0, 1, 2]


def test_a_step_takes_a_way_out_and_a_way_in_for_each_copy_that_changes_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "c", 5: None}
    ways = (Uplink("a", "out"), Uplink("a", "out"), Uplink("b", "in"), Uplink("c", "in"))
    assert uplinks_of((2, 3, 4, 5, 6), 1, racks) == ways
    assert uplinks_of((3,), 5, racks) == ()
    assert uplinks_of((3,), None, racks) == ()
