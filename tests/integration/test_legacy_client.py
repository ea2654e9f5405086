"""Clients from ZooKeeper's days move replicas of a real Kafka, stop in the midst, and get the originals back."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from drover.events.partitions import TopicPartition
from drover.local import LocalCluster
from drover.projections.commands import CANCEL, FREEZE, PLAN
from drover.projections.ownership import REQUESTS
from drover.projections.store import Create, Store
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions
from tests.architecture.repository import ROOT
from tests.integration.story import read_story
from tests.integration.support import MANAGED, Installation, installation, wait_for
from tests.integration.test_projection import let_project
from tests.integration.test_unmanaged_moves import let_go, throttled_copy
from tests.integration.zookeeper_shell import zookeeper_shell

pytestmark = [pytest.mark.cluster, pytest.mark.story]
TOP = "/legacy"
BASE = f"{TOP}/{MANAGED}"
# More than one fetch brings: the first one is let through by any throttle.
STORED_KILOBYTES = 4096


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def legacy(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """A Drover whose worker decides, beside `drover zookeeper run`, which reads the nodes."""
    directory = tmp_path_factory.mktemp("legacy")
    async with installation(local_cluster, directory, "legacy", max_moves_per_broker=500) as made:
        let_project(made, local_cluster, TOP)
        await made.start_worker("solo")
        await made.start_projector("projector")
        await made.wait_until_owned("solo")
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def store(local_cluster: LocalCluster) -> AsyncIterator[Store]:
    made = ZooKeeperStore(ZooKeeperOptions(local_cluster.zookeeper))
    yield made
    await made.close()


async def data_of(store: Store, path: str) -> bytes | None:
    found = await store.read([f"{BASE}{path}"])
    return found[f"{BASE}{path}"].data if found else None


async def until_gone(store: Store, *paths: str) -> None:
    async def gone() -> bool:
        return not await store.read([f"{BASE}{path}" for path in paths])

    await wait_for(gone, f"{paths} to be gone")


def plan_of(targets: Mapping[TopicPartition, Sequence[int]]) -> str:
    """A plan as the stock tool of those days wrote it."""
    entries = [{"topic": key.topic, "partition": key.partition, "replicas": [*to]} for key, to in targets.items()]
    return json.dumps({"version": 1, "partitions": entries}, separators=(",", ":"))


async def until_copying(made: Installation, key: TopicPartition) -> None:
    async def copying() -> bool:
        move = (await made.facts(key)).move
        return move is not None and move.adding == (4,)

    await wait_for(copying, f"Kafka to move {key}")


@asynccontextmanager
async def legacy_client(hosts: str, plan: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the client of those days; its work may take a minute."""
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.legacy_client", hosts, plan),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            yield client
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()


async def test_a_client_from_zookeepers_days_submits_watches_cancels_and_gets_the_originals_back(
    legacy: Installation, store: Store
) -> None:
    """KIP-236's story: what has completed stays, what is pending goes back (R236-5, R236-6, R455-12)."""
    first, second, third = (TopicPartition("old", number) for number in range(3))
    await legacy.create_topic("old", {0: [1, 2], 1: [2, 3], 2: [3, 1]}, kilobytes=STORED_KILOBYTES)
    await wait_for(lambda: has_tree(store), "the tree to be there")
    for key in (first, second):
        await throttled_copy(legacy, key)
    hosts = f"{legacy.cluster.zookeeper}{BASE}"
    plan = plan_of({first: [4, 2], second: [4, 3], third: [2, 1]})
    sights: list[Any] = []
    async with legacy_client(hosts, plan) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        while not is_down_to(sights, 2):
            sights.append(json.loads(await client.stdout.readline())["plan"])
        await until_copying(legacy, first)
        await until_copying(legacy, second)
        client.stdin.write(b"enough\n")
        sights += [json.loads(line)["plan"] async for line in client.stdout]
        assert await client.wait() == 0
    await let_go(legacy)
    shown = [each for each in sights if each is not None and "original_replicas" in each["partitions"][0]]
    originals = [(entry["replicas"], entry["original_replicas"]) for entry in shown[0]["partitions"]]
    # Nothing holds the third one back: it may have ended before the first look.
    assert originals[:2] == [([4, 2], [1, 2]), ([4, 3], [2, 3])]
    assert originals[2:] in ([], [([2, 1], [3, 1])])
    assert sights[-1] is None
    assert [await legacy.replicas(key) for key in (first, second, third)] == [(1, 2), (2, 3), (2, 1)]
    assert [(await legacy.facts(key)).move for key in (first, second, third)] == [None] * 3
    assert await data_of(store, f"{PLAN}.error") is None
    assert await data_of(store, f"{CANCEL}.error") is None


async def has_tree(store: Store) -> bool:
    return await data_of(store, "/admin") is not None


