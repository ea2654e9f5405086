"""The worker's counters and gauges, independent of their reporters and of the server."""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from time import monotonic

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from drover import __version__

APPEND_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OUTCOME_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# From a second to a day.
DURATION_BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)
CONTENT_TYPE = CONTENT_TYPE_LATEST

# Drop the creation times of series, which double their number and are not used.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it alone has no types


class Metrics:
    """The worker's metrics; one object per process, its methods are cheap and called from the event loop.

    Every name begins with `drover_`, except those of the process itself; no label has more values than there are
    shards, topics, clusters, brokers or kinds. docs/metrics.md is made from this.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        ProcessCollector(registry=self.registry)
        build = self._gauge("build_info", "1, with the version as label", "version")
        build.labels(__version__).set(1)
        self._commands = self._counter("commands", "Commands decided, by type and verdict", "type", "verdict")
        self._batches = self._counter("batches_appended", "Valid batches appended to the log", "shard")
        self._append = self._histogram(
            "append_seconds", "From producing a batch to its acknowledgement", APPEND_BUCKETS
        )
        self._outcome = self._histogram(
            "command_outcome_seconds", "From a command's record to the record of its outcome", OUTCOME_BUCKETS, "type"
        )
        self._ended = self._counter(
            "reassignments_ended", "Reassignments that have ended, by how", "cluster", "outcome"
        )
        self._duration = self._histogram(
            "reassignment_seconds", "From accepting a reassignment to its end", DURATION_BUCKETS, "cluster", "outcome"
        )
        self._copied = self._counter(
            "copied_bytes", "Bytes that confirmed steps and completed reassignments have copied, as sampled", "cluster"
        )
        self._remaining = self._gauge(
            "copy_remaining_bytes", "Bytes that running steps still have to copy, as sampled last", "cluster"
        )
        self._fenced = self._counter("batches_fenced", "Batches of this worker that another owner fenced", "shard")
        self._log_shards = self._gauge("log_shards", "Shards of the log")
        self._owned = self._gauge("shards_owned", "Shards this worker owns")
        self._damaged = self._gauge("shard_damaged", "Whether the shard's log has a record that stops it", "shard")
        self._inbox = self._gauge("inbox_commands", "Commands that have arrived and are not yet durable", "shard")
        self._reassignments = self._gauge("reassignments", "Reassignments under way", "cluster", "phase")
        self._calls = self._counter("calls", "Calls to managed clusters", "cluster", "kind", "result")
        self._observations = self._counter("observations", "Looks at managed clusters", "cluster", "result")
        self._dead_letters = self._counter("dead_letters", "Records that are not commands", "topic")
        self._dead_letters_lost = self._counter(
            "dead_letters_lost", "Dead letters that could not be written; the records remain in their topic", "shard"
        )
        self._forwarded = self._counter("forwarded", "Commands sent on to their own shard", "topic")
        self._snapshots = self._counter("snapshots", "Snapshots of shards, by result", "shard", "result")
        self._snapshot_age = self._gauge(
            "snapshot_age_seconds", "Since this worker last wrote a snapshot; absent until it has", "shard"
        )
        self._position = self._gauge("log_position", "Next offset of the event log to fold", "shard")
        self._undecided = self._gauge("commands_undecided", "Commands that are not decided yet", "topic", "shard")
        self._make_projection()
        self._phases: dict[str, set[str]] = {}

    def _make_projection(self) -> None:
        self._projected = self._counter("projected_events", "Events whose documents are in ZooKeeper", "cluster")
        self._nodes = self._counter("projected_nodes", "Nodes written to ZooKeeper", "cluster")
        self._failures = self._counter(
            "projection_failures", "Requests that ZooKeeper did not carry out", "cluster", "kind"
        )
        self._drift = self._counter("projection_drift", "Nodes that others had changed, repaired", "cluster")
        self._projection_lag = self._gauge("projection_lag_events", "Events that are not in ZooKeeper yet", "cluster")
        self._projection_age = self._gauge("projection_lag_seconds", "Age of the oldest of them", "cluster")
        self._projecting = self._gauge("projection_writing", "Whether this process writes the tree", "cluster")
        self._away = self._gauge("brokers_away", "Brokers that replica lists name and that are not alive", "cluster")
        self._alarmed = self._gauge("brokers_away_alarmed", "Those that are away for longer than the alarm", "cluster")
        self._unhealed = self._gauge("partitions_unhealed", "Partitions that cannot be healed now", "cluster")

    def commands_decided(self, type_: str, verdict: str, count: int) -> None:
        """Count decided commands."""
        self._commands.labels(type_, verdict).inc(count)

    def outcomes_recorded(self, type_: str, waits_s: Iterable[float]) -> None:
        """Observe how long each command of a type waited for the record of its outcome."""
        outcome = self._outcome.labels(type_)
        for seconds in waits_s:
            outcome.observe(max(0.0, seconds))

    def reassignment_ended(self, cluster: str, outcome: str, seconds: float) -> None:
        """Count one reassignment that has ended: `outcome` is completed, rolled-back, stopped or failed."""
        self._ended.labels(cluster, outcome).inc()
        self._duration.labels(cluster, outcome).observe(max(0.0, seconds))

    def copied(self, cluster: str, amount: int) -> None:
        """Count bytes that were copied."""
        self._copied.labels(cluster).inc(max(0, amount))

    def copy_remaining(self, cluster: str, amount: int) -> None:
        """Set the bytes that the running steps still have to copy."""
        self._remaining.labels(cluster).set(amount)

    def expect(self, shards: int, topics: Collection[str], clusters: Collection[str]) -> None:
        """Start the series of alerts at 0, because Prometheus does not see the first increase of a new series."""
        self._log_shards.set(shards)
        for shard in range(shards):
            self._fenced.labels(str(shard))
        for topic in topics:
            self._dead_letters.labels(topic)
        for cluster in clusters:
            for result in ("ok", "failed"):
                self._observations.labels(cluster, result)
            self._copied.labels(cluster)

    def collect(self, collector: Collector) -> None:
        """Add a collector of metrics that are read at each scrape."""
        self.registry.register(collector)

    def batch_appended(self, shard: int, seconds: float) -> None:
        """Count one batch that was folded as valid, and how long its append took."""
        self._batches.labels(str(shard)).inc()
        self._append.observe(seconds)

    def batch_fenced(self, shard: int) -> None:
        """Count one batch that was fenced because another owner has taken the shard."""
        self._fenced.labels(str(shard)).inc()

    def shards_owned(self, count: int) -> None:
        """Set the number of shards that this worker owns."""
        self._owned.set(count)

    def shard_damaged(self, shard: int, *, is_damaged: bool) -> None:
        """Set whether a shard is stopped because its log is damaged."""
        self._damaged.labels(str(shard)).set(is_damaged)

    def inbox_size(self, shard: int, commands: int) -> None:
        """Set the number of commands in a shard's inbox."""
        self._inbox.labels(str(shard)).set(commands)

    def reassignments(self, cluster: str, counts: Mapping[str, int]) -> None:
        """Set the number of a cluster's reassignments in each phase; missing phases have none."""
        phases = self._phases.setdefault(cluster, set())
        phases.update(counts)
        for phase in phases:
            self._reassignments.labels(cluster, phase).set(counts.get(phase, 0))

    def healing(self, cluster: str, *, away: int, alarmed: int, unhealed: int) -> None:
        """Set the numbers of brokers away, of those with an alarm, and of partitions that cannot be healed."""
        self._away.labels(cluster).set(away)
        self._alarmed.labels(cluster).set(alarmed)
        self._unhealed.labels(cluster).set(unhealed)

    def cluster_left(self, cluster: str) -> None:
        """Drop a cluster's series, because this worker has lost its shard and the next owner exposes them."""
        for phase in self._phases.pop(cluster, ()):
            _forget(self._reassignments, cluster, phase)
        for gauge in (self._remaining, self._away, self._alarmed, self._unhealed):
            _forget(gauge, cluster)

    def call_ended(self, cluster: str, kind: str, result: str) -> None:
        """Count one call: `result` is accepted, rejected, lapsed or lost."""
        self._calls.labels(cluster, kind, result).inc()

    def observed(self, cluster: str, result: str = "ok") -> None:
        """Count one observation of a cluster: `result` is ok or failed."""
        self._observations.labels(cluster, result).inc()

    def dead_lettered(self, topic: str) -> None:
        """Count one record of a command topic that is not a command."""
        self._dead_letters.labels(topic).inc()

    def dead_letters_lost(self, shard: int, count: int) -> None:
        """Count dead letters that may be missing."""
        self._dead_letters_lost.labels(str(shard)).inc(count)

    def forwarded(self, topic: str) -> None:
        """Count one command that was in another shard's partition."""
        self._forwarded.labels(topic).inc()

    def snapshot_ended(self, shard: int, result: str) -> None:
        """Count one snapshot: `result` is written or failed."""
        self._snapshots.labels(str(shard), result).inc()
        if result == "written":
            written_s = monotonic()
            self._snapshot_age.labels(str(shard)).set_function(lambda: monotonic() - written_s)

    def log_position(self, shard: int, offset: int) -> None:
        """Set the position up to which a shard is folded."""
        self._position.labels(str(shard)).set(offset)

    def commands_undecided(self, topic: str, shard: int, commands: int) -> None:
        """Set the number of undecided commands of a partition."""
        self._undecided.labels(topic, str(shard)).set(commands)

    def shard_left(self, shard: int, topics: Collection[str]) -> None:
        """Drop the undecided commands of a shard that another worker owns. Idempotent."""
        for topic in topics:
            _forget(self._undecided, topic, str(shard))

    def projected(self, cluster: str, events: int, operations: int) -> None:
        """Count one transaction of the projection."""
        self._projected.labels(cluster).inc(events)
        self._nodes.labels(cluster).inc(operations)

    def projection_failed(self, cluster: str, kind: str) -> None:
        """Count one failure of the projection's store; `kind` is the error's class."""
        self._failures.labels(cluster, kind).inc()

    def projection_drifted(self, cluster: str, nodes: int) -> None:
        """Count nodes of the projection that others have changed."""
        self._drift.labels(cluster).inc(nodes)

    def projection(self, cluster: str, *, lag_events: int, lag_seconds: float, is_writing: bool) -> None:
        """Set the lag of a cluster's projection, and whether this process writes it."""
        self._projection_lag.labels(cluster).set(lag_events)
        self._projection_age.labels(cluster).set(lag_seconds)
        self._projecting.labels(cluster).set(is_writing)

    def render(self) -> bytes:
        """Return everything in Prometheus' text format (`CONTENT_TYPE`)."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"drover_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"drover_{name}", text, labels, buckets=buckets, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"drover_{name}", text, labels, registry=self.registry)


def _forget(gauge: Gauge, *labels: str) -> None:
    """Drop a series, if it exists."""
    with contextlib.suppress(KeyError):  # some versions of the library complain about one that is not
        gauge.remove(*labels)
