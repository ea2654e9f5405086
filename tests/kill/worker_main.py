"""A worker process for the kill tests: real log and group, no managed cluster.

usage: python -m tests.kill.worker_main BOOTSTRAP PREFIX NAME SESSION_TIMEOUT_S CLUSTERS [INSTANCE_ID]
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from drover.capability.messages import Effect
from drover.journal.connection import LogConnection
from drover.journal.port import Journal
from drover.runtime.metrics import Metrics
from drover.runtime.worker import WorkerOptions, run_worker
from drover.scheduling.state import Limits
from drover.shard.core import ShardCore
from events.partitions import TopicPartition
from events.topics import TopicNames


class NoClusters:
    """Every cluster is out of reach, and nothing is ever called."""

    async def gather(self, _core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        return dict.fromkeys(needed, "there is no cluster in this test")

    def start(self, _core: ShardCore, effects: Sequence[Effect], _wake: Callable[[], None]) -> None:
        assert not effects, f"no effect was expected: {effects}"

    def own(self, _core: ShardCore, _wake: Callable[[], None]) -> None: ...

    def disown(self, _core: ShardCore) -> None: ...

    async def close(self) -> None: ...


def no_clusters(_journal: Journal, _metrics: Metrics) -> NoClusters:
    return NoClusters()


def main() -> int:
    bootstrap, prefix, name, session_timeout_s, clusters, *instance_id = sys.argv[1:]
    options = WorkerOptions(
        connection=LogConnection(bootstrap, TopicNames(prefix)),
        name=name,
        group=f"{prefix}-worker",
        clusters=dict.fromkeys(clusters.split(","), Limits(1250, 5, 1)),
        session_timeout_s=float(session_timeout_s),
        instance_id=instance_id[0] if instance_id else None,
    )
    return run_worker(options, no_clusters)


if __name__ == "__main__":
    sys.exit(main())
