"""Operators write the KIPs' nodes and get what the KIPs promise; on a real ZooKeeper and on the twin in memory."""

import asyncio
import time

import pytest
from msgspec.structs import replace

from drover.events.commands import Alter
from drover.projections.commands import BLACKLIST, CANCEL, FREEZE, PLAN, command_of, earlier_identity_of
from drover.projections.memory import MemoryStore
from drover.projections.ownership import REQUESTS
from drover.projections.position import POSITION_PATH
from drover.projections.store import Create, Store
from tests.projections.office import ORDERS, Office, plan_of
from tests.projections.rig import clear
from tests.shard.world import CLUSTER, alter


async def office(store: Store, root: str) -> Office:
    """An office whose tree is there."""
    made = Office(store, root)
    await made.world.run(300)
    made.feed()
    return made


async def test_a_plan_that_an_operator_writes_is_carried_out_and_its_entries_vanish(store: Store, root: str) -> None:
    made = await office(store, root)
    async with made.open():
        await made.write(PLAN, plan_of((0, [4, 2, 3]), (1, [2, 3, 4])))
        shown = await made.until_shown()
        assert [(entry["replicas"], entry["original_replicas"]) for entry in shown["partitions"]] == [
            ([4, 2, 3], [1, 2, 3]),
            ([2, 3, 4], [2, 3, 1]),
        ]
        await made.let_copy()
        await made.until_idle()
        assert made.world.replicas(ORDERS[0]) == (4, 2, 3)
        assert made.world.replicas(ORDERS[1]) == (2, 3, 4)
        assert await made.node(f"{PLAN}.error") is None
    assert [(each.verdict, each.by) for each in made.decided()] == [("accepted", "zookeeper")]
    assert made.notes.drifted == []
    assert made.notes.errors == []


async def test_a_cancel_node_rolls_back_what_is_pending_and_then_both_nodes_are_gone(store: Store, root: str) -> None:
    made = await office(store, root)
    async with made.open():
        await made.write(PLAN, plan_of((0, [4, 2, 3]), (1, [2, 3, 4])))
        await made.until_shown()
        await made.write(CANCEL, b"")
        await made.until_idle()
    assert [made.world.replicas(key) for key in ORDERS[:2]] == [(1, 2, 3), (2, 3, 1)]
    assert [each.type for each in made.decided()] == ["alter", "cancel"]


async def test_a_cancel_of_nothing_vanishes(store: Store, root: str) -> None:
    made = await office(store, root)
    async with made.open():
        await made.write(CANCEL, b"junk")
        await made.until_gone(CANCEL)


async def test_the_freeze_node_freezes_by_being_there_and_unfreezes_by_going(store: Store, root: str) -> None:
    made = await office(store, root)
    async with made.open():
        for _ in range(2):
            await made.write(FREEZE, b"")
            await made.until(FREEZE, lambda found: found is not None and found["by"] == "zookeeper", "it is frozen")
            # What the node says may be that of the last time: the projection was about to write it.
            await until(lambda: made.world.state.freeze is not None)
            await made.remove(FREEZE)
            await made.until_gone(FREEZE)
            await until(lambda: made.world.state.freeze is None)
            await made.until_gone(FREEZE)
    assert [each.type for each in made.decided()] == ["freeze", "unfreeze"] * 2


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the office works meanwhile
            await asyncio.sleep(0.01)


async def test_the_list_of_brokers_is_set_changed_and_cleared_by_its_node(store: Store, root: str) -> None:
    made = await office(store, root)
    async with made.open():
        await made.write(BLACKLIST, b'{"version":1,"config":{"preferred_leader_blacklist":"1,10,65"}}')
        await until(lambda: made.world.state.blacklist == (1, 10, 65))
        first = b'{"config":{"preferred_leader_blacklist":"1,10,65"},"version":1}'
        await made.until(BLACKLIST, lambda found: found is not None, "it stands")
        await until_data(made, BLACKLIST, first)
        await made.write(BLACKLIST, b'{"version":1, "config":{"preferred_leader_blacklist":"1,65"}}')
        await until(lambda: made.world.state.blacklist == (1, 65))
        await until_data(made, BLACKLIST, first.replace(b",10", b""))
        await made.remove(BLACKLIST)
        await until(lambda: made.world.state.blacklist == ())
        await made.until_gone(BLACKLIST)


