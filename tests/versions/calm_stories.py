"""Stories in which nobody dies and nobody interferes."""

from drover.events.partitions import TopicPartition
from tests.integration.support import Installation, wait_for
from tests.versions.asked import accepted, in_sync, listed, reached, unthrottled

SLOW = ("--throttle", "200kB")
# In ZooKeeper mode a topic of more is not made in the time that a request has.
MANY, MANY_IN_ZOOKEEPER_MODE = 1500, 600


async def alter(made: Installation) -> None:
    """Two partitions go where they were asked to go."""
    await made.create_topic("alter", {0: [1, 2, 3], 1: [2, 3, 4]}, kilobytes=256)
    first, second = TopicPartition("alter", 0), TopicPartition("alter", 1)
    await accepted(made, "alter", {first: [4, 2, 1], second: [1, 4, 3]})
    await reached(made, first, [4, 2, 1])
    await reached(made, second, [1, 4, 3])


async def throttled_plan(made: Installation) -> None:
    """The throttle is in force before anything is copied, and everything is as before afterwards."""
    layout = {number: [1 + number % 4, 1 + (number + 1) % 4] for number in range(20)}
    await made.create_topic("throttled", layout, kilobytes=64)
    targets = {TopicPartition("throttled", number): [replicas[0], 1 + (number + 2) % 4]
               for number, replicas in layout.items()}  # fmt: skip
    await accepted(made, "throttled", targets, "--throttle", "500kB")

    async def throttled() -> bool:
        rates, lists = await made.throttles("throttled")
        return bool(lists.leader) and any(rate.leader_bytes_per_second == 500_000 for rate in rates.values())

    await wait_for(throttled, "the throttle to be in force")
    await made.wait_until_settled()
    seen = await made.driver.observe(list(targets))
    for key, target in targets.items():
        facts = seen.partitions[key]
        assert facts is not None
        assert facts.replicas == tuple(target), key
    await unthrottled(made, "throttled")


async def rollback(made: Installation) -> None:
    """A rollback in the middle brings back the originals in their order, and every throttle."""
    await made.create_topic("back", {0: [3, 1, 2]}, kilobytes=4096)
    key = TopicPartition("back", 0)
    await accepted(made, "back", {key: [4, 2, 1]}, *SLOW)
    await listed(made, key)
    cancelled = await made.drover("cancel", "--rollback", "--plan", "back", "--reason", "a story")
    assert cancelled.code == 0, cancelled.errors
    await reached(made, key, [3, 1, 2])
    await unthrottled(made, "back")
    assert (await made.plan("back")).rolled_back == 1


async def stop(made: Installation) -> None:
    """A stop keeps what is in sync: 3 is in, 4 is being copied."""
    await made.create_topic("halt", {0: [1, 2]}, kilobytes=3072)
    key = TopicPartition("halt", 0)
    await accepted(made, "halt", {key: [3, 4]}, "--throttle", "500kB")

    async def copying() -> bool:
        move = (await made.facts(key)).move
        return move is not None and move.adding == (4,)

    await wait_for(copying, "broker 4 to be copied to")
    stopped = await made.drover("cancel", "--stop", "--plan", "halt", "--reason", "a story")
    assert stopped.code == 0, stopped.errors
    await reached(made, key, [1, 2, 3])
    await unthrottled(made, "halt")


async def grow(made: Installation) -> None:
    """More replicas, one after the other."""
    await made.create_topic("more", {0: [1, 2]}, kilobytes=64)
    key = TopicPartition("more", 0)
    await accepted(made, "more", {key: [1, 2, 3, 4]})
    await reached(made, key, [1, 2, 3, 4])
    await in_sync(made, key)


async def shrink(made: Installation) -> None:
    """Fewer replicas."""
    await made.create_topic("fewer", {0: [1, 2, 3]}, kilobytes=64)
    key = TopicPartition("fewer", 0)
    await accepted(made, "fewer", {key: [3, 1]})
    await reached(made, key, [3, 1])


async def order_only(made: Installation) -> None:
    """Another order copies nothing and ends at once."""
    await made.create_topic("order", {0: [1, 2, 3]}, kilobytes=64)
    key = TopicPartition("order", 0)
    await accepted(made, "order", {key: [3, 1, 2]})
    await reached(made, key, [3, 1, 2])
    assert set((await made.facts(key)).isr) == {1, 2, 3}


async def freeze(made: Installation) -> None:
    """What was sent while frozen starts as soon as that is over."""
    await made.create_topic("thaw", {0: [1, 2]})
    key = TopicPartition("thaw", 0)
    await made.drover("freeze", "--reason", "a story")
    await accepted(made, "thaw", {key: [3, 2]})

    async def withheld() -> bool:
        return "withheld" in (await made.drover("status")).output

    await wait_for(withheld, "the partition to be withheld", pause_s=0.5)
    assert await made.replicas(key) == (1, 2)
    await made.drover("unfreeze", "--reason", "a story")
    await reached(made, key, [3, 2])


async def many(made: Installation) -> None:
    """As many partitions as a slow controller cannot answer for in one call are all moved, and no call is in doubt."""
    many = MANY_IN_ZOOKEEPER_MODE if made.cluster.spec.in_zookeeper_mode else MANY
    layout = {number: [1 + number % 4, 1 + (number + 1) % 4] for number in range(many)}
    await made.create_topic("many", layout)
    targets = {
        TopicPartition("many", number): [replicas[0], 1 + (number + 2) % 4] for number, replicas in layout.items()
    }
    await accepted(made, "many", targets)
    await made.wait_until_settled()
    plan = await made.plan("many")
    assert plan.completed == many, plan
    for key in list(targets)[::50]:
        assert await made.replicas(key) == tuple(targets[key]), key


async def log_replays(made: Installation) -> None:
    """The log, on the same cluster, replays to its hashes, and no rule was broken."""
    replayed = await made.drover("replay", "--verify")
    assert replayed.code == 0, replayed.errors + replayed.output
