"""300 partitions by swaps, and everything that goes wrong meanwhile: `python -m tests.integration.story_three_hundred`.

A cluster of its own. Two plans with budgets and a throttle; the owner is killed twice, a broker is killed and comes
back, limits change in the middle, and one of the plans is rolled back. Afterwards the cluster, the log, the throttles,
the nodes in ZooKeeper, Spark's tables and the command line must tell the same. It takes some minutes.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.local import LocalCluster, local_cluster
from drover.spark.files import JobFiles
from tests.integration.story import Story, read_story
from tests.integration.support import MANAGED, Installation, installation, wait_for
from tests.spark import live

TOPIC, STAYS, RETURNS = "big", "stays", "returns"
KILOBYTES = 512
BEFORE, AFTER, RESTARTED = (1, 2), (3, 4), 4
WHY = ("--reason", "the story of three hundred")
ENDS = {"reassignment-completed": AFTER, "reassignment-rolled-back": BEFORE}
PATIENCE_S = 900


def tell(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


async def done(made: Installation, *arguments: str) -> str:
    """Run a command that must succeed, and return what it printed."""
    finished = await made.drover(*arguments)
    assert finished.code == 0, f"{arguments}: {finished.output} {finished.errors}"
    return finished.output


async def ended(made: Installation, partitions: int, share: float) -> None:
    """Wait until so much of both plans has come to its end."""

    async def reached() -> bool:
        return len((await made.state()).reassignments) <= partitions * (1 - share)

    await wait_for(reached, f"{share:.0%} to have ended", timeout_s=PATIENCE_S, pause_s=0.5)


async def kill_owner(made: Installation, successor: str) -> None:
    """Kill whoever owns the cluster's shard, let another take over, and start one more."""
    owner = (await made.owners())[shard_of(MANAGED, DEFAULT_SHARDS)]
    tell(f"kill -9 {owner}")
    await made.processes[owner].kill()

    async def taken_over() -> bool:
        return (await made.owners())[shard_of(MANAGED, DEFAULT_SHARDS)] not in {owner, ""}

    await wait_for(taken_over, "another worker to take over", pause_s=0.5)
    await made.start_worker(successor)


async def trouble(made: Installation, cluster: LocalCluster, partitions: int) -> None:
    """Let the plans run, and everything go wrong that the story tells of."""
    await ended(made, partitions, 0.05)
    await kill_owner(made, "third")
    await ended(made, partitions, 0.15)
    tell("limits change")
    await done(made, "limits", "set", "max_moves_per_broker=12", "max_replica_copies_in_flight=20", *WHY)
    await ended(made, partitions, 0.25)
    tell(f"broker {RESTARTED} is killed, and comes back")
    await cluster.kill(RESTARTED)
    await asyncio.sleep(10)
    await cluster.start(RESTARTED)
    await ended(made, partitions, 0.35)
    tell(f"{RETURNS} is rolled back")
    await done(made, "cancel", "--rollback", "--plan", RETURNS, *WHY)
    await ended(made, partitions, 0.5)
    await kill_owner(made, "fourth")


async def agree(made: Installation, partitions: int, before: object) -> None:
    """Hold everything that tells of the plans against everything else."""
    story = await read_story(made.connection)
    assert story.faults == [], story.faults[:5]
    ends = terminal(story, partitions)
    seen = await made.driver.observe([TopicPartition(TOPIC, number) for number in range(partitions)])
    assert not seen.moves, f"Kafka still lists {len(seen.moves)}"
    for key, facts in seen.partitions.items():
        wanted = ENDS[ends[key.partition]]
        assert facts is not None, f"{key} is gone"
        assert facts.replicas == wanted, f"{key}: {facts.replicas}, the log says {ends[key.partition]}"
    counts = Counter((number < partitions // 2, kind) for number, kind in ends.items())
    tell(f"the ends: {dict(counts)}")
    for name, stays in ((STAYS, True), (RETURNS, False)):
        plan = await made.plan(name)
        told = (plan.completed, plan.rolled_back)
        wanted_counts = (counts[stays, "reassignment-completed"], counts[stays, "reassignment-rolled-back"])
        assert told == wanted_counts, f"{name}: {told} in the state, {wanted_counts} in the events"
    assert await made.throttles(TOPIC) == before, "the throttles are not as before"
    assert not (await made.status())["reassignments"]
    tell("cluster, log, throttles and command line agree")
    await done(made, "replay", "--verify")
    await done(made, "zookeeper", "verify")
    tell("the log replays, and the nodes in ZooKeeper are those of the log")


def terminal(story: Story, partitions: int) -> dict[int, str]:
    """Return how each partition has ended, by the last event that says so."""
    found: dict[int, str] = {}
    for (topic, number), events in story.events.items():
        if topic == TOPIC:
            found[number] = next(one["type"] for one in reversed(events) if one["type"] in ENDS)
    assert sorted(found) == list(range(partitions)), "not every partition has an end"
    return found


async def tables_agree(made: Installation, directory: Path) -> None:
    """Let the Spark job read everything, and hold its tables to a plain fold with its own decoder."""
    files = JobFiles(directory)
    await made.start("job", "spark", "run", "--dir", str(directory))
    await live.wait_until_equal(made, files.tables, PATIENCE_S)
    await made.processes["job"].stop()
    tell("Spark's tables are those of a plain fold")


async def play(partitions: int, seconds: int) -> None:
    """Tell the whole story once."""
    with tempfile.TemporaryDirectory(prefix="drover-story-") as folder:
        async with (
            local_cluster(Path(folder) / "cluster") as cluster,
            installation(cluster, Path(folder), "story", max_moves_per_broker=8) as made,
        ):
            settings = f'[zookeeper]\nhosts = "{cluster.zookeeper}"\nroot = "/story"\nallow_open_zookeeper = true\n'
            made.config.write_text(made.config.read_text() + settings + "intake = false\n")
            await made.create_topic(TOPIC, dict.fromkeys(range(partitions), BEFORE), kilobytes=KILOBYTES)
            before = await made.throttles(TOPIC)
            for name in ("first", "second"):
                await made.start_worker(name)
            await made.start_projector("projector")
            await made.wait_until_owned("first", "second")
            rate = f"{partitions * KILOBYTES // seconds}kB/s"
            options = ("--stepping", "swap", "--throttle", rate)
            for name, first in ((STAYS, 0), (RETURNS, partitions // 2)):
                keys = [TopicPartition(TOPIC, number) for number in range(first, first + partitions // 2)]
                assert (await made.alter(name, dict.fromkeys(keys, AFTER), *options)).code == 0
            tell(f"{partitions} partitions of {KILOBYTES} kB at {rate}")
            await trouble(made, cluster, partitions)
            await made.wait_until_settled(PATIENCE_S)
            await agree(made, partitions, before)
            await tables_agree(made, Path(folder) / "spark")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.story_three_hundred")
    parser.add_argument("--partitions", type=int, default=300)
    parser.add_argument(
        "--seconds", type=int, default=120, help="how long the copies of a plain run take at the throttle"
    )
    options = parser.parse_args()
    asyncio.run(play(options.partitions, options.seconds))
    print("everything agrees")


if __name__ == "__main__":
    main()
