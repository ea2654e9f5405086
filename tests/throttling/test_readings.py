"""The cache of throttle settings: what counts as read."""

from drover.facts import BrokerRates, ThrottledReplicas
from drover.reconcile.messages import ThrottlesRead
from drover.reconcile.observations import METADATA_LAG_MS
from drover.reconcile.throttles.ledger import Read
from drover.reconcile.throttles.readings import Readings
from drover.reconcile.throttles.recent_writes import RecentWrites
from drover.reconcile.throttles.shown_settings import ShownEntries
from drover.state.cluster import ClusterState

LISTS = {"orders": ThrottledReplicas(("0:1",), ("0:4",))}
FOUND = {topic: ShownEntries.of(lists) for topic, lists in LISTS.items()}
RATES = {1: BrokerRates(1000, None)}


def read(ended_ms: int) -> ThrottlesRead:
    return ThrottlesRead("local", ended_ms, RATES, LISTS)


def fresh_readings() -> Readings:
    return Readings(RecentWrites(ClusterState("local")))


def test_what_was_read_long_ago_does_not_count() -> None:
    """Simulation seed 81359202: an owner stood still, took old rates for those of today, and wrote over an edit."""
    readings = fresh_readings()
    readings.begin((1,), ("orders",), 0)
    readings.take(read(120))
    assert readings.recent(2120).brokers == RATES
    assert readings.recent(2121).brokers == {}


def test_what_is_written_while_it_is_read_does_not_count_and_the_rest_of_the_reading_does() -> None:
    """A watch that reads everything at once would otherwise never end beside moves that write all the time."""
    readings = fresh_readings()
    readings.begin((1,), ("orders",), 0)
    readings.forget((1,), ())
    readings.take(read(120))
    assert readings.recent(120) == Read({}, FOUND)
    readings.begin((1,), ("orders",), 0)
    readings.forget((), ("orders",))
    readings.take(read(140))
    assert readings.recent(140) == Read(RATES, {})


def test_lists_that_were_read_of_an_earlier_topic_of_that_name_are_read_again() -> None:
    """Simulation seed 1004583: they passed for somebody else's entries, and nothing was put on the new topic."""
    readings = fresh_readings()
    readings.see("orders", "id", 0)
    readings.begin((1,), ("orders",), 0)
    readings.take(read(20))
    readings.see("orders", "id", 0)
    assert readings.recent(40).topics == FOUND
    readings.begin((1,), ("orders",), 0)
    readings.see("orders", "id-new", 0)
    assert readings.recent(60).topics == {}
    readings.take(read(70))
    assert readings.recent(70).topics == {}
    readings.begin((1,), ("orders",), 75)
    readings.take(read(80))
    assert readings.recent(80).topics == {}, "the topic had no lists when it was made"
    readings.begin((1,), ("orders",), METADATA_LAG_MS)
    readings.take(read(METADATA_LAG_MS + 5))
    assert readings.recent(METADATA_LAG_MS + 5).topics == FOUND
