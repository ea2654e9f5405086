"""KIP-236's queue as a node that operators write (R236-12); on a real ZooKeeper and on the twin in memory."""

from typing import Any

from drover.events.commands import Alter
from drover.projections.commands import CANCEL, PLAN, QUEUE, command_of
from drover.projections.ownership import REQUESTS
from drover.projections.store import Store
from drover.state.scheduling import Limits
from tests.projections.office import ORDERS, Office, plan_of
from tests.projections.test_commands import NODE
from tests.projections.test_intake import until, until_data
from tests.shard.world import CLUSTER, World

# Drover's own document of a queue in which partition 1 waits.
SHOWN = b'{"partitions":[{"partition":1,"replicas":[4,3,1],"topic":"orders"}],"version":1}'


async def narrow_office(store: Store, root: str) -> Office:
    """An office whose tree is there, on a cluster that moves one partition at a time."""
    world = World(limits=Limits(1), joins_by_itself=False)
    world.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}, partition_bytes=1_000_000)
    made = Office(store, root, world)
    await made.world.run(300)
    made.feed()
    return made


def partitions(document: Any) -> list[int]:
    return [] if document is None else [entry["partition"] for entry in document["partitions"]]


async def test_a_queue_waits_behind_the_plan_and_its_entries_leave_it_as_their_moves_begin(
    store: Store, root: str
) -> None:
    made = await narrow_office(store, root)
    async with made.open():
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await made.write(QUEUE, plan_of((1, [4, 3, 1]), (2, [4, 1, 2])))
        await until(lambda: len(made.world.state.queue) == 2)
        assert partitions(await made.document(PLAN)) == [0]
        await made.let_copy()
        await made.until_gone(QUEUE)
        await made.until_idle()
        assert await made.node(f"{QUEUE}.error") is None
    assert [made.world.replicas(key) for key in ORDERS] == [(4, 2, 3), (4, 3, 1), (4, 1, 2)]
    assert [(each.type, each.verdict, each.by) for each in made.decided()] == [("alter", "accepted", "zookeeper")] * 2
    assert made.notes.drifted == []


async def test_a_queue_on_an_idle_cluster_is_begun_and_its_node_is_gone(store: Store, root: str) -> None:
    made = await narrow_office(store, root)
    async with made.open():
        await made.write(QUEUE, plan_of((0, [4, 2, 3])))
        await made.until_gone(QUEUE)
        await made.let_copy()
        await until(lambda: made.world.replicas(ORDERS[0]) == (4, 2, 3))
        await made.until_idle()


async def test_what_is_written_over_a_queue_that_waits_is_answered_and_the_queue_shown_again(
    store: Store, root: str
) -> None:
    made = await narrow_office(store, root)
    async with made.open():
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await made.write(QUEUE, plan_of((1, [4, 3, 1])))
        await until_data(made, QUEUE, SHOWN)
        await made.write(QUEUE, plan_of((2, [4, 1, 2])))
        error = await made.until(f"{QUEUE}.error", lambda found: found is not None, "an answer")
        assert error["code"] == "reassignment-in-progress"
        assert "drover alter --queue" in error["detail"]
        await until_data(made, QUEUE, SHOWN)
    assert [key.partition for key in made.world.state.queue] == [1]


async def test_a_queue_that_makes_no_sense_is_answered_and_gone(store: Store, root: str) -> None:
    made = await narrow_office(store, root)
    async with made.open():
        await made.write(QUEUE, b"junk")
        error = await made.until(f"{QUEUE}.error", lambda found: found is not None, "an answer")
        assert error["code"] == "malformed"
        await made.until_gone(QUEUE)


async def test_a_cancel_empties_the_queue_as_well(store: Store, root: str) -> None:
    made = await narrow_office(store, root)
    async with made.open():
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await made.write(QUEUE, plan_of((1, [4, 3, 1])))
        await until_data(made, QUEUE, SHOWN)
        await made.write(CANCEL, b"")
        await made.until_gone(QUEUE)
        await made.until_idle()
    assert [made.world.replicas(key) for key in ORDERS[:2]] == [(1, 2, 3), (2, 3, 1)]


async def test_requests_and_the_plan_go_before_a_queue_that_nobody_had_read(store: Store, root: str) -> None:
    """R236-24, and the queue is behind everything that was accepted."""
    made = await narrow_office(store, root)
    async with made.open():
        pass
    await made.write(QUEUE, plan_of((0, [4, 2, 3])))
    await made.write(PLAN, plan_of((1, [4, 3, 1])))
    await made.write(f"{REQUESTS}/request_0000000001", b'{"assignment":{"orders":{"2":[4,1,2]}}}')
    made.restart()
    made.feed()
    async with made.open():
        await until(lambda: len(made.submitted) == 3)
    asked = [command for command in made.submitted if isinstance(command, Alter)]
    assert [(command.partitions[0].partition, command.queue) for command in asked] == [
        (2, False),
        (1, False),
        (0, True),
    ]


def test_a_queue_is_read_like_a_plan_but_taken_while_others_move() -> None:
    found = command_of(QUEUE, NODE._replace(data=plan_of((0, [4, 2, 3]))), CLUSTER)
    assert isinstance(found, Alter)
    assert (found.queue, found.only_when_idle) == (True, False)
