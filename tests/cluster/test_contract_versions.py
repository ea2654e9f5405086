"""The contract of what differs between versions: what brokers say of theirs, and whether it is so."""

import pytest

from drover.events.partitions import TopicPartition
from drover.events.traits import Completion
from drover.facts import NONE, Move
from drover.traits import traits_of
from tests.cluster.support import ClusterUnderTest, eventually, facts, settled
from tests.cluster.test_contract import BROKERS, alter_one


async def test_every_live_broker_says_its_version_and_the_traits_of_the_cluster_follow(
    cluster: ClusterUnderTest,
) -> None:
    versions = await cluster.driver.broker_versions()
    assert tuple(sorted(versions)) == BROKERS
    assert traits_of(versions.values()) == cluster.traits


@pytest.mark.kills(3)
async def test_an_adding_move_waits_for_a_kept_replica_that_is_dead_or_ends_without_it(
    cluster: ClusterUnderTest,
) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2, 3)}, records=1), 0)
    await cluster.stop_broker(3)
    await eventually(cluster, lambda: facts(cluster, partition), lambda found: set(found.isr) == {1, 2})
    assert await alter_one(cluster, partition, 1, 4, 3) == NONE
    waits = cluster.traits.completion is Completion.TARGET
    if waits:
        seen = await eventually(cluster, lambda: facts(cluster, partition), lambda found: 4 in found.isr)
        assert seen.move == Move(replicas=(1, 4, 3, 2), adding=(4,), removing=(2,))
    else:
        await settled(cluster, partition, (1, 4, 3))
    await cluster.start_broker(3)
    await settled(cluster, partition, (1, 4, 3))
