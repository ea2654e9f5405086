"""Nodes that others put where Drover writes, under an access control of their own; a real ZooKeeper enforces it."""

import pytest

from drover.local import LocalZooKeeper
from projections.commands import CANCEL, PLAN
from projections.store import Store
from tests.projections.office import ORDERS, plan_of
from tests.projections.test_intake import office, until
from tests.projections.test_intake_nodes import write_alone


@pytest.mark.parametrize("path", ["/admin/reassign_partitions_queue", "/drover/leaders"])
async def test_a_node_of_drovers_own_that_is_replaced_by_an_unreadable_one_is_made_right(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, path: str
) -> None:
    """It used to stop the view for good."""
    made = await office(real_store, root)
    async with made.open():
        pass
    await write_alone(zookeeper, {f"{made.base}{path}": b"mine"}, may_read=False)
    made.restart()
    made.feed()
    async with made.open():
        await made.until_gone(path)
        await until(lambda: path in made.notes.drifted)
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()


@pytest.mark.parametrize("may_read", [True, False])
async def test_an_answers_place_that_somebody_else_keeps_holds_up_no_request(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, may_read: bool
) -> None:
    made = await office(real_store, root)
    async with made.open():
        await write_alone(zookeeper, {f"{made.base}{PLAN}.error": b"mine"}, may_read=may_read)
        await made.write(PLAN, b"junk")
        await made.until_gone(PLAN)
        assert (await made.document(f"{PLAN}.error"))["code"] == "malformed"
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await made.write(CANCEL, b"")
        await made.until_idle()
    assert made.world.replicas(ORDERS[0]) == (1, 2, 3)


async def test_a_note_below_an_answer_keeps_no_request(store: Store, root: str) -> None:
    """The request is done, and its answer of before goes with what was put below it."""
    made = await office(store, root)
    async with made.open():
        await made.write(PLAN, b"junk")
        await made.until_gone(PLAN)
        await made.write(f"{PLAN}.error/note", b"")
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await made.until_gone(f"{PLAN}.error")
