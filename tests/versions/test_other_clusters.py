"""An older Kafka in both of its modes, and one with three controllers: what Drover's driver asks of any cluster."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from drover.cluster.port import AddThrottledReplicas, AlterRequest, SetBrokerRates
from drover.errors import ClusterError, OutcomeUnknownError
from drover.events.partitions import TopicPartition
from drover.events.traits import Completion, Traits
from drover.facts import ELECTION_NOT_NEEDED, NONE, BrokerRates, ThrottledReplicas
from drover.local import StartNodes, local_cluster, one_process_each
from drover.testing.shared_process import SharedProcess
from drover.traits import traits_of
from tests.cluster.support import RealCluster, facts, real_cluster, settled
from tests.cluster.test_contract import alter_one, throttled_topic, unthrottle
from tests.integration.support import wait_for
from tests.reality.real import RealCluster as RecordedCluster
from tests.reality.recorder import run_batch
from tests.reality.scripts import Batch, make_script

pytestmark = [pytest.mark.cluster, pytest.mark.story]

KIB = 1024
SEED, CALM_ROUNDS, CALM_SCRIPTS = 3, 8, 16


@asynccontextmanager
async def cluster_of(
    directory: Path, kafka: str, controllers: int, start_nodes: StartNodes
) -> AsyncIterator[RealCluster]:
    async with local_cluster(directory, kafka=kafka, controllers=controllers, start_nodes=start_nodes) as local:
        real = await real_cluster(local)
        try:
            yield real
        finally:
            await real.close()


@pytest.mark.parametrize("controllers", [pytest.param(1, id="KRaft"), pytest.param(0, id="ZooKeeper mode")])
async def test_kafka_3_9_says_what_it_is_and_moves_throttles_rolls_back_reorders_and_elects(
    tmp_path: Path, controllers: int
) -> None:
    start_nodes = SharedProcess((4,)) if controllers else one_process_each
    async with cluster_of(tmp_path, "3.9.2", controllers, start_nodes) as cluster:
        await _has_the_traits_that_were_seen(cluster)
        await _agrees_with_the_model(cluster)
        driver = cluster.driver
        topic = await cluster.create_topic({0: [1, 2, 3], 1: [2, 3, 4]}, records=64)
        moving, other = TopicPartition(topic, 0), TopicPartition(topic, 1)

        # A throttled move is seen as one, and a cancel ends it; the list that it leaves has the original members.
        rates = [SetBrokerRates(broker, BrokerRates(200 * KIB, 200 * KIB)) for broker in (1, 2, 3, 4)]
        lists = AddThrottledReplicas(topic, ThrottledReplicas(("0:1", "0:2", "0:3"), ("0:4",)))
        changed = await driver.change_throttles([*rates, lists])
        assert {result.code for result in changed.values()} == {NONE}
        assert (await driver.alter([AlterRequest(moving, (2, 3, 4))]))[moving].code == NONE
        seen = await facts(cluster, moving)
        assert seen.move is not None
        assert (seen.move.adding, seen.move.removing) == ((4,), (1,))
        assert (await driver.alter([AlterRequest(moving, None)]))[moving].code == NONE
        await _until_still(cluster, moving, {1, 2, 3})

        # The order comes back by a reorder, and the first replica leads after an election.
        assert (await driver.alter([AlterRequest(moving, (3, 1, 2))]))[moving].code == NONE
        assert set((await settled(cluster, moving, (3, 1, 2))).isr) == {1, 2, 3}
        await _elect(cluster, moving)
        async with asyncio.timeout(60):
            while (await facts(cluster, moving)).leader != 3:
                await cluster.pass_time()

        # A partition grows and shrinks, and each one of a call has its own answer.
        answers = await driver.alter([AlterRequest(other, (2, 3, 4, 1)), AlterRequest(moving, None)])
        assert {key: result.accepted for key, result in answers.items()} == {other: True, moving: False}
        await settled(cluster, other, (2, 3, 4, 1))
        await driver.alter([AlterRequest(other, (4, 1))])
        await settled(cluster, other, (4, 1))
        assert not (await driver.list_moves()).moves
        assert (await driver.broker_rates([1]))[1] == BrokerRates(200 * KIB, 200 * KIB)
        if controllers:
            await _has_a_broker_of_a_newer_version(cluster)


async def _elect(cluster: RealCluster, key: TopicPartition) -> None:
    """Ask for an election; where the answer gets lost on a busy machine, ask again."""
    async with asyncio.timeout(90):
        while True:
            try:
                elected = await cluster.driver.elect_leaders([key])
            except OutcomeUnknownError:
                continue
            assert elected[key].code in {NONE, ELECTION_NOT_NEEDED}, elected
            return


async def _has_the_traits_that_were_seen(cluster: RealCluster) -> None:
    """What its brokers say leads to its traits, and a re-target to the original set ends, as they have it."""
    assert traits_of((await cluster.driver.broker_versions()).values()) == cluster.traits
    assert cluster.traits.completion is Completion.TARGET
    key = TopicPartition(await throttled_topic(cluster, {0: (3, 1, 2)}), 0)
    assert await alter_one(cluster, key, 4, 1, 2) == NONE
    assert await alter_one(cluster, key, 1, 2, 3) == NONE
    await settled(cluster, key, (1, 2, 3))
    await unthrottle(cluster)


async def _has_a_broker_of_a_newer_version(cluster: RealCluster) -> None:
    """One broker comes back as another release, as in a rolling upgrade: then only what both do is relied on."""
    await cluster.local.stop(4)
    arguments = ("local", "start", "4", "--kafka", "4.3.1", "--dir", str(cluster.local.directory))
    command = await asyncio.create_subprocess_exec(sys.executable, "-m", "drover", *arguments)
    assert await command.wait() == 0
    versions = await cluster.driver.broker_versions()
    assert versions[4] != versions[1] == versions[2] == versions[3]
    traits = traits_of(versions.values())
    assert traits is not None
    assert (traits.completion, traits.is_known) == (Traits(kafka="").completion, False)


async def _agrees_with_the_model(cluster: RealCluster) -> None:
    """Play a few scripts of the recorder in which no broker dies; `tests/versions/recorder.py` plays others."""
    calm = (None,) * CALM_ROUNDS
    scripts = tuple(make_script(SEED, number, calm, cluster.traits) for number in range(CALM_SCRIPTS))
    async with RecordedCluster(cluster.local) as recorded:
        assert await run_batch(recorded, Batch(SEED, calm, scripts, cluster.traits)) == []


async def test_each_of_three_controllers_may_die_and_the_next_alter_is_accepted(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, "4.3.1", 3, SharedProcess((100, 101, 102))) as cluster:
        topic = await cluster.create_topic({0: [1, 2, 3]})
        key, replicas = TopicPartition(topic, 0), (1, 2, 3)
        for controller in cluster.local.spec.controllers:
            await cluster.local.kill(controller)
            replicas = (*replicas[1:], replicas[0])
            await _accepted(cluster, AlterRequest(key, replicas))
            await settled(cluster, key, replicas)
            await cluster.local.start(controller)


async def _accepted(cluster: RealCluster, request: AlterRequest) -> None:
    """Try as the core does, which looks and tries again, until the call is accepted."""

    async def is_accepted() -> bool:
        try:
            return (await cluster.driver.alter([request]))[request.partition].accepted
        except ClusterError:
            return False

    await wait_for(is_accepted, "the alter to be accepted", pause_s=0.1)


async def _until_still(cluster: RealCluster, key: TopicPartition, members: set[int]) -> None:
    async with asyncio.timeout(60):
        while (seen := await facts(cluster, key)).move is not None or set(seen.replicas) != members:
            await cluster.pass_time()
