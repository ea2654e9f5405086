"""The reader of requests is killed at each point, twice, on a real ZooKeeper: each request has its effect once."""

import asyncio
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from drover.local import LocalZooKeeper
from drover.projections.commands import FREEZE, PLAN
from drover.projections.ownership import REQUESTS
from drover.projections.store import Store
from tests.projections.office import ORDERS, Office, plan_of
from tests.projections.test_faults import REPOSITORY

pytestmark = pytest.mark.story

REQUEST = f"{REQUESTS}/request_0000000000"


class Kills:
    """Runs intakes beside an office that has none of its own at work."""

    def __init__(self, zookeeper: LocalZooKeeper, made: Office, directory: Path) -> None:
        self._hosts = zookeeper.hosts
        self._made = made
        self._log = directory / "log"
        self._sent = directory / "sent"
        self._sent.touch()

    async def run(self, point: str) -> None:
        """Let one look until it is killed there."""
        self._log.write_bytes(msgspec.msgpack.encode(self._made.world.log))
        arguments = [self._hosts, self._made.base, str(self._log), str(self._sent), point]
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.projections.intake_main", *arguments, cwd=REPOSITORY
        )
        async with asyncio.timeout(60):
            code = await program.wait()
        assert code == (0 if point == "none" else -signal.SIGKILL), f"at {point}"

    def sent(self) -> list[bytes]:
        """Take what was sent since the last time."""
        data, found = self._sent.read_bytes(), []
        self._sent.write_bytes(b"")
        while data:
            size = int.from_bytes(data[:4], "big")
            found.append(data[4 : 4 + size])
            data = data[4 + size :]
        return found


async def test_a_kill_between_seeing_and_sending_or_answering_neither_loses_nor_repeats_a_request(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, tmp_path: Path
) -> None:
    made = Office(real_store, root)
    await made.world.run(300)
    made.feed()
    async with made.open():
        pass
    await made.write(REQUEST, b'{"assignment":{"orders":{"0":[4,2,3],"1":[2,3,77]}}}')
    kills = Kills(zookeeper, made, tmp_path)
    for _ in range(2):
        await kills.run("seen")
        assert kills.sent() == []
    sent = []
    for _ in range(2):
        await kills.run("sent")
        sent += kills.sent()
    assert len(sent) == 2
    assert sent[0] == sent[1], "the same version of a node is the same command"
    for payload in sent:
        made.world.put_raw(0, payload)
    await made.world.run(300)
    assert [each.verdict for each in made.world.outcomes() if each.id.startswith("znode-")] == ["accepted", "duplicate"]
    for _ in range(2):
        await kills.run("before-answering")
        assert await made.node(REQUEST) is not None, "it is done only with its answer"
    await kills.run("after-answering")
    assert await made.node(REQUEST) is None
    error = await made.document(f"{REQUEST}.error")
    assert (error["code"], [each["partition"] for each in error["refusals"]]) == ("invalid-replica-assignment", [1])
    await kills.run("none")
    assert kills.sent() == []
    assert list(made.world.state.reassignments) == [ORDERS[0]]


@pytest.mark.parametrize("removes", [False, True])
async def test_killed_before_or_after_sending_the_old_plan_node_and_the_freeze_have_their_effect_once(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, tmp_path: Path, removes: bool
) -> None:
    made = Office(real_store, root)
    await made.world.run(300)
    made.feed()
    async with made.open():
        if removes:
            await made.write(FREEZE)
            await made.until(FREEZE, lambda found: found is not None, "it is frozen")
    if removes:
        await made.remove(FREEZE)
    else:
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
    kills = Kills(zookeeper, made, tmp_path)
    sent = []
    for point in ("seen", "seen", "sent", "sent"):
        await kills.run(point)
        sent += kills.sent()
    assert len(set(sent)) == 1
    assert len(sent) == 2
    for payload in sent:
        made.world.put_raw(1 if removes else 0, payload)
    await made.world.run(300)
    before = made.decided()
    made.restart()
    made.feed()
    async with made.open():
        if removes:
            await made.until_gone(FREEZE)
            assert made.world.state.freeze is None
        else:
            await made.until_shown()
            await made.let_copy()
            await made.until_idle()
            assert made.world.replicas(ORDERS[0]) == (4, 2, 3)
    assert made.decided() == before
    assert made.submitted[1 if removes else 0 :] == []
