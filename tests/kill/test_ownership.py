"""Ownership at its edges: a shard that nobody serves is taken up again, a clean stop leaves the state's hash."""

from pathlib import Path

import pytest

from drover.events.topics import shard_of
from drover.local import LocalCluster
from tests.kill import hostile
from tests.kill.harness import SESSION_TIMEOUT_S, SHARDS, Drill, drill, wait_for
from tests.kill.verifier import verify

pytestmark = [pytest.mark.cluster, pytest.mark.story]


async def _decide_one_per_shard(field: Drill, prefix: str) -> None:
    """Send a command to every shard and wait until all are decided."""
    for shard in range(SHARDS):
        cluster = next(name for name in field.workers.clusters if shard_of(name, SHARDS) == shard)
        await field.feeder.send(field.feeder.freeze(f"{prefix}{shard}", cluster))
    await field.until_decided(len(field.feeder.sent))


async def test_a_shard_that_is_assigned_but_unowned_is_taken_up_again(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    """A newer generation that never comes back to serve: the worker yields, waits two sessions, and joins again."""
    async with drill(local_cluster.bootstrap, "rejoin", tmp_path) as field:
        field.workers.start("a")
        await wait_for(lambda: field.workers.said("a", "shards are owned"), "the worker to serve")
        await _decide_one_per_shard(field, "before-")
        claim = await hostile.look(field.connection, 0)
        group = f"{field.names.prefix}-worker"
        theft = hostile.acquire(claim.epoch + 1, group, generation=1000, number=1)
        await field.producer.send_and_wait(field.names.events, theft, partition=0)
        await wait_for(lambda: field.workers.said("a", "yielded to a newer generation"), "the worker to yield")
        waited_s = await wait_for(
            lambda: field.workers.said("a", "joining the group again"), "the worker to join again", 30
        )
        assert waited_s > SESSION_TIMEOUT_S, "it gave the newer generation time"
        await _decide_one_per_shard(field, "after-")
        verdicts = await verify(field)
        assert verdicts.faults == []
        assert field.workers.said("a", "a shard is acquired again") == 0, "it never stole the shard back"


async def test_a_clean_stop_leaves_the_hash_of_every_owned_shard_and_replay_confirms_it(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    async with drill(local_cluster.bootstrap, "clean", tmp_path) as field:
        field.workers.start("a")
        await _decide_one_per_shard(field, "first-")
        await field.workers.ends_cleanly("a")
        verdicts = await verify(field)
        assert verdicts.faults == []
        assert dict(verdicts.state_hashes) == dict.fromkeys(range(SHARDS), 1)
        # The next worker folds the hashes: a wrong one would stop it.
        field.workers.start("b")
        await _decide_one_per_shard(field, "second-")
        assert (await verify(field)).faults == []
