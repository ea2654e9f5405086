"""The view in ZooKeeper of a real log, by the commands an operator types: a process of its own, and inside a worker."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.local import LocalCluster
from drover.projections.position import decode_position
from drover.projections.store import Create, Delete, Store
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions
from tests.integration.story import read_story
from tests.integration.support import LOOK_S, MANAGED, Installation, installation, wait_for

pytestmark = pytest.mark.cluster
REQUEST = "/admin/reassignment_requests/request_0000000001"
# The replicas before a step of a partition, and after it.
Step = tuple[tuple[int, ...], tuple[int, ...]]
KEYS = [TopicPartition("shown", number) for number in range(3)]


@pytest_asyncio.fixture(loop_scope="session")
async def zookeeper(local_cluster: LocalCluster) -> AsyncIterator[Store]:
    store = ZooKeeperStore(ZooKeeperOptions(local_cluster.zookeeper))
    yield store
    await store.close()


def let_project(made: Installation, cluster: LocalCluster, root: str, *lines: str) -> None:
    """Name the ZooKeeper in the settings."""
    settings = [f'hosts = "{cluster.zookeeper}"', f'root = "{root}"', "allow_open_zookeeper = true", *lines]
    made.config.write_text(made.config.read_text() + "[zookeeper]\n" + "\n".join(settings) + "\n")


async def write_void_records(made: Installation) -> None:
    """Write what a plain producer may write into the log: without the token it is void for whoever reads it."""
    async with AIOKafkaProducer(**made.connection.client_options, acks="all") as producer:
        for payload in (b"\x00\x01random", b"\xc1", b""):
            await producer.send_and_wait(made.names.events, payload, partition=shard_of(MANAGED, DEFAULT_SHARDS))


async def wait_until_shown(made: Installation) -> None:
    """Wait until the tree is there and has everything."""

    async def shown() -> bool:
        found = await made.drover("zookeeper", "verify", "-o", "json")
        return bool(found.output) and not found.document["differences"] and not found.document["behind"]

    await wait_for(shown, "the tree has everything", pause_s=LOOK_S)


async def test_a_plan_is_seen_in_zookeeper_from_its_beginning_to_its_end(
    local_cluster: LocalCluster, zookeeper: Store, tmp_path: Path
) -> None:
    async with installation(local_cluster, tmp_path, "projected", max_moves_per_broker=500) as made:
        refused = await made.drover("zookeeper", "run")
        assert refused.code == 2
        assert "zookeeper.hosts" in refused.errors
        root = "/projected"
        let_project(made, local_cluster, root, "intake = false")
        await made.create_topic("shown", {key.partition: [1, 2] for key in KEYS})
        await made.start_worker("solo")
        await made.start_projector("projector")
        await made.wait_until_owned("solo")

        async def stands(path: str) -> bool:
            return path in await zookeeper.read([path])

        await a_stepped_plan_shows_its_current_batch(made, zookeeper, f"{root}/{MANAGED}")
        await write_void_records(made)
        assert (await made.drover("freeze", "--reason", "hold it")).code == 0
        base = f"{root}/{MANAGED}"
        await wait_for(lambda: stands(f"{base}/admin/reassign_cancel"), "the freeze node")
        await zookeeper.write([Create(f"{base}{REQUEST}", b"not for a projector without intake")])
        assert (await made.alter("show", {key: [3, 2] for key in KEYS})).code == 0
        plan = f"{base}/admin/reassign_partitions"
        await wait_for(lambda: stands(plan), "the plan")
        entries = json.loads((await zookeeper.read([plan]))[plan].data)["partitions"]
        assert entries[0] == {"topic": "shown", "partition": 0, "replicas": [3, 2], "original_replicas": [1, 2]}
        assert (await made.drover("cancel", "--rollback", "--plan", "show", "--reason", "not today")).code == 0

        async def is_gone() -> bool:
            return not await stands(plan)

        await wait_for(is_gone, "the plan to be gone")
        await wait_until_shown(made)
        assert made.processes["projector"].returncode is None
        assert await stands(f"{base}{REQUEST}"), "nobody was to read it"
        await judged_by_hand(made, zookeeper, base)
        await told_by_status(made)
        answer = f"{base}{REQUEST}.error"
        await wait_for(lambda: stands(answer), "the worker's intake to answer")
        assert json.loads((await zookeeper.read([answer]))[answer].data)["code"] == "malformed"
        assert not await stands(f"{base}{REQUEST}")
        assert await made.processes["beside"].stop() == 0


async def a_stepped_plan_shows_its_current_batch(made: Installation, zookeeper: Store, base: str) -> None:
    """Read KIP-435's current batch while a plan runs by swaps: always one step of the log, and no more at the end."""
    await made.create_topic("stepped", {0: [1, 2]}, kilobytes=1024)
    key, path = TopicPartition("stepped", 0), f"{base}/drover/current_batch/stepped"
    sent = await made.alter("stepped", {key: [3, 4]}, "--stepping", "swap", "--throttle", "200kB/s")
    assert sent.code == 0, sent.errors
    seen: list[Step] = []

    async def ended() -> bool:
        node = (await zookeeper.read([path])).get(path)
        if node is not None:
            document = json.loads(node.data)
            (running,) = document["partitions"]
            assert (document["name"], running["partition_index"]) == ("stepped", 0)
            step = (tuple(running["current_replicas"]), tuple(running["target_replicas"]))
            if step not in seen:
                seen.append(step)
        return node is None and (await made.plan("stepped")).completed == 1

    await wait_for(ended, "the plan to end and its batch to be gone")
    events = (await read_story(made.connection)).events["stepped", 0]
    steps = [
        (tuple(one["expected"]), tuple(one["replicas"]))
        for one in events
        if (one["type"], one.get("call")) == ("call-intended", "step")
    ]
    assert len(steps) > 2, "the plan was to take steps"
    assert seen == [step for step in steps if step in seen], "a batch that no step is, or not in the order of the steps"
    copied = [step for step in steps if set(step[1]) - set(step[0])]
    assert len(copied) == 2
    assert set(copied) <= set(seen), "a step that copies for seconds was not seen"


