"""What the stories ask of a cluster and of Drover."""

from collections.abc import Mapping, Sequence

from drover.events.partitions import TopicPartition
from drover.events.traits import Traits
from drover.facts import BrokerRates, ThrottledReplicas
from tests.integration.support import Installation, wait_for

UNSET = BrokerRates(None, None)


class Unlike(Exception):  # noqa: N818  # no error: a promise that holds in another way
    """A story ended as its version's traits say, and other than on 4.3.1."""


async def traits(made: Installation) -> Traits:
    """Return the traits that Drover has recorded; waits until it has."""
    found: list[Traits] = []

    async def known() -> bool:
        seen = (await made.state()).traits
        found[:] = [] if seen is None else [seen]
        return bool(found)

    await wait_for(known, "the traits to be recorded")
    return found[0]


async def accepted(
    made: Installation, plan: str, targets: Mapping[TopicPartition, Sequence[int]], *options: str
) -> None:
    """Send an alter that must be accepted."""
    sent = await made.alter(plan, targets, *options)
    assert sent.code == 0, sent.errors + sent.output


async def listed(made: Installation, key: TopicPartition) -> None:
    """Wait until Kafka lists a partition as moving."""

    async def moving() -> bool:
        return (await made.facts(key)).move is not None

    await wait_for(moving, f"{key} to be listed")


async def reached(made: Installation, key: TopicPartition, replicas: Sequence[int]) -> None:
    """Wait until nothing is under way and the partition has this list, in this order."""
    await made.wait_until_settled()

    async def there() -> bool:
        seen = await made.facts(key)
        return seen.move is None and seen.replicas == tuple(replicas)

    await wait_for(there, f"{key} to be on {list(replicas)}, it is on {await made.replicas(key)}")


async def unthrottled(made: Installation, topic: str) -> None:
    """Wait until no throttle is left, neither rates nor lists."""

    async def clean() -> bool:
        rates, lists = await made.throttles(topic)
        return set(rates.values()) == {UNSET} and lists == ThrottledReplicas((), ())

    await wait_for(clean, "every throttle to be put back")


async def waits_for(made: Installation, key: TopicPartition, words: str) -> None:
    """Wait until `drover status` says so in what the partition waits for."""

    async def said() -> bool:
        rows = (await made.status())["reassignments"]
        return any((row["topic"], row["partition"]) == key and words in str(row) for row in rows)

    await wait_for(said, f"{key} to wait for something with: {words}", pause_s=0.5)


async def alive(made: Installation, *brokers: int) -> None:
    """Wait until exactly these brokers live, as the cluster shows it."""

    async def shown() -> bool:
        return tuple(sorted((await made.driver.identify()).racks)) == brokers

    await wait_for(shown, f"brokers {brokers} to be the live ones")


async def in_sync(made: Installation, key: TopicPartition) -> None:
    """Wait until every replica of a partition is in sync."""

    async def full() -> bool:
        seen = await made.facts(key)
        return set(seen.isr) == set(seen.replicas)

    await wait_for(full, f"{key} to be in sync")
