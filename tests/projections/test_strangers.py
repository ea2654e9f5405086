"""Nodes that others put where Drover writes, under an access control of their own; a real ZooKeeper enforces it."""

import asyncio

import pytest

from drover.local import LocalZooKeeper
from drover.projections.commands import CANCEL, PLAN
from drover.projections.comparison import compare
from drover.projections.intake import MOST_REQUESTS
from drover.projections.ownership import REQUESTS
from drover.projections.rebuild import rebuild
from drover.projections.store import Store
from drover.projections.tree import Tree
from tests.projections.logs import walked_log
from tests.projections.notes import Notes
from tests.projections.office import ORDERS, plan_of
from tests.projections.test_intake import office, until
from tests.projections.test_intake_nodes import write_alone
from tests.projections.test_rebuild import reading, written
from tests.shard.world import CLUSTER


@pytest.mark.story
async def test_a_node_of_drovers_own_that_is_replaced_by_an_unreadable_one_is_made_right(
    zookeeper: LocalZooKeeper, real_store: Store, root: str
) -> None:
    """It used to stop the view for good."""
    path = "/drover/leaders"
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


@pytest.mark.story
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


@pytest.mark.story
@pytest.mark.parametrize("may_read", [True, False])
@pytest.mark.parametrize("top", ["/brokers/topics/notes", "/drover/leaders", "/drover/plans/zzz"])
@pytest.mark.parametrize("somebody_is_there", [True, False])
async def test_a_node_that_drover_may_not_remove_stays_and_the_view_goes_on(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, may_read: bool, top: str, somebody_is_there: bool
) -> None:
    made = await office(real_store, root)
    nodes = {f"{made.base}{top}": b"", f"{made.base}{top}/kept": b""}
    if not somebody_is_there:
        async with made.open():
            pass
        await write_alone(zookeeper, nodes, may_read=may_read)
        made.restart()
        made.feed()
    async with made.open():
        if somebody_is_there:
            await write_alone(zookeeper, nodes, may_read=may_read)
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await until(lambda: made.notes.errors)
        before = len(made.notes.errors)
        await made.let_copy()
        await made.until_idle()
        assert len(made.notes.errors) == before, "it is said once"


@pytest.mark.story
async def test_a_rebuild_leaves_what_it_may_not_remove_and_verify_names_it(
    zookeeper: LocalZooKeeper, real_store: Store, root: str
) -> None:
    log = await walked_log(3)
    await written(real_store, root, log, 40)
    below = [f"/brokers/topics/notes{more}" for more in ("", "/1", "/2", "/2/x")]
    await write_alone(zookeeper, {f"{root}/{CLUSTER}{path}": b"" for path in below}, may_read=True)
    async with asyncio.timeout(30):
        await rebuild(reading(log), real_store, root, CLUSTER, "rebuilder", Notes())
    found = await compare(reading(log), Tree(real_store, root, CLUSTER, ""))
    assert [(each.path, each.what) for each in found.differences] == [(path, "must not be there") for path in below]


@pytest.mark.story
async def test_a_hundred_requests_that_cannot_be_removed_hold_up_no_later_one(
    zookeeper: LocalZooKeeper, real_store: Store, root: str
) -> None:
    """As many are looked at, at a time; those that are done and stay give way."""
    made = await office(real_store, root)
    async with made.open():
        requests = [f"{made.base}{REQUESTS}/request_{number}" for number in range(MOST_REQUESTS)]
        nodes = {path: b'{"x":1}' for top in requests for path in (top, f"{top}/notes")}
        await write_alone(zookeeper, nodes, may_read=True)
        await until(lambda: len(made.told()) == MOST_REQUESTS)
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await made.write(f"{REQUESTS}/request_{MOST_REQUESTS}", b'{"assignment":{"orders":{"0":[4,3,2]}}}')
        await made.until_gone(f"{REQUESTS}/request_{MOST_REQUESTS}")
        assert len(made.told()) == MOST_REQUESTS
