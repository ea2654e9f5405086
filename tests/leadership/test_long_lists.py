"""Lists of brokers that name many topics, as anybody may send them: what they cost grows with their length alone."""

import asyncio

from drover.events.brokers import BlacklistSet
from drover.events.commands import Blacklist, BlacklistEntry
from tests.growth import processor_seconds
from tests.leadership.support import restore, world
from tests.shard.world import CLUSTER, World

BROKERS = 20


async def listed(topics: int) -> World:
    """Send a list of twenty brokers with so many topics each, let a successor take over, and restore all but one."""
    named = {
        broker: tuple(f"{broker:03}-{number:04}" for number in range(topics)) for broker in range(100, 100 + BROKERS)
    }
    entries = tuple(BlacklistEntry(broker=broker, topics=names) for broker, names in named.items())
    everywhere = BlacklistEntry(broker=3)
    command = Blacklist(id="long", cluster=CLUSTER, by="ana", reason="r", brokers=(), entries=(*entries, everywhere))
    made = world()
    assert (await made.send(command)).verdict == "accepted"
    made.crash()
    assert (await made.send(restore(100, topics=named[100][1:]))).verdict == "accepted"
    return made


async def test_a_list_of_twenty_thousand_topics_is_restored_by_a_successor_but_for_one_topic() -> None:
    made = await listed(1000)
    assert len([event for event in made.events() if isinstance(event, BlacklistSet)]) == 2
    assert made.state.listed_for("100-0000") == {3, 100}
    assert made.state.listed_for("100-0001") == {3}
    assert made.state.listed_for("119-0999") == {3, 119}


def test_a_list_of_ten_times_as_many_topics_does_not_cost_a_hundred_times_as_much() -> None:
    assert processor_seconds(lambda: asyncio.run(listed(1000))) < 40 * processor_seconds(
        lambda: asyncio.run(listed(100))
    )
