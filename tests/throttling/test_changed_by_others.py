"""Throttles in force that others delete or change: named, put back, or left to them (S10)."""

from drover.events.throttles import (
    BrokerThrottleChanged,
    BrokerThrottleIntended,
    BrokerThrottleLeft,
    BrokerThrottleSet,
    Entries,
    Rates,
    TopicThrottleChanged,
    TopicThrottleIntended,
    TopicThrottleLeft,
    TopicThrottleSet,
)
from drover.facts import BrokerRates, ThrottledReplicas
from drover.reconcile.throttles.demand import Demand
from drover.reconcile.throttles.ledger import Read, ThrottlePlan, is_ready, plan_throttles
from drover.reconcile.throttles.shown_settings import ShownEntries
from drover.state.cluster import ClusterState
from drover.state.throttles import Interference
from tests.reassignment.support import (
    CLUSTER,
    KEY,
    LIVE,
    TOPIC_ID,
)
from tests.throttling.support import (
    INVOLVED,
    LISTED,
    NO_LISTS,
    NOWHERE,
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


def of_broker(state: ClusterState, broker: int, rates: BrokerRates) -> ThrottlePlan:
    """What follows from reading one broker of a throttle that is in force."""
    return plan_throttles(state, Demand(state), LIVE, Read({broker: rates}, {}), (broker,), ())


def test_what_is_in_force_as_it_was_set_needs_nothing() -> None:
    assert planned(in_force(), everything(OURS, LISTED)) == ThrottlePlan()


def test_rates_that_somebody_deleted_are_named_and_put_back_and_the_baseline_stays() -> None:
    """The stock tool's `--verify` and `--cancel` delete the rates of every broker."""
    state = throttled()
    fold(state, *planned(state, everything(BrokerRates(777, None))).events)
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED))
    fold(state, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    changed, back = events = of_broker(state, 2, NOWHERE).events
    nothing, ours = Rates(None, None), Rates(RATE, RATE)
    assert changed == BrokerThrottleChanged(cluster=CLUSTER, broker=2, found=nothing, bytes_per_second=RATE)
    assert back == BrokerThrottleIntended(cluster=CLUSTER, broker=2, rates=ours, found=nothing)
    fold(state, *events)
    assert state.broker_throttles[2].others == Interference(nothing, 1, 2000)
    assert not is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    fold(state, BrokerThrottleSet(cluster=CLUSTER, broker=2))
    assert is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    assert of_broker(state, 2, OURS) == ThrottlePlan()
    assert state.broker_throttles[2].baseline == Rates(777, None)


def test_rates_that_somebody_set_to_another_value_are_theirs_and_moves_go_on_behind_them() -> None:
    state = in_force()
    (changed,) = of_broker(state, 2, BrokerRates(42, 43)).events
    fold(state, changed)
    assert state.broker_throttles[2].theirs == Rates(42, 43)
    assert is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())
    assert of_broker(state, 2, BrokerRates(42, 43)) == ThrottlePlan()
    fold(state, rate("p", 5))
    assert of_broker(state, 2, BrokerRates(42, 43)) == ThrottlePlan(), "a new throttle of the plan leaves them too"
    fold(state, ended())
    assert of_broker(state, 2, BrokerRates(42, 43)).events == (
        BrokerThrottleLeft(cluster=CLUSTER, broker=2, found=Rates(42, 43)),
    )


def test_of_two_rates_the_deleted_one_is_put_back_and_the_changed_one_is_left() -> None:
    state = in_force()
    _, back = events = of_broker(state, 2, BrokerRates(None, 43)).events
    assert back == BrokerThrottleIntended(cluster=CLUSTER, broker=2, rates=Rates(RATE, 43), found=Rates(None, 43))
    fold(state, *events, BrokerThrottleSet(cluster=CLUSTER, broker=2), ended())
    (release,) = of_broker(state, 2, BrokerRates(RATE, 43)).events
    found = Rates(RATE, 43)
    assert release == BrokerThrottleIntended(
        cluster=CLUSTER, broker=2, rates=Rates(None, 43), found=found, release=True
    )


