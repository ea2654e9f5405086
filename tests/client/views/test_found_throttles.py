"""Whose the throttles are that stand in a cluster."""

from drover.client.views.found_throttles import Whose, found_entries, found_rates
from drover.events.partitions import TopicPartition
from drover.events.throttles import NO_RATES, Entries, Rates
from drover.facts import BrokerRates, Move, ThrottledReplicas
from drover.state.cluster import ClusterState
from drover.state.throttles import BrokerThrottle, Interference, TopicThrottle

MOVING = {TopicPartition("payments", 3): Move(replicas=(5, 6, 7), adding=(7,), removing=(5,))}


def ledger() -> ClusterState:
    """Drover throttles brokers 1 and 2, of which somebody else has set both rates of 2, and topic orders."""
    state = ClusterState("east")
    ours, theirs = Rates(1000, 1000), Rates(42, 42)
    state.broker_throttles[1] = BrokerThrottle(NO_RATES, ours, pending=False, release=False)
    state.broker_throttles[2] = BrokerThrottle(
        NO_RATES, theirs, pending=False, release=False, others=Interference(theirs, 0, 1)
    )
    state.topic_throttles["orders"] = TopicThrottle(present=Entries(("0:1",), ("0:4",)))
    return state


def test_rates_are_ours_theirs_or_left_over() -> None:
    read = {
        1: BrokerRates(1000, 1000),
        2: BrokerRates(42, 42),
        3: BrokerRates(None, None),
        7: BrokerRates(7, None),
        9: BrokerRates(None, 0),
    }
    rows = found_rates(ledger(), read, MOVING)
    assert [(row.broker, row.leader, row.follower, row.whose) for row in rows] == [
        (1, 1000, 1000, Whose.OURS),
        (2, 42, 42, Whose.THEIRS),
        (7, 7, None, Whose.THEIRS),
        (9, None, 0, Whose.LEFTOVER),
    ]


def test_a_broker_of_the_ledger_that_does_not_answer_has_what_was_last_written() -> None:
    row, _ = found_rates(ledger(), {2: BrokerRates(42, 42)}, {})
    assert (row.broker, row.leader, row.follower) == (1, 1000, 1000)
    assert row.says.endswith("the broker does not answer")


def test_entries_of_one_topic_may_be_of_three_owners() -> None:
    lists = {
        "orders": ThrottledReplicas(("0:1", "5:1"), ("0:4",)),
        "payments": ThrottledReplicas(("3:5", "4:5"), ("3:7",)),
        "logs": ThrottledReplicas(("*",), ()),
        "quiet": ThrottledReplicas((), ()),
    }
    rows = found_entries(ledger(), lists, MOVING)
    assert [(row.topic, row.leader, row.follower, row.whose) for row in rows] == [
        ("logs", ("*",), (), Whose.THEIRS),
        ("orders", ("0:1",), ("0:4",), Whose.OURS),
        ("orders", ("5:1",), (), Whose.LEFTOVER),
        ("payments", ("3:5",), ("3:7",), Whose.THEIRS),
        ("payments", ("4:5",), (), Whose.LEFTOVER),
    ]
