"""What people see of throttles that others have changed."""

from drover.client.views.status_rows import notices
from drover.client.views.throttle_rows import broker_throttle_rows, notices_of_unthrottled, topic_throttle_rows
from drover.events.throttles import NO_RATES, Entries, Rates
from drover.state.cluster import ClusterState
from drover.state.throttles import BrokerThrottle, Interference, TopicThrottle

OURS = Rates(1000, 1000)


def changed() -> ClusterState:
    """Broker 1 is as it was set; of 2 the rate was deleted twice; one of 3, and both of 4, are others'."""
    state = ClusterState("east")
    theirs = {2: (OURS, NO_RATES, 2), 3: (Rates(1000, 42), Rates(None, 42), 0), 4: (Rates(7, 42), Rates(7, 42), 0)}
    state.broker_throttles[1] = BrokerThrottle(NO_RATES, OURS, pending=False, release=False)
    for broker, (found, rates, times) in theirs.items():
        others = Interference(rates, times, 1_790_000_000_000)
        state.broker_throttles[broker] = BrokerThrottle(NO_RATES, found, pending=False, release=False, others=others)
    entries = Entries(("0:1",), ("0:2",))
    state.topic_throttles["orders"] = TopicThrottle(present=entries, times_deleted=1, deleted_ms=1_790_000_000_001)
    return state


def test_each_broker_says_what_others_did_and_whose_its_rates_are() -> None:
    rows = broker_throttle_rows(changed(), {})
    assert [row.says.split(":", 1)[-1].strip() for row in rows] == [
        *("no move needs it; it is put back next" for _ in range(4)),
    ]
    state = changed()
    state.reassignments = {(): ()}  # type: ignore[dict-item]
    one, two, three, four = broker_throttle_rows(state, {})
    assert one.says == "in force"
    assert two.says == "in force; somebody else has deleted it twice, and it was put back"
    assert (two.times_deleted, two.changed_ms) == (2, 1_790_000_000_000)
    assert three.says == "somebody else has set the rate: theirs until they delete it"
    assert (three.theirs_leader, three.theirs_follower) == (None, 42)
    assert four.says == "somebody else has set the rates: theirs until they delete it"


def test_a_topic_says_that_its_entries_were_deleted() -> None:
    (row,) = topic_throttle_rows(changed())
    assert row.says == "in force; somebody else has deleted it once, and it was put back"


def test_a_topic_of_which_copies_run_unthrottled_says_so_and_the_status_too() -> None:
    state = ClusterState("east")
    state.topic_throttles["long"] = TopicThrottle(present=Entries(("0:1",), ("0:2",)), left=True)
    state.topic_throttles["star"] = TopicThrottle(left=True)
    first, second = topic_throttle_rows(state)
    assert first.says == "in force, but Kafka refuses to add more entries: copies without an entry run unthrottled"
    assert second.says.startswith("left alone: ")
    assert not any("throttle all copies" in line for line in notices(state))
    state.reassignments = {(): ()}  # type: ignore[dict-item]
    (told,) = notices_of_unthrottled(state)
    assert told.startswith("east: Drover cannot throttle all copies of topic long, star: ")


def test_the_notices_of_the_status_name_brokers_and_topics() -> None:
    told = [line for line in notices(changed()) if "somebody else" in line]
    assert told == [
        (
            "east: somebody else has set the throttle of broker 3, 4: it stays until they delete it "
            "(`drover throttle show`)"
        ),
        (
            "east: somebody else has deleted the throttle of broker 2 while moves need it: Drover puts it back "
            "(`drover throttle show`)"
        ),
        "east: somebody else has deleted throttled replicas of topic orders: Drover puts them back",
    ]
