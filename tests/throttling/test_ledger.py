"""The throttle ledger: what is wanted, what is written after it was read, and what is put back exactly."""

from msgspec.structs import replace

from drover.events.partitions import TopicPartition
from drover.events.reassignments import FailureReason, ReassignmentFailed
from drover.events.throttles import (
    BrokerThrottleIntended,
    BrokerThrottleLeft,
    BrokerThrottleSet,
    Entries,
    Rates,
    TopicThrottleIntended,
    TopicThrottleLeft,
    TopicThrottleSet,
)
from drover.facts import BrokerRates, ThrottledReplicas
from drover.reconcile.throttles.demand import Demand
from drover.reconcile.throttles.ledger import Read, ThrottlePlan, is_ready
from drover.state.cluster import ClusterState
from tests.reassignment.support import (
    CLUSTER,
    KEY,
    LIVE,
    TOPIC_ID,
    accepted,
    intended,
    opened,
    queued,
    state_after,
    tags,
)
from tests.simulation.throttle_scan import wanted
from tests.throttling.support import (
    INVOLVED,
    LISTED,
    OURS,
    RATE,
    ended,
    everything,
    fold,
    in_force,
    planned,
    rate,
    throttled,
)

# -- what is wanted


def test_a_moving_step_throttles_its_sources_as_leaders_and_its_newcomers_as_followers() -> None:
    """TV-134, TV-141 to TV-143."""
    asked = wanted(throttled())
    assert asked.rates == {1: RATE, 2: RATE, 3: RATE, 4: RATE}
    assert asked.entries == {"orders": Entries(("0:1", "0:2", "0:3"), ("0:4",))}


def test_the_tools_move_map_gives_the_tools_lists() -> None:
    """TV-140 to TV-143: proposed moves of foo and bar, all in one step each."""
    moves = {
        TopicPartition("foo", 2): ((1, 2), (3, 4)),
        TopicPartition("foo", 3): ((1, 2), (5, 6)),
        TopicPartition("foo", 4): ((1, 2), (3,)),
        TopicPartition("foo", 5): ((1, 2), (3, 4, 5, 6)),
        TopicPartition("bar", 0): ((2, 3, 4), (1, 2, 3)),
    }
    state = state_after([opened(), rate("p", RATE)])
    for key, (original, target) in moves.items():
        fold(state, queued(key, original, target), intended(original, target, key=key), accepted(key=key))
    asked = wanted(state)
    assert asked.entries["foo"].leader == ("2:1", "2:2", "3:1", "3:2", "4:1", "4:2", "5:1", "5:2")
    assert asked.entries["foo"].follower == ("2:3", "2:4", "3:5", "3:6", "4:3", "5:3", "5:4", "5:5", "5:6")
    assert asked.entries["bar"] == Entries(("0:2", "0:3", "0:4"), ("0:1",))
    assert set(asked.rates) == {1, 2, 3, 4, 5, 6}


def test_where_plans_disagree_a_broker_gets_the_lowest_rate() -> None:
    other = TopicPartition("payments", 0)
    state = throttled()
    fold(state, opened("q"), rate("q", 10), queued(other, (1, 5), (1, 6), "q"))
    fold(state, intended((1, 5), (1, 6), key=other), accepted(key=other))
    assert wanted(state).rates == {1: 10, 2: RATE, 3: RATE, 4: RATE, 5: 10, 6: 10}


def test_what_copies_nothing_wants_nothing() -> None:
    reorder = state_after([opened(), rate("p", RATE), queued(KEY, (1, 2), (2, 1)), intended((1, 2), (2, 1))])
    assert not wanted(reorder).rates
    assert not wanted(state_after([opened(), queued(), intended(), accepted()])).rates
    assert not wanted(state_after([opened(), rate("p", RATE), queued()])).rates
    assert not wanted(fold(throttled(), ended())).rates


# -- setting


def test_nothing_is_written_that_was_not_read() -> None:
    found = planned(throttled(), Read())
    assert found == ThrottlePlan((), INVOLVED, ("orders",))


def test_what_was_there_is_recorded_as_the_baseline() -> None:
    state = throttled()
    fold(state, *planned(state, everything(BrokerRates(777, None))).events)
    assert {entry.baseline for entry in state.broker_throttles.values()} == {Rates(777, None)}
    assert state.broker_throttles[1].pending
    assert planned(state, everything()).events == ()


def test_a_dead_broker_is_left_out_until_it_is_back() -> None:
    state = throttled()
    events = planned(state, everything(), LIVE - {4}).events
    assert [event.broker for event in events if isinstance(event, BrokerThrottleIntended)] == [1, 2, 3]
    fold(state, *events)
    later = planned(state, everything(), LIVE).events
    assert [event.broker for event in later if isinstance(event, BrokerThrottleIntended)] == [4]