async def test_the_list_in_zookeeper_moves_leaders_and_its_removal_restores_every_order(
    store: Store, root: str
) -> None:
    made = await office(store, root)
    before = [made.world.replicas(key) for key in ORDERS]

    def led() -> list[int | None]:
        found = [made.world.model.partition(key) for key in ORDERS]
        return [None if one is None else one.leader for one in found]

    async with made.open():
        await made.write(BLACKLIST, b'{"version":1,"config":{"preferred_leader_blacklist":"1"}}')
        await until(lambda: led() == [2, 2, 3])
        assert [made.world.replicas(key) for key in ORDERS] == [(2, 3, 1), (2, 3, 1), (3, 2, 1)]
        await made.until("/drover/leaders", lambda found: found is not None and found["listed"], "it is told")
        await made.remove(BLACKLIST)
        await until(lambda: led() == [1, 2, 3] and not made.world.state.orders)
        assert [made.world.replicas(key) for key in ORDERS] == before
        await made.until_gone("/drover/leaders")
    assert [each.type for each in made.decided()] == ["blacklist", "blacklist"]


async def until_data(made: Office, path: str, data: bytes) -> None:
    """Wait until these very bytes stand there: the same JSON may still be the operator's own."""
    deadline = time.monotonic() + 30
    while (node := await made.node(path)) is None or node.data != data:
        assert time.monotonic() < deadline, f"{path} is {node}"
        await asyncio.sleep(0.02)


async def test_requests_are_taken_in_their_order_and_one_that_is_refused_blocks_none(store: Store, root: str) -> None:
    made = await office(store, root)
    made.is_staffed = False
    names = [f"{REQUESTS}/request_{number:010d}" for number in (8, 9, 10, 11)]
    async with made.open():
        await made.write(names[0], b'{"version":1,"assignment":{"orders":{"0":[4,2,3]}}}')
        await made.write(names[1], b'"orders": {"0":[1,2,3]}')
        await made.write(names[2], b'{"orders":{"0":[4,2,1],"1":[2,3,77]}}')
        await made.write(names[3], b'{"orders":{"2":[4,1,2]},"legacy":true}')
        made.is_staffed = True
        for name in names:
            await made.until_gone(name)
        errors = [await made.document(f"{name}.error") for name in names]
    assert [error and error["code"] for error in errors] == [
        None, "malformed", "invalid-replica-assignment", "reassignment-in-progress",
    ]  # fmt: skip
    assert [refusal["partition"] for refusal in errors[2]["refusals"]] == [1]
    assert [each.type for each in made.decided()] == ["alter"] * 3
    assert list(made.world.state.reassignments) == [ORDERS[0]]


BAD = {
    b"": "malformed",
    b"\xff\xfe": "malformed",
    b"[]": "malformed",
    b"[" * 100_000: "malformed",
    b'{"version":1,"partitions":[]}': "malformed",
    b'{"version":2,"partitions":[{"topic":"orders","partition":0,"replicas":[4]}]}': "malformed",
    b'{"note":"x","partitions":[{"topic":"orders","partition":0,"replicas":[4]}]}': "malformed",
    b'{"version":1,"partitions":[{"topic":"orders","partition":"0","replicas":[4]}]}': "malformed",
    b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":null}]}': "malformed",
    plan_of((0, [4, 2, 3]), (0, [4, 2, 1])): "malformed",
    plan_of((0, [])): "invalid-replica-assignment",
    plan_of((0, [1, 2, 77])): "invalid-replica-assignment",
    plan_of((0, [1, 1, 2])): "invalid-replica-assignment",
    plan_of((9, [1, 2, 3])): "unknown-topic-or-partition",
    b'{"version":1,"partitions":[]}' + b" " * 600_000: "too-large",
    plan_of(*((number, [4]) for number in range(5001))): "too-large",
}


async def test_what_cannot_be_done_is_answered_beside_the_node_and_blocks_nothing(store: Store, root: str) -> None:
    made = await office(store, root)
    async with made.open():
        for data, code in BAD.items():
            await made.write(PLAN, data)
            written = await made.node(PLAN)
            assert written is not None
            found = await made.until(
                f"{PLAN}.error",
                lambda error, zxid=written.mzxid: error is not None and error["mzxid"] == zxid,  # type: ignore[misc]
                f"an answer to {data[:90]!r}",
            )
            assert (found["code"], found["czxid"]) == (code, written.czxid), (data[:90], found)
            await made.until_gone(PLAN)
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        # What never became a command is in the log all the same.
        never = [code for code in BAD.values() if code in {"malformed", "too-large"}]
        assert [each.refusals[0].code for each in made.told()] == never
        assert await made.node(f"{PLAN}.error") is None, "the answer to another plan still stands there"


