"""Workers killed, paused, stopped and joined at random moments while commands arrive and shards are stolen."""

import asyncio
import signal
from pathlib import Path
from random import Random

import pytest

from drover.fold.log import ShardFold
from drover.local import LocalCluster
from tests.kill.harness import NO_COMMANDS, SESSION_TIMEOUT_S, SHARDS, Drill, drill, wait_for
from tests.kill.hostile import EVIL, harass
from tests.kill.verifier import ClusterView, Verdicts, verify

pytestmark = [pytest.mark.cluster, pytest.mark.story]

COMMANDS = 400
FEED_S = 32.0
# So many at once that a worker that is killed then is in the midst of them: they reach it a hundred at a time.
BURST = 2000
SERVING = "shards are owned"


async def _feed(field: Drill, random: Random) -> None:
    """One command after the other at an even pace; some in the wrong partition, some that are none."""
    for number in range(COMMANDS):
        await asyncio.sleep(FEED_S / COMMANDS)
        if number % 23 == 7:
            topic = random.choice(field.names.commands)
            await field.feeder.send_raw(topic, random.choice(NO_COMMANDS), random.randrange(6))
        partition = random.randrange(6) if number % 11 == 3 else None
        await field.feeder.send(field.feeder.command(), partition=partition)


async def _serves_again(field: Drill, name: str, before: int = 0) -> None:
    await wait_for(lambda: field.workers.said(name, SERVING) > before, f"{name} to serve again")


async def _torment(field: Drill, random: Random) -> None:
    """Every kind of bad moment, over about the time of the feed."""
    workers = field.workers
    await asyncio.sleep(random.uniform(0.5, 2.0))
    before = workers.said("a", SERVING)
    await workers.processes["a"].kill()
    await asyncio.sleep(random.uniform(0.0, 1.0))
    workers.start("a")
    await _serves_again(field, "a", before)
    workers.send("b", signal.SIGSTOP)
    await asyncio.sleep(SESSION_TIMEOUT_S + random.uniform(1.0, 3.0))
    workers.send("b", signal.SIGCONT)
    workers.start("c")
    await _serves_again(field, "c")
    await workers.ends_cleanly("b")
    await asyncio.gather(*(field.feeder.send(field.feeder.command()) for _ in range(BURST)))
    await workers.processes["c"].kill()
    before = workers.said("b", SERVING)
    workers.start("b")
    await _serves_again(field, "b", before)


async def _until_decided(field: Drill) -> Verdicts:
    for _ in range(40):
        verdicts = await verify(field)
        if not any("no cursor has passed it" in fault for fault in verdicts.faults):
            return verdicts
        await asyncio.sleep(0.5)
    return verdicts


async def _the_product_agrees(field: Drill, verdicts: Verdicts) -> None:
    """Drover's own fold of the same log comes to the same clusters as the verifier's."""
    stored = await field.read(field.names.events)
    folded: dict[str, ClusterView] = {}
    for (_, shard), records in stored.items():
        fold = ShardFold(shard, SHARDS)
        for record in records:
            fold.fold(record.offset, record.value)
        folded |= {
            name: ClusterView(state.freeze is not None, state.blacklist, dict(state.failed_brokers))
            for name, state in fold.state.clusters.items()
        }
    assert folded == dict(verdicts.views)


async def test_no_command_is_lost_or_decided_twice_however_workers_end(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    random = Random(20)
    async with drill(local_cluster.bootstrap, "chaos", tmp_path, seed=20) as field:
        for name in ("a", "b"):
            field.workers.start(name)
        await wait_for(lambda: field.workers.said("a", SERVING), "the first worker to serve")
        hostile = asyncio.create_task(harass(field.connection, field.producer, field.workers.clusters, seed=3))
        await asyncio.gather(_feed(field, random), _torment(field, random))
        hostile.cancel()
        verdicts = await _until_decided(field)
        assert verdicts.faults == []
        assert len(verdicts.decided) >= COMMANDS + BURST
        assert verdicts.fenced_batches > 0
        assert {"a", "b", "c", EVIL} <= verdicts.owners
        assert EVIL not in {outcome["id"] for outcome in verdicts.decided.values()}
        await _the_product_agrees(field, verdicts)
        print(
            f"decided {len(verdicts.decided)}, batches {verdicts.batches}, fenced {verdicts.fenced_batches}, "
            f"acquires {verdicts.acquires}, latency p50 {verdicts.latency_s(0.5):.3f} s, "
            f"p95 {verdicts.latency_s(0.95):.1f} s, longest {verdicts.latency_s(1):.1f} s"
        )