def test_entries_that_were_there_are_neither_added_nor_ever_removed() -> None:
    state = throttled()
    there = ThrottledReplicas(("0:1", "9:9"), ("0:4",))
    (event,) = [e for e in planned(state, everything(lists=there)).events if isinstance(e, TopicThrottleIntended)]
    assert event.add == Entries(("0:2", "0:3"), ())
    fold(state, event, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic), ended())
    (back,) = [e for e in planned(state, everything(lists=there)).events if isinstance(e, TopicThrottleIntended)]
    assert back.remove == Entries(("0:2", "0:3"), ())


def test_a_star_is_never_touched() -> None:
    state = throttled()
    events = planned(state, everything(lists=ThrottledReplicas(("*",), ()))).events
    (left,) = [event for event in events if isinstance(event, TopicThrottleLeft)]
    fold(state, left)
    assert "orders" not in planned(state, Read()).read_topics
    fold(state, ended())
    (gone,) = [event for event in planned(state, Read()).events if isinstance(event, TopicThrottleSet)]
    fold(state, gone)
    assert state.topic_throttles == {}


def test_a_topic_that_moves_is_read_again_where_a_broker_does_not_know_it() -> None:
    state = throttled()
    plan = planned(state, Read(everything().brokers, {KEY.topic: None}))
    assert (plan.unknown_topics, plan.read_topics) == ((KEY.topic,), ())
    assert set(tags(plan.events)) == {"broker-throttle-intended"}


def test_a_topic_that_is_gone_is_left() -> None:
    state = fold(in_force(), ended())
    read = Read(everything(OURS).brokers, {KEY.topic: None})
    assert "topic-throttle-left" in tags(planned(state, read).events)


def test_a_new_rate_is_written_over_the_old_one_and_the_baseline_stays() -> None:
    """TV-150, TV-164."""
    state = fold(in_force(), rate("p", 5))
    events = planned(state, everything(BrokerRates(RATE, RATE))).events
    fold(state, *events)
    assert state.broker_throttles[1].intended == Rates(5, 5)
    assert state.broker_throttles[1].baseline == Rates(None, None)


# -- putting back


def test_the_end_of_the_last_user_puts_back_exactly_what_was_there() -> None:
    """S10, X14."""
    state = fold(in_force(), ended())
    assert planned(state, Read()).read_brokers == INVOLVED
    events = planned(state, everything(BrokerRates(RATE, RATE))).events
    releases = [event for event in events if isinstance(event, BrokerThrottleIntended)]
    assert [event.broker for event in releases] == list(INVOLVED)
    assert all(event.release and event.rates == Rates(None, None) for event in releases)
    fold(state, *events, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED))
    fold(state, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    assert state.broker_throttles == {}
    assert state.topic_throttles == {}


def test_what_others_changed_meanwhile_is_left_to_them() -> None:
    state = fold(in_force(), ended())
    events = planned(state, everything(BrokerRates(42, 43))).events
    assert {type(event) for event in events} == {BrokerThrottleLeft, TopicThrottleIntended}
    fold(state, *events)
    assert state.broker_throttles == {}


def test_of_two_rates_only_the_one_that_others_changed_is_left_to_them() -> None:
    state = fold(in_force(), ended())
    events = planned(state, everything(BrokerRates(42, RATE))).events
    written = [event for event in events if isinstance(event, BrokerThrottleIntended)]
    assert written
    for event in written:
        assert event.release
        assert event.rates == Rates(42, state.broker_throttles[event.broker].baseline.follower)


def test_a_dead_broker_gets_its_own_back_when_it_returns() -> None:
    state = fold(in_force(), ended())
    seen = everything(BrokerRates(RATE, RATE))
    fold(state, *planned(state, seen, LIVE - {4}).events)
    assert not state.broker_throttles[4].release
    later = planned(state, seen, LIVE).events
    assert [event.broker for event in later if isinstance(event, BrokerThrottleIntended)] == [4]


def test_what_is_only_to_be_removed_waits_while_others_of_the_topic_are_needed() -> None:
    state, other = in_force(), TopicPartition("orders", 7)
    fold(state, queued(other, (1, 2), (1, 4)), intended((1, 2), (1, 4), key=other), accepted(key=other))
    (both,) = (one for one in planned(state, everything(lists=LISTED)).events if isinstance(one, TopicThrottleIntended))
    assert both.add == Entries(("7:1", "7:2"), ("7:4",))
    fold(state, both, TopicThrottleSet(cluster=CLUSTER, topic="orders"), ended())
    read = everything(lists=ThrottledReplicas((*LISTED.leader, "7:1", "7:2"), (*LISTED.follower, "7:4")))
    waits = planned(state, read)
    assert waits.only_removals == ("orders",)
    assert not any(isinstance(one, TopicThrottleIntended) for one in waits.events)
    late = planned(state, read, overdue=("orders",))
    (change,) = (one for one in late.events if isinstance(one, TopicThrottleIntended))
    assert change.remove == Entries(LISTED.leader, LISTED.follower)
    third = TopicPartition("orders", 8)
    fold(state, queued(third, (1, 2), (1, 4)), intended((1, 2), (1, 4), key=third), accepted(key=third))
    (change,) = (one for one in planned(state, read).events if isinstance(one, TopicThrottleIntended))
    assert change.add == Entries(("8:1", "8:2"), ("8:4",))
    assert change.remove == Entries(LISTED.leader, LISTED.follower)


# -- readiness


def test_a_step_begins_only_behind_its_throttle() -> None:
    state = in_force()
    about = state.reassignments[KEY]
    assert is_ready(about, state, Demand(state), LIVE, Read())
    pending = throttled()
    fold(pending, *planned(pending, everything()).events)
    assert not is_ready(about, pending, Demand(pending), LIVE, Read())
    assert not is_ready(about, throttled(), Demand(throttled()), LIVE, Read())


def test_dead_brokers_are_not_waited_for() -> None:
    state = throttled()
    live = LIVE - {3}
    fold(state, *planned(state, everything(), live).events)
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in (1, 2, 4)))
    fold(state, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    assert is_ready(state.reassignments[KEY], state, Demand(state), live, Read())
    assert not is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())