def is_down_to(sights: Sequence[Any], count: int) -> bool:
    """Whether the plan that was seen last is Drover's and has so many entries left."""
    if not sights or sights[-1] is None:
        return False
    entries = sights[-1]["partitions"]
    return len(entries) == count and all("original_replicas" in entry for entry in entries)


async def test_zookeepers_own_shell_tells_the_same_story_and_is_answered(legacy: Installation, store: Store) -> None:
    key, other = TopicPartition("shell", 0), TopicPartition("shell", 1)
    await legacy.create_topic("shell", {0: [1, 2, 3], 1: [2, 3, 1]}, kilobytes=STORED_KILOBYTES)
    await wait_for(lambda: has_tree(store), "the tree to be there")
    await throttled_copy(legacy, key)
    async with zookeeper_shell(f"{legacy.cluster.zookeeper}{BASE}") as shell:
        # What Kafka 3.9 took, and never recovered from.
        await shell.ask(f"create {PLAN} {plan_of({key: []})}", f"Created {PLAN}")
        await until_gone(store, PLAN)
        answer = await shell.ask(f"get {PLAN}.error", '"version"')
        assert '"code":"invalid-replica-assignment"' in answer
        await shell.ask(f"create {PLAN} {plan_of({key: [4, 2, 3]})}", f"Created {PLAN}")
        await until_copying(legacy, key)
        await wait_for(lambda: has_entry(store, key), "the plan with its originals to be shown")
        await shell.ask(f"get -w {PLAN}", '"original_replicas":[1,2,3]')
        await shell.ask(f"create {PLAN} {plan_of({other: [4, 3, 1]})}", f"Node already exists: {PLAN}")
        began = len(shell.output)
        await shell.ask(f"create {CANCEL}", f"Created {CANCEL}")
        await shell.until(f"type:NodeDeleted path:{PLAN}", began)
        await until_gone(store, PLAN, CANCEL)
        assert (await legacy.facts(key)).move is None
        assert await legacy.replicas(key) == (1, 2, 3)
        await let_go(legacy)
        # The other ways in: the freeze node, a sequential request that waits for it to go, the list of brokers.
        await shell.ask(f"create {FREEZE}", f"Created {FREEZE}")
        request = f'{{"version":1,"assignment":{{"{other.topic}":{{"1":[2,4,1]}}}}}}'
        await shell.ask(f"create -s {REQUESTS}/request_ {request}", f"Created {REQUESTS}/request_")
        await wait_for(lambda: has_entry(store, other), "the request to be accepted")
        assert b'"by":"zookeeper"' in (await data_of(store, FREEZE) or b"")
        assert (await legacy.facts(other)).move is None
        await shell.type(f"delete {FREEZE}")
        await until_gone(store, PLAN, FREEZE)
        assert await legacy.replicas(other) == (2, 4, 1)


async def has_entry(store: Store, key: TopicPartition) -> bool:
    """Whether Drover's plan has the partition."""
    data = await data_of(store, PLAN)
    return data is not None and f'"partition":{key.partition},' in data.decode() and b"original_replicas" in data


async def test_a_projector_that_is_killed_beside_producing_neither_loses_nor_repeats_a_node(
    legacy: Installation, store: Store
) -> None:
    await legacy.create_topic("once", {0: [1, 2], 1: [2, 3]})
    await wait_for(lambda: has_tree(store), "the tree to be there")
    assert await legacy.processes["projector"].stop() == 0
    before = len(await accepted_nodes(legacy))
    request = f"{REQUESTS}/request_0000000900"
    await store.write([Create(f"{BASE}{request}", b'{"assignment":{"once":{"0":[3,2]}}}')])
    await store.write([Create(f"{BASE}{PLAN}", plan_of({TopicPartition("once", 1): [4, 3]}).encode())])
    for number, point in enumerate(("before", "after")):
        await legacy.start_projector(f"dying-{number}", program=("-m", "tests.integration.dying_projector", point))
        assert await legacy.processes[f"dying-{number}"].wait() == -signal.SIGKILL
    await legacy.start_projector("projector")
    await until_gone(store, PLAN, request)
    decided = (await accepted_nodes(legacy))[before:]
    assert [len(outcomes) for outcomes in decided] == [1, 1]
    assert await legacy.replicas(TopicPartition("once", 0)) == (3, 2)
    story = await read_story(legacy.connection)
    assert story.faults == []
    assert story.calls(("once", 0), "step") == 1


async def accepted_nodes(made: Installation) -> list[list[str]]:
    """Per command that came from a node: what was decided, without what came twice."""
    story = await read_story(made.connection)
    verdicts = {
        identity: [each["verdict"] for each in outcomes if each["verdict"] != "duplicate"]
        for identity, outcomes in story.outcomes.items()
        if identity.startswith("znode-")
    }
    return list(verdicts.values())
