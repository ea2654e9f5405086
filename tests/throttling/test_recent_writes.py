"""Which readings may be older than what was written last."""

from drover.events.throttles import NO_ENTRIES, NO_RATES, Entries, Rates
from drover.facts import BrokerRates, ThrottledReplicas
from drover.reconcile.observations import METADATA_LAG_MS
from drover.reconcile.throttles.recent_writes import RecentWrites
from drover.reconcile.throttles.shown_settings import ShownEntries
from drover.state.cluster import ClusterState
from drover.state.throttles import BrokerThrottle, TopicThrottle

OURS = Rates(1000, 1000)
NONE_SET = BrokerRates(None, None)
WRITTEN_MS = 10_000
SETTLED_MS = WRITTEN_MS + METADATA_LAG_MS
ADDED = Entries(("0:1",), ("0:4",))


def found(leader: tuple[str, ...], follower: tuple[str, ...]) -> ShownEntries:
    return ShownEntries.of(ThrottledReplicas(leader, follower))


EMPTY = found((), ())
SHOWN = found(("0:1",), ("0:4",))


def recent_writes() -> RecentWrites:
    return RecentWrites(ClusterState("local"))


def test_a_reading_counts_if_it_shows_the_rates_that_were_written_or_began_late_enough() -> None:
    made = recent_writes()
    made.wrote_rates(1, OURS, WRITTEN_MS)
    assert made.shows_rates(1, BrokerRates(1000, 1000), WRITTEN_MS)
    assert not made.shows_rates(1, NONE_SET, SETTLED_MS - 1)
    assert made.shows_rates(1, NONE_SET, SETTLED_MS)
    assert made.shows_rates(2, NONE_SET, WRITTEN_MS)


def test_what_was_added_must_be_there_and_what_was_removed_must_not() -> None:
    made = recent_writes()
    made.wrote_entries("orders", ADDED, NO_ENTRIES, WRITTEN_MS)
    assert not made.shows_entries("orders", EMPTY, WRITTEN_MS)
    assert made.shows_entries("orders", found(("0:1", "9:9"), ("0:4",)), WRITTEN_MS)
    made.wrote_entries("orders", NO_ENTRIES, ADDED, WRITTEN_MS)
    assert not made.shows_entries("orders", SHOWN, SETTLED_MS - 1)
    assert made.shows_entries("orders", EMPTY, SETTLED_MS - 1)
    assert made.shows_entries("orders", SHOWN, SETTLED_MS)


def test_only_the_last_writes_are_asked_for() -> None:
    """A list has thousands of entries, and others may delete old ones meanwhile: that is to be noticed."""
    made = recent_writes()
    made.wrote_entries("orders", Entries(("0:1",)), NO_ENTRIES, WRITTEN_MS)
    made.wrote_entries("orders", Entries(("5:1",)), NO_ENTRIES, SETTLED_MS)
    assert made.shows_entries("orders", found(("5:1",), ()), SETTLED_MS)
    assert not made.shows_entries("orders", found(("0:1",), ()), SETTLED_MS)


def test_what_was_just_added_is_not_removed_until_every_broker_knows_it() -> None:
    made = recent_writes()
    made.wrote_entries("orders", ADDED, Entries(("7:7",)), WRITTEN_MS)
    everything = Entries(("0:1", "7:7", "9:9"), ("0:4",))
    assert made.removable("orders", everything, SETTLED_MS - 1) == Entries(("7:7", "9:9"))
    assert made.shown_ms("orders") == SETTLED_MS
    assert made.removable("orders", everything, SETTLED_MS) == everything
    assert made.shown_ms("orders") == 0
    assert made.removable("payments", ADDED, WRITTEN_MS) == ADDED


def test_a_new_owner_removes_nothing_that_the_last_one_may_have_added_just_now() -> None:
    """Simulation seed 81510134."""
    made = recent_writes()
    made.begin(WRITTEN_MS)
    assert made.removable("orders", ADDED, SETTLED_MS - 1) == NO_ENTRIES
    assert made.shown_ms("orders") == SETTLED_MS
    assert made.removable("orders", ADDED, SETTLED_MS) == ADDED


def test_a_new_owner_first_believes_only_what_the_ledger_says() -> None:
    state = ClusterState("local")
    state.broker_throttles[1] = BrokerThrottle(NO_RATES, OURS, pending=False, release=False)
    state.topic_throttles["orders"] = TopicThrottle(present=ADDED)
    made = RecentWrites(state)
    made.begin(WRITTEN_MS)
    assert made.shows_rates(1, BrokerRates(1000, 1000), WRITTEN_MS)
    assert not made.shows_rates(1, NONE_SET, WRITTEN_MS)
    assert made.shows_rates(2, NONE_SET, WRITTEN_MS)
    assert not made.shows_rates(2, BrokerRates(5, None), SETTLED_MS - 1)
    assert made.shows_rates(2, BrokerRates(5, None), SETTLED_MS)
    assert made.shows_entries("orders", SHOWN, WRITTEN_MS)
    assert not made.shows_entries("orders", EMPTY, WRITTEN_MS)
    assert not made.shows_entries("payments", SHOWN, WRITTEN_MS)
    assert made.shows_entries("payments", EMPTY, WRITTEN_MS)


def test_a_topic_that_was_made_anew_shows_no_entries_at_first() -> None:
    made = recent_writes()
    made.wrote_entries("orders", ADDED, NO_ENTRIES, WRITTEN_MS)
    made.recreated("orders", WRITTEN_MS)
    assert not made.shows_entries("orders", SHOWN, SETTLED_MS - 1)
    assert made.shows_entries("orders", EMPTY, WRITTEN_MS)
    assert made.shows_entries("orders", SHOWN, SETTLED_MS)
    assert made.removable("orders", ADDED, WRITTEN_MS) == ADDED
