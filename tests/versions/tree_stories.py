"""Drover's tree in ZooKeeper: in ZooKeeper mode that is the very ZooKeeper that holds Kafka's own."""

import asyncio

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from drover.events.partitions import TopicPartition
from tests.integration.support import MANAGED, Installation, wait_for
from tests.integration.test_projection import let_project, wait_until_shown
from tests.versions.asked import accepted, listed, reached

OWN_ROOT = "/drover"
# Where what is asked of Kafka is kept: moves and elections of old tools, deleted topics. `_below` reads all of it.
KAFKAS_ADMIN = "/admin"


def _below(client: KazooClient, path: str) -> dict[str, bytes]:
    """Read every node at and below a path."""
    try:
        data, _ = client.get(path)
        children = client.get_children(path)
    except NoNodeError:
        return {}
    found = {path: data}
    for child in children:
        found |= _below(client, f"{path}/{child}")
    return found


async def tree(made: Installation) -> None:
    """The tree shows a plan while it runs; of Kafka's own nodes Drover touches none."""
    await made.create_topic("drawn", {0: [1, 2, 3]}, kilobytes=4096)
    key = TopicPartition("drawn", 0)
    client = KazooClient(made.cluster.zookeeper)
    await asyncio.to_thread(client.start, 10)
    try:
        before = await asyncio.to_thread(_below, client, KAFKAS_ADMIN)
        let_project(made, made.cluster, OWN_ROOT)
        await made.start_projector("projector")
        await accepted(made, "drawn", {key: [4, 2, 3]}, "--throttle", "200kB")
        await listed(made, key)
        plan = f"{OWN_ROOT}/{MANAGED}/admin/reassign_partitions"

        async def shown() -> bool:
            return bool(await asyncio.to_thread(client.exists, plan))

        await wait_for(shown, "the plan to be in the tree")
        during = await asyncio.to_thread(_below, client, KAFKAS_ADMIN)
        await reached(made, key, [4, 2, 3])
        await wait_until_shown(made)
        after = await asyncio.to_thread(_below, client, KAFKAS_ADMIN)
        assert before == during == after, (before, during, after)
    finally:
        await asyncio.to_thread(client.stop)
        client.close()
        if (projector := made.processes.get("projector")) is not None:
            await projector.stop()
