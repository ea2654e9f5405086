"""`python -m tests.versions.upgrade --kafka V --to W`: a rolling upgrade while a throttled plan is under way.

Each broker, then the controller, is stopped as its operator would and started with the new version; then the level of
`metadata.version` is raised. Drover reads with care while brokers differ, and until then where the releases behave
differently. It says so in the log, and the plan ends.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time

from drover.client.history import open_log, read_log
from drover.events.clusters import ClusterTraitsSeen
from drover.events.partitions import TopicPartition
from drover.events.traits import Traits
from drover.jars import KAFKA_VERSION, class_path, ensure, find_java, kafka_set
from drover.journal.reader import LogReader
from drover.local.layout import CONTROLLER_ID
from drover.traits import known_traits, version_of
from tests.integration.support import Installation, own_installation, wait_for
from tests.versions.asked import accepted, alive, in_sync, traits, unthrottled

FEATURES = "org.apache.kafka.tools.FeatureCommand"
BROKERS = (1, 2, 3, 4)
PARTITIONS = 24
RATE = "250kB"


async def upgrade(made: Installation, to: str) -> tuple[Traits, ...]:
    """Upgrade every node in the middle of a plan; returns the traits that the log tells, in order."""
    layout = {number: [1 + number % 4, 1 + (number + 1) % 4, 1 + (number + 2) % 4] for number in range(PARTITIONS)}
    targets = {
        TopicPartition("upgraded", number): [*replicas[:2], 1 + (number + 3) % 4] for number, replicas in layout.items()
    }
    await made.create_topic("upgraded", layout, kilobytes=1024)
    before = await traits(made)
    assert before.is_known
    await accepted(made, "upgraded", targets, "--throttle", RATE)
    for node in (*BROKERS, CONTROLLER_ID):
        began = time.monotonic()
        await made.cluster.stop(node)
        await made.cluster.start(node, kafka=to)
        await alive(made, *BROKERS)
        ended = (await made.plan("upgraded")).completed
        print(
            f"  node {node} runs {to} after {time.monotonic() - began:.1f} s, {ended} partitions are done", flush=True
        )

    async def one_release() -> bool:
        seen = await traits(made)
        return " and " not in seen.kafka and seen.kafka != before.kafka

    await wait_for(one_release, "the brokers to be alike", pause_s=0.5)
    await asyncio.to_thread(_raise_level, made.cluster.bootstrap, to)

    async def is_over() -> bool:
        seen = await traits(made)
        return seen.is_known and seen != before

    await wait_for(is_over, "the end of the upgrade to be noticed", pause_s=0.5)
    await made.wait_until_settled(timeout_s=200)
    for key, target in targets.items():
        assert await made.replicas(key) == tuple(target), key
        await in_sync(made, key)
    await unthrottled(made, "upgraded")
    plan = await made.plan("upgraded")
    assert plan.completed == PARTITIONS, plan
    replayed = await made.drover("replay", "--verify")
    assert replayed.code == 0, replayed.errors + replayed.output
    return await _traits_told(made)


def _raise_level(bootstrap: str, kafka: str) -> None:
    """Raise the level to that of a version; the tool is of the default version, the only one whose tools are locked."""
    level = version_of(known_traits(kafka.rpartition(".")[0])).supported_metadata_version
    arguments = ("--bootstrap-server", bootstrap, "upgrade", "--feature", f"metadata.version={level}")
    environment = {**os.environ, "CLASSPATH": class_path(ensure(kafka_set(KAFKA_VERSION)))}
    subprocess.run((str(find_java()), FEATURES, *arguments), env=environment, check=True)


async def _traits_told(made: Installation) -> tuple[Traits, ...]:
    """Read the log and return every change of the traits that it tells."""
    found: list[Traits] = []
    async with LogReader(made.connection) as reader:
        log = await open_log(reader, made.connection)
        async for records in read_log(reader, made.connection, log):
            events = (event for record in records for event in record.batch.events)
            found += [event.traits for event in events if isinstance(event, ClusterTraitsSeen)]
    return tuple(found)


async def play(kafka: str, to: str) -> None:
    """Start a cluster of one version, a worker on it, and upgrade."""
    async with own_installation("upgrade", kafka=kafka, brokers=len(BROKERS)) as made:
        told = await upgrade(made, to)
    for one in told:
        print(f"  {one}")
    assert any(not one.is_known and not one.migrates for one in told), "nothing told that the brokers differed"


def main() -> int:
    """Play; a promise that is broken is an AssertionError."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.upgrade", description="Upgrade under a plan.")
    parser.add_argument("--kafka", default="4.2.2", help="the version at first (4.2.2)")
    parser.add_argument("--to", default="4.3.1", help="the version at the end (4.3.1)")
    options = parser.parse_args()
    print(f"Kafka {options.kafka} to {options.to}", flush=True)
    asyncio.run(play(options.kafka, options.to))
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
