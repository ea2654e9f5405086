"""Metrics that are read from the state at each scrape, for the clusters whose shards this worker owns."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from drover.state.cluster import ClusterState
from drover.state.limit_names import KNOWN, value_of

Labelled = tuple[tuple[str, ...], float]


class StateMetrics(Collector):
    """The metrics of `states`, the clusters of owned shards; `now_ms` returns the wall clock.

    A worker that loses a shard stops exposing its clusters, so that each cluster is exposed by one worker.
    """

    def __init__(self, states: Callable[[], Iterable[ClusterState]], now_ms: Callable[[], int]) -> None:
        self._states = states
        self._now_ms = now_ms

    def describe(self) -> Iterator[Metric]:
        """Return the metrics' names without values."""
        for name, (text, labels, _) in METRICS.items():
            yield GaugeMetricFamily(f"drover_{name}", text, labels=labels)

    def collect(self) -> Iterator[Metric]:
        """Read every metric from the current states."""
        states, now_ms = tuple(self._states()), self._now_ms()
        for name, (text, labels, read) in METRICS.items():
            family = GaugeMetricFamily(f"drover_{name}", text, labels=labels)
            for state in states:
                for values, number in read(state, now_ms):
                    family.add_metric((state.name, *values), number)
            yield family


def _blocked(state: ClusterState, _: int) -> Iterator[Labelled]:
    whys = Counter(entry.block.why.value for entry in state.reassignments.values() if entry.block is not None)
    for why, count in sorted(whys.items()):
        yield (why,), count


def _waiting_oldest(state: ClusterState, now_ms: int) -> Iterator[Labelled]:
    since = [
        entry.since_ms if entry.block is None else entry.block.since_ms
        for entry in state.reassignments.values()
        if entry.block is not None or not entry.in_flight
    ]
    since += [entry.since_ms for entry in state.queue.values()]
    yield (), max(0.0, (now_ms - min(since, default=now_ms)) / 1000)


def _throttles(state: ClusterState, _: int) -> Iterator[Labelled]:
    for broker, throttle in sorted(state.broker_throttles.items()):
        for direction, rate in (("leader", throttle.intended.leader), ("follower", throttle.intended.follower)):
            if rate is not None:
                yield (str(broker), direction), rate


def _throttles_left(state: ClusterState, _: int) -> Iterator[Labelled]:
    yield (), 0 if state.reassignments else len(state.broker_throttles) + len(state.topic_throttles)


def _throttles_refused(state: ClusterState, _: int) -> Iterator[Labelled]:
    brokers = sum(entry.refusal is not None for entry in state.broker_throttles.values())
    yield (), brokers + sum(entry.refusal is not None for entry in state.topic_throttles.values())


def _unmanaged(state: ClusterState, _: int) -> Iterator[Labelled]:
    endless = sum(bool(move.never_ends) for move in state.unmanaged.values())
    yield ("true",), endless
    yield ("false",), len(state.unmanaged) - endless


def _limits(state: ClusterState, _: int) -> Iterator[Labelled]:
    for limit in KNOWN:
        value = value_of(state.limits, limit.name)
        if isinstance(value, int):
            yield (limit.name,), float(value)


# Name: what it says, its labels, and how it is read.
METRICS: dict[str, tuple[str, tuple[str, ...], Callable[[ClusterState, int], Iterable[Labelled]]]] = {
    "reassignments_blocked": ("Reassignments that are blocked, by why", ("cluster", "why"), _blocked),
    "waiting_oldest_seconds": (
        "How long the reassignment or queue entry that has waited longest has waited; 0 if none waits",
        ("cluster",),
        _waiting_oldest,
    ),
    "queue_entries": ("Partitions in the queue", ("cluster",), lambda state, _: [((), len(state.queue))]),
    "broker_throttle_bytes_per_second": (
        "Throttle rates that Drover last decided to write",
        ("cluster", "broker", "direction"),
        _throttles,
    ),
    "throttles_left": (
        "Brokers and topics whose throttles are not put back although nothing moves",
        ("cluster",),
        _throttles_left,
    ),
    "throttles_refused": (
        "Brokers and topics whose throttles Kafka refuses to set or to put back",
        ("cluster",),
        _throttles_refused,
    ),
    "unmanaged_moves": ("Moves that others began", ("cluster", "never_ends"), _unmanaged),
    "frozen": ("1 while the cluster is frozen", ("cluster",), lambda state, _: [((), state.freeze is not None)]),
    "limit": ("The limits in force, by name", ("cluster", "name"), _limits),
    "failed_brokers": ("Brokers reported as failed", ("cluster",), lambda state, _: [((), len(state.failed_brokers))]),
    "unreachable_brokers": (
        "Brokers that live without the listener by which Drover connects",
        ("cluster",),
        lambda state, _: [((), len(state.unreachable_brokers))],
    ),
    "listed_brokers": ("Brokers that should not lead", ("cluster",), lambda state, _: [((), len(state.blacklist))]),
    "out_of_reach": (
        "1 while the cluster is out of reach, as the log says",
        ("cluster",),
        lambda state, _: [((), state.outage is not None)],
    ),
    "mismatched_cluster": (
        "1 while another Kafka cluster answers under the name",
        ("cluster",),
        lambda state, _: [((), state.mismatched_kafka_cluster_id is not None)],
    ),
}
