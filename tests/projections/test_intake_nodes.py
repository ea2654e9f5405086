"""Nodes as no tool would write them: an operator's alone, with others below; answered like any other."""

import asyncio
from collections.abc import Mapping

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from drover.errors import ConfigurationError
from drover.local import LocalZooKeeper
from drover.projections.commands import CANCEL, FREEZE, PLAN
from drover.projections.ownership import REQUESTS
from drover.projections.store import Create, Store
from drover.projections.tree import Tree
from tests.projections.office import ORDERS, plan_of
from tests.projections.test_intake import office, until
from tests.shard.world import CLUSTER


async def write_alone(zookeeper: LocalZooKeeper, nodes: Mapping[str, bytes], *, may_read: bool) -> None:
    """Create nodes, in one transaction, that nobody but their creator may write, or read."""
    acl = [make_digest_acl("ops", "secret", all=True)]
    if may_read:
        acl.append(make_acl("world", "anyone", read=True))

    def write() -> None:
        client = KazooClient(zookeeper.hosts, auth_data=[("digest", "ops:secret")])
        client.start()
        transaction = client.transaction()
        for path, data in nodes.items():
            transaction.create(path, data, acl=acl)
        created = transaction.commit()
        client.stop()
        client.close()
        assert created == list(nodes)

    await asyncio.to_thread(write)


@pytest.mark.story
@pytest.mark.parametrize("somebody_is_there", [True, False])
async def test_a_plan_that_drover_may_not_read_is_answered_and_removed_and_blocks_nothing(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, somebody_is_there: bool
) -> None:
    made = await office(real_store, root)
    if not somebody_is_there:
        async with made.open():
            pass
        await write_alone(zookeeper, {f"{made.base}{PLAN}": plan_of((0, [4, 2, 3]))}, may_read=False)
        made.restart()
        made.feed()
    async with made.open():
        if somebody_is_there:
            await write_alone(zookeeper, {f"{made.base}{PLAN}": plan_of((0, [4, 2, 3]))}, may_read=False)
        found = await made.until(f"{PLAN}.error", lambda error: error is not None, "an answer")
        assert found["code"] == "denied"
        await made.until_gone(PLAN)
        await until(lambda: [each.refusals[0].code for each in made.told()] == ["denied"])
        await made.write(PLAN, plan_of((1, [2, 3, 4])))
        await made.until_shown()


@pytest.mark.story
async def test_a_cancel_and_a_freeze_that_only_their_maker_may_write_are_carried_out_all_the_same(
    zookeeper: LocalZooKeeper, real_store: Store, root: str
) -> None:
    made = await office(real_store, root)
    async with made.open():
        await write_alone(zookeeper, {f"{made.base}{FREEZE}": b""}, may_read=True)
        await made.until(FREEZE, lambda found: found is not None, "the freeze is Drover's document")
        await made.remove(FREEZE)
        await until(lambda: made.world.state.freeze is None)
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await write_alone(zookeeper, {f"{made.base}{CANCEL}": b""}, may_read=True)
        await made.until_idle()
    assert made.world.replicas(ORDERS[0]) == (1, 2, 3)


async def test_nodes_below_a_request_go_with_it_and_those_below_a_document_are_undone(store: Store, root: str) -> None:
    """KIP-46 has chunks below the plan node; here nothing is read there, and nothing stays in the way (X3)."""
    made = await office(store, root)
    async with made.open():
        made.is_staffed = False
        request = f"{REQUESTS}/request_0000000001"
        for top, data in ((PLAN, b"junk"), (request, b'{"assignment":{}}')):
            await store.write([Create(f"{made.base}{top}", data), Create(f"{made.base}{top}/seq_1", b"{}")])
        for top in (PLAN, request):
            await made.until_gone(top)
            assert (await made.document(f"{top}.error"))["code"] == "malformed"
        made.is_staffed = True
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await store.write([Create(f"{made.base}{PLAN}/seq_1", b"{}"), Create(f"{made.base}{PLAN}/seq_1/x", b"")])
        await made.let_copy()
        await made.until_idle()
    assert made.world.replicas(ORDERS[0]) == (4, 2, 3)


@pytest.mark.parametrize("root_inside", ["/admin", "/config/drover", "/brokers/topics"])
@pytest.mark.parametrize("chroot", ["", "/kafka"])
async def test_a_place_inside_a_real_clusters_own_nodes_is_refused(
    store: Store, root: str, chroot: str, root_inside: str
) -> None:
    place = f"{root}{chroot}"
    wanted = f"{place}/brokers/ids"
    above = [wanted[:at] for at, sign in enumerate(wanted) if sign == "/" and at]
    await store.write([Create(path, b"") for path in (*above, wanted)])
    with pytest.raises(ConfigurationError, match="real Kafka cluster"):
        await Tree(store, f"{place}{root_inside}", CLUSTER, "w").check()
    # Beside them it may stand, as it may beside /zookeeper.
    await Tree(store, f"{place}/drover", CLUSTER, "w").check()


REQUEST = b'{"version":1,"legacy":false,"assignment":{"orders":{"0":[4,2,3]}}}'


@pytest.mark.story
@pytest.mark.parametrize("somebody_is_there", [True, False])
async def test_a_request_with_a_node_below_it_that_drover_may_not_remove_blocks_nothing(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, somebody_is_there: bool
) -> None:
    """Its node stays, and is answered once; it used to stop the intake, and a projector that took over as well."""
    made = await office(real_store, root)
    first = f"{REQUESTS}/request_1"

    async def write() -> None:
        # Together: Drover removes a request without a node below it as soon as it has answered.
        nodes = {f"{made.base}{first}": b'{"x":1}', f"{made.base}{first}/notes": b""}
        await write_alone(zookeeper, nodes, may_read=True)

    if not somebody_is_there:
        async with made.open():
            made.is_staffed = False
            await made.write(first, REQUEST)
            await made.remove(first)
        await write()
        made.restart()
        made.is_staffed = True
        made.feed()
    async with made.open():
        if somebody_is_there:
            await write()
        await made.until(f"{first}.error", lambda error: error is not None, "an answer")
        await made.write(f"{REQUESTS}/request_2", REQUEST)
        await made.until_shown()
        assert await made.node(first) is not None
        assert len(made.told()) == 1


@pytest.mark.story
async def test_a_request_with_thousands_of_nodes_below_it_blocks_nothing(real_store: Store, root: str) -> None:
    """Removing them all takes more than one transaction may have."""
    made = await office(real_store, root)
    first = f"{REQUESTS}/request_1"
    async with made.open():
        await real_store.write([Create(f"{made.base}{REQUESTS}/notes", b"")])
        top = [Create(f"{made.base}{first}", b'{"x":1}')]
        await real_store.write([*top, *(Create(f"{made.base}{first}/{number:0200}", b"") for number in range(2500))])
        await real_store.write([Create(f"{made.base}{first}/{number:0200}", b"") for number in range(2500, 5000)])
        await made.write(f"{REQUESTS}/request_2", REQUEST)
        await made.until_shown()
        await made.until_gone(first)


@pytest.mark.story
async def test_a_node_among_drovers_own_that_it_may_not_read_is_removed(
    zookeeper: LocalZooKeeper, real_store: Store, root: str
) -> None:
    """In a tree that anybody may write. It used to stop the view for good."""
    made = await office(real_store, root)
    path = "/brokers/topics/notes"
    async with made.open():
        await write_alone(zookeeper, {f"{made.base}{path}": b""}, may_read=False)
        await made.until_gone(path)
        await until(lambda: path in made.notes.drifted)
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
