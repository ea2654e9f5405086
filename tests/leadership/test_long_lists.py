"""Lists of brokers that name many topics, as anybody may send them: no worker and no reader stands still for one."""

from time import process_time

from drover.events.brokers import BlacklistSet
from drover.events.commands import Blacklist, BlacklistEntry
from tests.leadership.support import restore, world
from tests.shard.world import CLUSTER

BROKERS, TOPICS = 20, 1000
# All of it takes a tenth of a second; it took half a minute.
MOST_S = 5


async def test_a_list_of_twenty_thousand_topics_takes_a_worker_and_its_successor_no_time() -> None:
    topics = {
        broker: tuple(f"{broker:03}-{number:04}" for number in range(TOPICS)) for broker in range(100, 100 + BROKERS)
    }
    entries = tuple(BlacklistEntry(broker=broker, topics=names) for broker, names in topics.items())
    everywhere = BlacklistEntry(broker=3)
    command = Blacklist(id="long", cluster=CLUSTER, by="ana", reason="r", brokers=(), entries=(*entries, everywhere))
    made = world()
    began = process_time()
    assert (await made.send(command)).verdict == "accepted"
    made.crash()
    assert (await made.send(restore(100, topics=topics[100][1:]))).verdict == "accepted"
    assert process_time() - began < MOST_S
    assert len([event for event in made.events() if isinstance(event, BlacklistSet)]) == 2
    assert made.state.listed_for("100-0000") == {3, 100}
    assert made.state.listed_for("100-0001") == {3}
    assert made.state.listed_for("119-0999") == {3, 119}
