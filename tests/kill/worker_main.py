"""A worker process for the kill tests: real log and group, no managed cluster.

usage: python -m tests.kill.worker_main BOOTSTRAP PREFIX NAME SESSION_TIMEOUT_S CLUSTERS [INSTANCE_ID]
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from drover.agents.wiring import serve
from drover.events.partitions import TopicPartition
from drover.journal.port import Journal
from drover.reconcile.messages import Effect
from drover.service.metrics import Metrics
from drover.settings.settings import ClusterSettings, LogSettings, Settings, WorkerSettings
from drover.shard.core import ShardCore


class NoClusters:
    """Every cluster is out of reach, and nothing is ever called."""

    async def gather(self, _core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        return dict.fromkeys(needed, "there is no cluster in this test")

    def start(self, _core: ShardCore, effects: Sequence[Effect], _wake: Callable[[], None]) -> None:
        assert not effects, f"no effect was expected: {effects}"

    def own(self, _core: ShardCore, _wake: Callable[[], None]) -> None: ...

    def disown(self, _core: ShardCore) -> None: ...

    async def close(self) -> None: ...


def no_clusters(_settings: Settings, _journal: Journal, _metrics: Metrics) -> NoClusters:
    return NoClusters()


def main() -> int:
    bootstrap, prefix, name, session_timeout_s, clusters, *instance_id = sys.argv[1:]
    settings = Settings(
        LogSettings(bootstrap, prefix),
        clusters=dict.fromkeys(clusters.split(","), ClusterSettings("127.0.0.1:1")),
        worker=WorkerSettings(
            name=name,
            instance_id=instance_id[0] if instance_id else None,
            session_timeout_ms=round(float(session_timeout_s) * 1000),
            listen="127.0.0.1:0",
            snapshot_every_records=0,
        ),
    )
    return serve(settings, no_clusters)


if __name__ == "__main__":
    sys.exit(main())