def test_a_topic_whose_entries_were_all_there_is_ready_once_read() -> None:
    state = throttled()
    fold(state, *[e for e in planned(state, everything()).events if isinstance(e, BrokerThrottleIntended)])
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED))
    there = everything(lists=ThrottledReplicas(("0:1", "0:2", "0:3"), ("0:4",)))
    assert not is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    assert is_ready(state.reassignments[KEY], state, Demand(state), LIVE, there)


def test_a_topic_that_is_left_alone_holds_nothing_up() -> None:
    state = throttled()
    fold(state, *[e for e in planned(state, everything()).events if isinstance(e, BrokerThrottleIntended)])
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED))
    fold(state, TopicThrottleLeft(cluster=CLUSTER, topic=KEY.topic, detail="*", topic_id=TOPIC_ID))
    assert is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    there = everything(OURS, ThrottledReplicas(("*",), ()))
    assert planned(state, there) == ThrottlePlan()


# -- a topic that is made anew


def made_anew(state: ClusterState) -> ClusterState:
    """Somebody deletes the topic and makes it again; the same is asked of it once more."""
    gone = ReassignmentFailed(
        cluster=CLUSTER, topic=KEY.topic, partition=KEY.partition, why=FailureReason.PARTITION_GONE, detail="gone",
        replicas=(1, 2, 3),
    )  # fmt: skip
    return fold(state, gone, replace(queued(), topic_id="id-new"), intended(), accepted())


def test_what_was_put_on_a_topic_is_not_in_force_on_the_one_that_was_made_anew() -> None:
    """Simulation seed 900339: a step was sent behind entries that had gone with the old topic."""
    state = made_anew(in_force())
    assert not is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    assert planned(state, Read()).read_topics == (KEY.topic,)
    (event,) = planned(state, everything(OURS)).events
    entries = Entries(("0:1", "0:2", "0:3"), ("0:4",))
    assert event == TopicThrottleIntended(cluster=CLUSTER, topic=KEY.topic, add=entries, topic_id="id-new")
    fold(state, event)
    assert not is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    fold(state, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    assert is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    assert planned(state, everything(OURS, LISTED)).events == ()


def test_a_write_that_is_owed_to_the_old_topic_is_answered_first() -> None:
    """It may have put its entries on the new one: they stay in the ledger, to be taken away in the end."""
    state = throttled()
    fold(state, *planned(state, everything()).events)
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED))
    made_anew(state)
    assert planned(state, everything(OURS)).events == ()
    fold(state, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    (event,) = planned(state, everything(OURS, LISTED)).events
    assert event == TopicThrottleIntended(cluster=CLUSTER, topic=KEY.topic, topic_id="id-new")
    fold(state, event, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic), ended())
    (back,) = [e for e in planned(state, everything(OURS)).events if isinstance(e, TopicThrottleIntended)]
    assert back.remove == Entries(LISTED.leader, LISTED.follower)


def test_a_topic_that_was_left_alone_is_throttled_when_it_is_made_anew() -> None:
    state = in_force()
    fold(state, TopicThrottleLeft(cluster=CLUSTER, topic=KEY.topic, detail="gone", topic_id=TOPIC_ID))
    made_anew(state)
    assert not is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    (event,) = planned(state, everything(OURS)).events
    assert isinstance(event, TopicThrottleIntended)
    fold(state, event, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    assert is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
