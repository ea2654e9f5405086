"""Stories in which a broker, the controller or the owner dies."""

import asyncio
import time

from drover.cluster.port import AlterRequest
from drover.errors import ClusterError
from drover.events.partitions import TopicPartition
from drover.events.traits import Completion
from drover.local.layout import CONTROLLER_ID
from tests.integration.support import Installation, wait_for
from tests.reality.real import depose_controller
from tests.versions.asked import Unlike, accepted, alive, in_sync, listed, reached, traits, unthrottled, waits_for

# A throttle is averaged over eleven seconds: what is to be seen under way is larger than what they let through.
SLOW = ("--throttle", "200kB")
TRY_AGAIN_S = 0.02


async def destination_dies(made: Installation) -> None:
    """A move to a broker that dies names it, shows no negative rate, and ends when it is back."""
    await made.create_topic("dest", {0: [1, 2, 3]}, kilobytes=4096)
    key = TopicPartition("dest", 0)
    await accepted(made, "dest", {key: [1, 2, 4]}, *SLOW)
    await listed(made, key)
    await made.cluster.kill(4)
    try:
        await waits_for(made, key, "broker 4 is not alive")
        rates = [row["rate"] for row in (await made.status())["reassignments"]]
        assert all(rate is None or rate >= 0 for rate in rates), rates
    finally:
        await made.cluster.start(4)
        await alive(made, 1, 2, 3, 4)
    await reached(made, key, [1, 2, 4])
    await unthrottled(made, "dest")


async def kept_replica_dies(made: Installation) -> None:
    """A move whose kept replica dies ends without it, or names it and ends when it is back."""
    await made.create_topic("kept", {0: [1, 2, 3]}, kilobytes=1024)
    key = TopicPartition("kept", 0)
    await made.cluster.kill(3)
    try:
        await alive(made, 1, 2, 4)
        await accepted(made, "kept", {key: [1, 4, 3]})
        waits = (await traits(made)).completion is Completion.TARGET
        if waits:
            await waits_for(made, key, "Kafka waits for replicas 3")
        else:
            await reached(made, key, [1, 4, 3])
    finally:
        await made.cluster.start(3)
        await alive(made, 1, 2, 3, 4)
    await reached(made, key, [1, 4, 3])
    if waits:
        raise Unlike("ok: waits for it, and names it")


async def leaving_leader_dies(made: Installation) -> None:
    """The leader that a move takes away dies in the middle: another one leads, and the move ends.

    The throttle on the dead broker is put back when it returns.
    """
    await made.create_topic("leader", {0: [4, 1, 2]}, kilobytes=3072)
    key = TopicPartition("leader", 0)
    await accepted(made, "leader", {key: [3, 1, 2]}, *SLOW)
    await listed(made, key)
    await made.cluster.kill(4)
    try:
        await wait_for(lambda: _is_on(made, key, (3, 1, 2)), f"{key} to be on its target")
    finally:
        await made.cluster.start(4)
        await alive(made, 1, 2, 3, 4)
    await reached(made, key, [3, 1, 2])
    await unthrottled(made, "leader")
    await in_sync(made, key)


async def _is_on(made: Installation, key: TopicPartition, replicas: tuple[int, ...]) -> bool:
    seen = await made.facts(key)
    return seen.move is None and seen.replicas == replicas


async def takeover(made: Installation) -> None:
    """The owner is killed in the middle of a plan; the next one finishes it and sends nothing twice."""
    await made.create_topic("taken", {0: [1, 2, 3], 1: [2, 3, 4]}, kilobytes=4096)
    first, second = TopicPartition("taken", 0), TopicPartition("taken", 1)
    await made.start_worker("heir")
    await accepted(made, "taken", {first: [4, 2, 3], second: [1, 3, 4]}, *SLOW)
    await listed(made, first)
    await made.processes["solo"].kill()
    await made.wait_until_owned("heir")
    await reached(made, first, [4, 2, 3])
    await reached(made, second, [1, 3, 4])
    await unthrottled(made, "taken")


async def controller_changes(made: Installation) -> None:
    """Another controller takes over, which in ZooKeeper mode kills nobody; how long no alter is taken is measured."""
    await made.create_topic("control", {0: [1, 2, 3], 1: [1, 2, 3]}, kilobytes=4096)
    moving, probe = TopicPartition("control", 0), TopicPartition("control", 1)
    await accepted(made, "control", {moving: [4, 2, 3]}, *SLOW)
    await listed(made, moving)
    if made.cluster.spec.in_zookeeper_mode:
        await asyncio.to_thread(depose_controller, made.cluster.zookeeper)
    else:
        await made.cluster.kill(CONTROLLER_ID)
        await made.cluster.start(CONTROLLER_ID)
    took_s = await _until_taken(made, probe)
    cancelled = await made.drover("cancel", "--rollback", "--plan", "control", "--reason", "a story")
    assert cancelled.code == 0, cancelled.errors
    await reached(made, moving, [1, 2, 3])
    restarted = "" if made.cluster.spec.in_zookeeper_mode else " with its restart"
    raise Unlike(f"ok: {took_s:.1f} s{restarted}")


async def _until_taken(made: Installation, key: TopicPartition) -> float:
    """Send a reorder until it is taken, and return the seconds from now on."""
    began = time.monotonic()
    taken: list[bool] = []

    async def was_taken() -> bool:
        try:
            answer = (await made.driver.alter([AlterRequest(key, (2, 1, 3))]))[key]
        except ClusterError:
            return False
        taken[:] = [answer.accepted]
        return answer.accepted

    await wait_for(was_taken, "an alter to be taken", pause_s=TRY_AGAIN_S)
    return time.monotonic() - began
