"""The cache of throttle settings: what counts as read."""

from drover.capability.messages import ThrottlesRead
from drover.facts import BrokerRates, ThrottledReplicas
from drover.throttling.readings import Readings

LISTS = {"orders": ThrottledReplicas(("0:1",), ("0:4",))}
RATES = {1: BrokerRates(1000, None)}


def read(started_ms: int) -> ThrottlesRead:
    return ThrottlesRead("local", started_ms, RATES, LISTS)


def test_what_was_read_before_the_last_change_or_long_ago_does_not_count() -> None:
    readings = Readings()
    readings.forget((), (), 100)
    readings.take(read(99), 110)
    assert readings.recent(110).brokers == {}
    readings.take(read(100), 120)
    assert readings.recent(2120).brokers == RATES
    assert readings.recent(2121).brokers == {}


def test_lists_that_were_read_of_an_earlier_topic_of_that_name_are_read_again() -> None:
    """Simulation seed 1004583: they passed for somebody else's entries, and nothing was put on the new topic."""
    readings = Readings()
    readings.see("orders", "id")
    readings.take(read(20), 20)
    readings.see("orders", "id")
    assert readings.recent(40).topics == LISTS
    readings.is_reading = True
    readings.see("orders", "id-new")
    assert readings.recent(60).topics == {}
    readings.take(read(45), 70)
    assert readings.recent(70).topics == {}
    readings.take(read(71), 80)
    assert readings.recent(80).topics == LISTS
