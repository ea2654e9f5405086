"""The real ZooKeeper killed and paused, projectors killed, and two that fight: the log is the oracle."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from drover.local import LocalZooKeeper, wait_until
from drover.projections.feed import Feed
from drover.projections.store import Store
from drover.projections.tree import Tree
from drover.projections.writer import ClusterWriter, Role, WriterTimes
from tests.projections.logs import prefixes, valid_batches, walked_log
from tests.projections.notes import Notes
from tests.projections.observer import Observer, observing
from tests.projections.rig import position_of, zookeeper_store
from tests.projections.test_writer import at_the_end, fed, running
from tests.shard.world import CLUSTER

pytestmark = pytest.mark.story

REPOSITORY = Path(__file__).parents[2]
TIMES = WriterTimes(take_over_s=0.5, follow_s=0.05, verify_s=0.5, slice_s=0.01)
# Short, so that a request that a paused server holds is given up while the test runs.
PATIENCE = {"session_timeout_s": 4.0, "request_timeout_s": 1.5}


def writer_on(store: Store, root: str, name: str, notes: Notes) -> ClusterWriter:
    caught_up = asyncio.Event()
    caught_up.set()
    return ClusterWriter(Feed(CLUSTER), 0, Tree(store, root, CLUSTER, name), notes, caught_up, TIMES)


async def paced(writers: Sequence[ClusterWriter], log: Sequence[bytes], first: int, last: int) -> None:
    """Let the log grow in bursts, so that there are moments in which a bystander can read a whole tree."""
    for number in range(first, last):
        for writer in writers:
            fed(writer, log, number, number + 1)
        await asyncio.sleep(0.001 if number % 6 else 0.04)


@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_zookeeper_goes_in_the_midst_of_writing_and_comes_back(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, fault: str
) -> None:
    log, notes = await walked_log(3), Notes()
    wanted = prefixes(log)
    batches = len(valid_batches(log))
    store, again = zookeeper_store(zookeeper, **PATIENCE), zookeeper_store(zookeeper, **PATIENCE)
    first, second = writer_on(store, root, "first", notes), writer_on(again, root, "second", notes)
    async with observing(real_store, root, wanted) as observer, running(first, second):
        await wait_until(lambda: first.role is not Role.TAKING_OVER, what="it is there")
        await paced([first, second], log, 0, batches // 3)
        await wait_until(lambda: bool(observer.sights), what="the tree was seen whole")
        failures = len(notes.errors)
        feeding = asyncio.create_task(paced([first, second], log, batches // 3, 2 * batches // 3))
        if fault == "kill":
            await zookeeper.kill()
        else:
            await zookeeper.pause()
        await feeding
        await wait_until(lambda: any(writer.last_error is not None for writer in (first, second)), what="it is said")
        assert len(notes.errors) - failures < 60, "it spins"
        if fault == "kill":
            await zookeeper.start()
        else:
            await zookeeper.resume()
        await paced([first, second], log, 2 * batches // 3, batches)
        await at_the_end(real_store, root, wanted)
        await wait_until(lambda: observer.sights[-1:] == [max(wanted)], what="the end was seen")
    assert notes.drifted == []
    await store.close()
    await again.close()


async def test_two_projectors_fight_on_a_real_zookeeper(
    zookeeper: LocalZooKeeper, real_store: Store, root: str
) -> None:
    log, notes = await walked_log(8), Notes()
    wanted = prefixes(log)
    stores = [zookeeper_store(zookeeper) for _ in range(2)]
    # Without any patience: each takes over as soon as it has been beaten.
    writers = [writer_on(store, root, f"w{number}", notes) for number, store in enumerate(stores)]
    for writer in writers:
        writer._times = WriterTimes(take_over_s=0.0, follow_s=0.001, verify_s=30, slice_s=1)
    async with observing(real_store, root, wanted) as observer, running(*writers):
        await paced(writers, log, 0, len(valid_batches(log)))
        await at_the_end(real_store, root, wanted)
        await wait_until(lambda: observer.sights[-1:] == [max(wanted)], what="the end was seen")
    assert notes.drifted == []
    for store in stores:
        await store.close()


async def test_a_projector_is_killed_at_each_point_between_reading_and_writing(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, tmp_path: Path
) -> None:
    log = await walked_log(2)
    wanted = prefixes(log)
    observer = Observer(real_store, root, wanted)
    file = tmp_path / "log"
    file.write_bytes(msgspec.msgpack.encode(log))
    points = [
        ("before-write", 1), ("after-write", 1), ("sent", 4), ("after-read", 3), ("answered-or-not", 5),
        ("before-write", 6), ("before-read", 5), ("none", 1),
    ]  # fmt: skip
    for point, number in points:
        position = await position_of(real_store, root)
        done = 0 if position is None else sum(offset < position.offset for offset, _ in valid_batches(log))
        arguments = [zookeeper.hosts, root, str(file), str(done), point, str(number)]
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.projections.projector_main", *arguments, cwd=REPOSITORY
        )
        async with asyncio.timeout(60):
            code = await program.wait()
        assert code == (0 if point == "none" else -signal.SIGKILL), f"at {point} {number}"
        await observer.look()
    assert observer.sights[-1] == max(wanted)
    assert len(set(observer.sights)) > 4, "the runs made no progress"
    await at_the_end(real_store, root, wanted)
