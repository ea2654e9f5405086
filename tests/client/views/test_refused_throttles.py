"""What `status`, `throttles` and the metrics say of a throttle that Kafka refuses."""

from drover.agents.state_metrics import StateMetrics
from drover.client.views.status_rows import notices
from drover.client.views.throttle_rows import broker_throttle_rows, topic_throttle_rows
from drover.events.throttles import BrokerThrottleRefused, TopicThrottleRefused
from drover.state.cluster import ClusterState
from tests.reassignment.support import CLUSTER, KEY
from tests.throttling.support import everything, fold, planned, throttled

RATES = "leader.replication.throttled.rate and follower.replication.throttled.rate"
LISTS = "leader.replication.throttled.replicas and follower.replication.throttled.replicas"


def refused() -> ClusterState:
    """Kafka has refused the rates of broker 4 and the lists of the topic; the other rates are being set."""
    state = throttled()
    fold(state, *planned(state, everything()).events)
    return fold(
        state,
        BrokerThrottleRefused(cluster=CLUSTER, broker=4, code=31, message="Cluster authorization failed."),
        TopicThrottleRefused(cluster=CLUSTER, topic=KEY.topic, code=44),
    )


def test_the_rows_of_the_ledger_say_what_kafka_refuses() -> None:
    says = {row.broker: row.says for row in broker_throttle_rows(refused(), {})}
    assert says[4] == (
        f"Kafka refuses to set {RATES} of broker 4: code 31 (Cluster authorization failed.); tried again every 10 s"
    )
    assert says[1] == "being set"
    (row,) = topic_throttle_rows(refused())
    assert row.says == f"Kafka refuses to change {LISTS} of topic {KEY.topic}: code 44; tried again every 10 s"


def test_status_names_the_first_refusal_and_counts_the_others() -> None:
    assert (
        f"{CLUSTER}: Kafka refuses to set {RATES} of broker 4: code 31 (Cluster authorization failed.), and 1 more "
        "(`drover throttle show`): `drover acls` prints the rights needed"
    ) in list(notices(refused()))


def test_the_metric_counts_brokers_and_topics() -> None:
    metrics = {metric.name: metric for metric in StateMetrics(lambda: [refused()], lambda: 0).collect()}
    (sample,) = metrics["drover_throttles_refused"].samples
    assert (sample.labels, sample.value) == ({"cluster": CLUSTER}, 2)
