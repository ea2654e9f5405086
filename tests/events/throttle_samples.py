"""Samples of the messages about throttles; see `tests.events.samples`."""

from drover.events import plans, records, throttles

_RATES = throttles.Rates(leader=10_000_000, follower=10_000_000)
_ENTRIES = throttles.Entries(leader=("0:1", "0:2"), follower=("0:3",))

EVENTS: dict[str, records.AnyEvent] = {
    "plan-throttle-that-may-rise": plans.PlanThrottleSet(
        cluster="local", plan="friday", bytes_per_second=10_000_000, may_rise_to=20_000_000
    ),
    "plan-throttle-cleared": plans.PlanThrottleCleared(cluster="local", plan="friday"),
    "plan-throttle-raised": plans.PlanThrottleRaised(
        cluster="local",
        plan="friday",
        bytes_per_second=13_200_000,
        previous_bytes_per_second=10_000_000,
        detail="the leader of orders:0 grows by 3.0 MB/s and its copy on broker 4 by 2.5 MB/s",
    ),
    "cluster-throttle-set": plans.ClusterThrottleSet(
        cluster="local", bytes_per_second=20_000_000, by="ann", reason="working hours"
    ),
    "cluster-throttle-taken-away": plans.ClusterThrottleSet(
        cluster="local", bytes_per_second=None, by="ann", reason="at night"
    ),
    "broker-throttle-intended": throttles.BrokerThrottleIntended(
        cluster="local", broker=1, rates=_RATES, found=throttles.Rates(leader=None, follower=None), release=True
    ),
    "broker-throttle-set": throttles.BrokerThrottleSet(cluster="local", broker=1),
    "broker-throttle-refused": throttles.BrokerThrottleRefused(
        cluster="local", broker=1, code=31, message="Cluster authorization failed."
    ),
    "broker-throttle-left": throttles.BrokerThrottleLeft(cluster="local", broker=1, found=_RATES),
    "broker-throttle-changed": throttles.BrokerThrottleChanged(
        cluster="local", broker=1, found=throttles.Rates(leader=None, follower=5_000_000), bytes_per_second=10_000_000
    ),
    "broker-throttle-adopted": throttles.BrokerThrottleAdopted(
        cluster="local", broker=1, found=throttles.Rates(leader=1_000_000, follower=None), by="ann", reason="left over"
    ),
    "topic-throttle-adopted": throttles.TopicThrottleAdopted(
        cluster="local", topic="orders", found=_ENTRIES, by="ann", reason="left over"
    ),
    "topic-throttle-changed": throttles.TopicThrottleChanged(cluster="local", topic="orders", gone=_ENTRIES),
    "topic-throttle-intended": throttles.TopicThrottleIntended(
        cluster="local", topic="orders", add=_ENTRIES, remove=throttles.Entries(leader=("1:1",))
    ),
    "topic-throttle-set": throttles.TopicThrottleSet(cluster="local", topic="orders"),
    "topic-throttle-left": throttles.TopicThrottleLeft(
        cluster="local", topic="orders", detail="the topic is throttled by *, which Drover never touches"
    ),
    "topic-throttle-refused-by-policy": throttles.TopicThrottleRefused(
        cluster="local", topic="orders", code=44, message="the policy allows no throttled replicas"
    ),
    "topic-throttle-refused": throttles.TopicThrottleLeft(
        cluster="local", topic="orders", detail="Kafka refuses its lists: code 40", topic_id="id-1", refused=True
    ),
}