def test_a_rate_of_others_that_they_delete_is_drovers_again_and_is_never_put_back() -> None:
    state = throttled()
    fold(state, *planned(state, everything(BrokerRates(777, 777))).events)
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED))
    fold(state, *of_broker(state, 2, BrokerRates(42, RATE)).events)
    fold(state, *of_broker(state, 2, BrokerRates(None, RATE)).events)
    entry = state.broker_throttles[2]
    assert (entry.intended, entry.theirs) == (Rates(RATE, RATE), Rates(None, None))
    assert entry.baseline == Rates(None, 777)


def test_a_rate_that_somebody_changes_to_what_moves_ask_for_is_drovers_again() -> None:
    """A broker that shows an old value once must not keep Drover's own rate for ever."""
    state = in_force()
    fold(state, *of_broker(state, 2, BrokerRates(42, 42)).events)
    fold(state, *of_broker(state, 2, OURS).events)
    assert state.broker_throttles[2].theirs == Rates(None, None)
    assert state.broker_throttles[2].intended == Rates(RATE, RATE)


def test_a_rate_that_was_deleted_just_before_the_end_is_what_it_was_before_drover() -> None:
    state = throttled()
    fold(state, *planned(state, everything(BrokerRates(777, None))).events)
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED), ended())
    (release,) = of_broker(state, 2, NOWHERE).events
    assert release == BrokerThrottleIntended(
        cluster=CLUSTER, broker=2, rates=Rates(777, None), found=Rates(None, None), release=True
    )
    (left,) = of_broker(fold(in_force(), ended()), 2, NOWHERE).events
    assert isinstance(left, BrokerThrottleLeft), "nothing was there before, and nothing is there now"


def of_topic(state: ClusterState, lists: ThrottledReplicas, refused: frozenset[str] = frozenset()) -> ThrottlePlan:
    """What follows from reading the topic of a throttle that is in force."""
    return plan_throttles(
        state, Demand(state), LIVE, Read({}, {KEY.topic: ShownEntries.of(lists)}, refused), (), (KEY.topic,)
    )


def test_entries_that_somebody_deleted_are_named_and_put_back() -> None:
    state = in_force()
    changed, back = events = of_topic(state, ThrottledReplicas(("0:1", "7:7"), ())).events
    gone = Entries(("0:2", "0:3"), ("0:4",))
    assert changed == TopicThrottleChanged(cluster=CLUSTER, topic=KEY.topic, gone=gone)
    assert back == TopicThrottleIntended(cluster=CLUSTER, topic=KEY.topic, add=gone, topic_id=TOPIC_ID)
    fold(state, *events, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    assert of_topic(state, LISTED) == ThrottlePlan()
    known = state.topic_throttles[KEY.topic]
    assert (known.times_deleted, known.deleted_ms) == (1, 2000)
    assert known.present == Entries(LISTED.leader, LISTED.follower)


def test_a_star_over_one_list_takes_drovers_entries_from_the_other_and_is_left_alone() -> None:
    state = in_force()
    starred = ThrottledReplicas(("*",), LISTED.follower)
    (back,) = of_topic(state, starred).events
    assert isinstance(back, TopicThrottleIntended)
    assert back.remove == Entries(LISTED.leader, LISTED.follower)
    fold(state, back, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
    (left,) = of_topic(state, ThrottledReplicas(("*",), ())).events
    fold(state, left)
    assert of_topic(state, ThrottledReplicas(("*",), ())) == ThrottlePlan()
    assert is_ready(state.reassignments[KEY], state, Demand(state), LIVE, Read())


def test_when_the_star_is_gone_the_moves_that_go_on_get_their_entries() -> None:
    state = fold(in_force(), TopicThrottleLeft(cluster=CLUSTER, topic=KEY.topic, detail="*", topic_id=TOPIC_ID))
    (event,) = of_topic(state, NO_LISTS).events
    assert event == TopicThrottleIntended(
        cluster=CLUSTER, topic=KEY.topic, add=Entries(LISTED.leader, LISTED.follower), topic_id=TOPIC_ID
    )
    assert of_topic(state, NO_LISTS, refused=frozenset({KEY.topic})) == ThrottlePlan(), "Kafka refused it once"
