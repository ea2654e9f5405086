"""docs/metrics.md, made from the metrics themselves: `python -m drover.agents.metrics_document > docs/metrics.md`."""

from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from drover.agents.state_metrics import METRICS, StateMetrics
from drover.service.metrics import Metrics

_HEAD = """# Metrics

What a worker serves at `/metrics`, for Prometheus. `python -m drover.agents.metrics_document > docs/metrics.md` makes
this file; a test compares both. Besides these there are `process_cpu_seconds_total`, `process_resident_memory_bytes`,
`process_open_fds` and the others of every process.

Metrics of a cluster come from the worker that owns its shard, and from no other one: sum over workers. No label has
more values than there are clusters, brokers, shards, topics or kinds.
[Alert rules](../docker/prometheus/drover.rules.yml) and a [dashboard for Grafana](../docker/grafana/drover.json) use
them.
"""


def metrics_document() -> str:
    """Return the document."""
    metrics = Metrics()
    rows = [
        *_wrapped(metrics),
        *((f"drover_{name}", "gauge", text, labels) for name, (text, labels, _) in METRICS.items()),
    ]
    lines = [_HEAD, "| metric | kind | labels | what it says |", "| --- | --- | --- | --- |"]
    for name, kind, text, labels in sorted(rows):
        named = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {kind} | {named} | {text} |")
    return "\n".join(lines) + "\n"


def _wrapped(metrics: Metrics) -> list[tuple[str, str, str, tuple[str, ...]]]:
    rows = []
    for collector in _collectors(metrics):
        assert isinstance(collector, MetricWrapperBase), "Drover makes counters, gauges and histograms"
        (family,) = collector.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = tuple(collector._labelnames)  # noqa: SLF001 - it has no public name
        rows.append((name, family.type, family.documentation, labels))
    return rows


def _collectors(metrics: Metrics) -> list[Collector]:
    named = metrics.registry._names_to_collectors.items()  # noqa: SLF001 - it has no public name
    collectors = {id(collector): collector for name, collector in named if name.startswith("drover_")}
    return [collector for collector in collectors.values() if not isinstance(collector, StateMetrics)]


if __name__ == "__main__":
    print(metrics_document(), end="")  # noqa: T201 - what it is for