async def test_a_plan_written_over_one_that_runs_is_refused_and_the_running_one_shown_again(
    store: Store, root: str
) -> None:
    made = await office(store, root)
    async with made.open():
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        shown = await made.until_shown()
        await made.write(PLAN, plan_of((1, [4, 3, 1])))
        error = await made.until(f"{PLAN}.error", lambda found: found is not None, "an answer")
        assert error["code"] == "reassignment-in-progress"
        assert await made.until_shown() == shown
        await until(lambda: bool(made.told()))
    assert len(made.decided()) == 1
    (told,) = made.told()
    assert (told.verdict, told.by, told.refusals[0].code) == ("refused", "zookeeper", "reassignment-in-progress")
    assert told.refusals[0].detail.startswith(PLAN)


async def test_a_plan_written_while_another_one_is_being_accepted_is_refused_by_the_log(
    store: Store, root: str
) -> None:
    made = await office(store, root)
    async with made.open():
        made.is_staffed = False
        # By the tree nothing is under way, by the log's order something is (R455-12, X5).
        made.world.put(alter({ORDERS[1]: [4, 3, 1]}))
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await until(lambda: bool(made.submitted))
        made.is_staffed = True
        error = await made.until(f"{PLAN}.error", lambda found: found is not None, "an answer")
        assert error["code"] == "reassignment-in-progress"
        shown = await made.until_shown()
    assert [entry["partition"] for entry in shown["partitions"]] == [1]


@pytest.mark.parametrize("path", [PLAN, CANCEL, BLACKLIST])
async def test_drift_repair_never_undoes_a_write_before_it_was_seen(store: Store, root: str, path: str) -> None:
    made = await office(store, root)
    async with made.open():
        await made.write(BLACKLIST, b'{"config":{"preferred_leader_blacklist":"3"}}')
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
        await until_data(made, BLACKLIST, b'{"config":{"preferred_leader_blacklist":"3"},"version":1}')
    before = len(made.decided())
    # Nobody is there; what the next one does first is to mend the tree.
    await made.write(path, b'{"config":{"preferred_leader_blacklist":"2"}}')
    made.restart()
    made.feed()
    async with made.open():
        if path == PLAN:
            await made.until(f"{PLAN}.error", lambda error: error is not None, "an answer")
        else:
            await until(lambda: len(made.decided()) > before)
        await until(lambda: made.world.state.blacklist == ((2,) if path == BLACKLIST else (3,)))
        if path == CANCEL:
            await made.until_idle()


async def test_a_tree_that_is_removed_as_a_whole_asks_for_nothing(store: Store, root: str) -> None:
    made = await office(store, root)
    async with made.open():
        await made.write(FREEZE, b"")
        await made.until(FREEZE, lambda found: found is not None, "it is frozen")
        await made.remove(FREEZE)
        await clear(store, f"{made.base}/admin")
        await clear(store, f"{made.base}/drover")
        await made.until(POSITION_PATH, lambda found: found is not None, "the tree is there again")
        assert made.notes.deleted == [made.base]
        # An intake that looks while only the node is gone is asked to unfreeze.
        await made.until(FREEZE, lambda found: (found is None) is (len(made.decided()) > 1), "what was decided")
    assert [each.type for each in made.decided()] in (["freeze"], ["freeze", "unfreeze"])