async def judged_by_hand(made: Installation, zookeeper: Store, base: str) -> None:
    """Verify names what was tampered with while nobody projects; rebuild mends it."""
    assert await made.processes["projector"].stop() == 0
    ghost = f"{base}/admin/failed_brokers/99"
    await zookeeper.write([Create(ghost, b"{}")])
    found = await made.drover("zookeeper", "verify")
    assert found.code == 1
    assert "/admin/failed_brokers/99 must not be there" in found.output
    rebuilt = await made.drover("zookeeper", "rebuild")
    assert rebuilt.code == 0, rebuilt.errors
    assert ghost not in await zookeeper.read([ghost])
    whole = await made.drover("zookeeper", "verify")
    assert (whole.code, "no difference" in whole.output) == (0, True), whole.output
    position = f"{base}/drover/position"
    node = (await zookeeper.read([position]))[position]
    assert decode_position(node.data) is not None
    await zookeeper.write([Delete(position, node.version)])
    lost = await made.drover("zookeeper", "verify")
    assert lost.code == 1
    assert "no tree" in lost.output


async def told_by_status(made: Installation) -> None:
    """A worker with `project = true` makes the tree again, reads requests, and says how far it is."""
    assert await made.processes["solo"].stop() == 0
    made.config.write_text(made.config.read_text().replace("intake = false", "project = true"))
    await made.start_worker("beside")
    await wait_until_shown(made)

    async def told() -> bool:
        projection = (await made.status())["clusters"][0]["projection"]
        return projection is not None and (projection["role"], projection["lag_events"]) == ("writing", 0)

    await wait_for(told, "status tells of the projection", pause_s=LOOK_S)
