"""The log directories of a model cluster: cordons, and directories that fail with the replicas in them."""

from collections.abc import Collection
from dataclasses import replace

from drover.events.partitions import TopicPartition
from drover.facts import KAFKA_STORAGE_ERROR
from drover.inventory import LogDirectory
from drover.testing.controller_model import without
from drover.testing.model_state import ModelState

DISK_BYTES = 1 << 40
WORKING, FAILED = "/simulated", "/simulated-failed"


class ModelDirectories:
    """The log directories of every broker: a working one of `DISK_BYTES`, and a second one while it has failed."""

    def __init__(self, state: ModelState) -> None:
        self._state = state
        self._cordoned: set[int] = set()
        self._failed: set[int] = set()

    def cordon(self, broker: int, *, cordoned: bool = True) -> None:
        """Cordon all log directories of a broker (KIP-1066), or end that; Kafka moves replicas there all the same."""
        (self._cordoned.add if cordoned else self._cordoned.discard)(broker)

    def fail(self, broker: int, partitions: Collection[TopicPartition]) -> None:
        """Let the directory fail that holds these partitions' replicas on a broker.

        They stop fetching and leave the ISR, and other replicas lead. The broker stays alive.
        """
        self._failed.add(broker)
        for partition in sorted(partitions):
            self._state.offline[partition, broker] = None
            before = self._state.partition(partition)
            if before is not None and broker in before.isr:
                self._state.settle(partition, replace(before, isr=without(before.isr, [broker])))

    def repair(self, broker: int) -> None:
        """Repair the failed directory of a broker; its replicas continue with the records that they have."""
        self._failed.discard(broker)
        for partition, where in list(self._state.offline):
            if where == broker:
                del self._state.offline[partition, where]

    def of(self, broker: int, used_bytes: int) -> tuple[LogDirectory, ...]:
        """Return the directories of a broker that holds so many bytes, as DescribeLogDirs shows them."""
        working = LogDirectory(WORKING, DISK_BYTES, DISK_BYTES - used_bytes, is_cordoned=broker in self._cordoned)
        failed = LogDirectory(FAILED, None, None, code=KAFKA_STORAGE_ERROR)
        return (working, failed) if broker in self._failed else (working,)