async def test_after_a_time_without_anybody_the_log_comes_first_then_requests_then_the_old_node(
    store: Store, root: str
) -> None:
    """R236-24: reassignments in flight, requests in their order, the old node, which is taken only by an idle one."""
    made = await office(store, root)
    async with made.open():
        made.world.put(alter({ORDERS[0]: [4, 2, 3]}))
        await made.until_shown()
        made.is_staffed = False
    await made.write(f"{REQUESTS}/request_0000000012", b'{"assignment":{"orders":{"1":[2,3,4]}}}')
    await made.write(f"{REQUESTS}/request_0000000002", b'{"assignment":{"orders":{"1":[4,3,1]}}}')
    await made.write(PLAN, plan_of((2, [3, 1, 4])))
    made.restart()
    made.is_staffed = True
    made.feed()
    async with made.open():
        error = await made.until(f"{PLAN}.error", lambda found: found is not None, "an answer")
        for number in (2, 12):
            await made.until_gone(f"{REQUESTS}/request_{number:010d}")
        await until(lambda: len(made.world.state.reassignments) == 2)
    assert error["code"] == "reassignment-in-progress"
    assert [command.partitions[0].replicas for command in made.submitted if isinstance(command, Alter)] == [
        (4, 3, 1),
        (2, 3, 4),
    ]
    state = made.world.state.reassignments
    assert state[ORDERS[0]].target == (4, 2, 3), "what was in flight is as it was"


async def test_of_the_old_node_and_the_api_the_later_one_in_the_log_wins_also_after_a_failover(
    store: Store, root: str
) -> None:
    """TV-215, R455-11 as X5 resolves it: after a failover the page lets the old node win; here the log's order does."""
    made = await office(store, root)
    async with made.open():
        await made.write(PLAN, plan_of((0, [4, 2, 3]), (1, [4, 3, 1])))
        await made.until_shown()
        made.world.put(alter({ORDERS[0]: [1, 2, 4]}))
        await made.until(PLAN, lambda found: [1, 2, 4] in [each["replicas"] for each in found["partitions"]], "shown")
    before = made.decided()
    made.world.crash()
    made.restart()
    made.feed()
    async with made.open():
        await asyncio.sleep(0)
        await made.let_copy()
        await made.until_idle()
    assert made.world.replicas(ORDERS[0]) == (1, 2, 4)
    assert made.world.replicas(ORDERS[1]) == (4, 3, 1)
    assert made.decided() == before, "the old node was taken once more"
    assert CLUSTER == "local"


async def test_of_the_answers_to_requests_those_with_the_highest_numbers_are_kept(root: str) -> None:
    store = MemoryStore()
    made = await office(store, root)
    async with made.open():
        above = f"{made.base}{REQUESTS}"
        await store.write([Create(f"{above}/request_{number}.error", b"{}") for number in range(1, 151)])
        await until(lambda: sum(path.endswith(".error") for path in store.nodes) == 100)
        left = (await store.children([above]))[above]
    assert left == {f"request_{number}.error" for number in range(51, 151)}


async def test_nodes_that_one_transaction_writes_are_commands_of_their_own(store: Store, root: str) -> None:
    """They have the same transaction id and time. All but the first were taken for done, and removed."""
    made = await office(store, root)
    async with made.open():
        requests = {
            f"{REQUESTS}/request_{number}": b'{"assignment":{"orders":{"%d":[4,2,3]}}}' % number for number in (0, 1)
        }
        await store.write([Create(f"{made.base}{path}", data) for path, data in requests.items()])
        for path in requests:
            await made.until_gone(path)
        nodes = {FREEZE: b"", BLACKLIST: b'{"version":1,"config":{"preferred_leader_blacklist":"3"}}'}
        await store.write([Create(f"{made.base}{path}", data) for path, data in nodes.items()])
        await until(lambda: made.world.state.freeze is not None and made.world.state.blacklist)
        await until(lambda: len(made.decided()) == 4)
    assert [each.verdict for each in made.decided()] == ["accepted"] * 4
    shown = made.world.state.reassignments
    assert set(shown) == {ORDERS[0], ORDERS[1]}


async def test_a_node_whose_outcome_is_under_an_earlier_id_is_not_carried_out_again(root: str) -> None:
    """Its projector was of an earlier Drover, and ended before it had removed the node."""
    made = await office(MemoryStore(), root)
    path = f"{REQUESTS}/request_1"
    async with made.open():
        made.is_staffed = False
    await made.write(path, b'{"assignment":{"orders":{"0":[4,2,3]}}}')
    node = await made.node(path)
    assert node is not None
    command = command_of(path, node, CLUSTER)
    assert isinstance(command, Alter)
    made.world.put(replace(command, id=earlier_identity_of(node)))
    await made.world.run(100)
    made.restart()
    made.feed()
    async with made.open():
        await made.until_gone(path)
    assert made.submitted == []
