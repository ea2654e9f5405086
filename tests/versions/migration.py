"""`python -m tests.versions.migration`: Kafka 3.9.2 is migrated to KRaft in the middle of a throttled plan.

While some brokers have KRaft and some do not, alters are refused with a word and the plan begins no step. What Kafka
was asked for before goes on, and the plan ends after the migration.
"""

import asyncio
import sys

from drover.events.partitions import TopicPartition
from tests.integration.support import Installation, own_installation, wait_for
from tests.versions.asked import accepted, alive, in_sync, reached, traits, unthrottled
from tests.versions.migrating import Migration, migration_of

KAFKA = "3.9.2"
BROKERS = (1, 2, 3, 4)
PARTITIONS = 24


async def migrate(made: Installation, migration: Migration) -> None:
    """Take each step of the migration, and look at what Drover does."""
    layout = {number: [1 + number % 4, 1 + (number + 1) % 4] for number in range(PARTITIONS)}
    targets = {
        TopicPartition("migrated", number): [replicas[0], 1 + (number + 2) % 4] for number, replicas in layout.items()
    }
    await made.create_topic("migrated", layout, kilobytes=1024)
    await made.create_topic("other", {0: [1, 2]})
    other = TopicPartition("other", 0)
    assert (await traits(made)).zookeeper_mode

    await migration.start_controller()
    for broker in BROKERS:
        await migration.prepare_broker(broker)
        await alive(made, *BROKERS)
    print("  every broker is ready, and the controller has the metadata", flush=True)
    await accepted(made, "other", {other: [2, 3]})
    await reached(made, other, [2, 3])
    print("  a move went through the new controller", flush=True)

    await accepted(made, "migrated", targets, "--throttle", "250kB")
    await migration.turn_broker(1)
    await wait_for(lambda: _migrates(made), "the migration to be noticed", pause_s=0.5)
    refused = await made.alter("refused", {other: [1, 2]})
    assert refused.code != 0
    told = refused.output + refused.errors
    assert "migrated from ZooKeeper to KRaft" in told, told
    print(f"  {told.strip().splitlines()[-1]}", flush=True)
    begun = (await made.plan("migrated")).completed
    for broker in BROKERS[1:]:
        await migration.turn_broker(broker)
        await alive(made, *BROKERS)
    await wait_for(lambda: _is_kraft(made), "the end of the migration to be noticed", pause_s=0.5)
    print(f"  {await traits(made)}; {begun} partitions were done at its begin", flush=True)

    await made.wait_until_settled(timeout_s=200)
    for key, target in targets.items():
        assert await made.replicas(key) == tuple(target), key
        await in_sync(made, key)
    await unthrottled(made, "migrated")
    await accepted(made, "again", {other: [1, 2]})
    await reached(made, other, [1, 2])
    replayed = await made.drover("replay", "--verify")
    assert replayed.code == 0, replayed.errors + replayed.output


async def _migrates(made: Installation) -> bool:
    return (await traits(made)).migrates


async def _is_kraft(made: Installation) -> bool:
    seen = await traits(made)
    return seen.is_known and not seen.zookeeper_mode


async def play() -> None:
    """Start a cluster in ZooKeeper mode, a worker on it, and migrate."""
    async with own_installation("migrate", kafka=KAFKA, zookeeper_mode=True, brokers=len(BROKERS)) as made:
        await migrate(made, await migration_of(made.cluster))


if __name__ == "__main__":
    asyncio.run(play())
    print("ok")
    sys.exit(0)
