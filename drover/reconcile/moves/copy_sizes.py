"""The owner's cache of samples of log directories: sizes, and replicas in failed ones. Times are monotonic."""

from collections.abc import Iterator, Mapping

from drover.decide.copy_pace import SizeSample, remember
from drover.events.partitions import TopicPartition
from drover.inventory import LogDirectory
from drover.reconcile.messages import BytesSampled
from drover.reconcile.observations import METADATA_LAG_MS, ObservationCache
from drover.state.moves import ReassignmentState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment, Step

# How long the size of a waiting partition is good enough.
REFRESH_MS = 60_000


class CopySizes:
    """Measured sizes of partitions that are being copied, or wait for it."""

    def __init__(self, observed: ObservationCache) -> None:
        self._observed = observed
        self._last: dict[TopicPartition, Mapping[int, int]] = {}
        self._of_step: dict[TopicPartition, tuple[SizeSample, ...]] = {}
        self._failures: dict[TopicPartition, Mapping[int, tuple[LogDirectory, ...]]] = {}
        # Topics of waiting partitions without a size; all other sizes are read again once in a while.
        self._unsized: dict[str, None] = {}
        self._refreshed_ms: int | None = None

    def waits(self, key: TopicPartition) -> None:
        """Note a partition that waits to be copied."""
        if key not in self._last:
            self._unsized[key.topic] = None

    @property
    def is_read(self) -> bool:
        """Whether sizes are being sampled."""
        return self._refreshed_ms is not None

    def topics_to_sample(self, state: ReassignmentState, now_ms: int) -> frozenset[str]:
        """Take the topics whose waiting partitions have no size yet, or an old one."""
        topics = frozenset(self._unsized)
        self._unsized.clear()
        if self._refreshed_ms is None or now_ms - self._refreshed_ms >= REFRESH_MS:
            self._refreshed_ms = now_ms
            topics |= frozenset(key.topic for key in state.moves.pending)
        return topics

    def copy_bytes(self, key: TopicPartition) -> int | None:
        """Return the size of the partition's largest copy, by the last sample; None if it was never measured."""
        sizes = self._last.get(key)
        return max(sizes.values()) if sizes else None

    def of_next(self, reassignment: Reassignment) -> int | None:
        """Return the size that a copy of the next step counts as: a prepared step's own, else the last sample."""
        held = reassignment.weighing_step
        return self.copy_bytes(reassignment.key) if held is None else held.copy_bytes

    def sample(self, sampled: BytesSampled, state: ReassignmentState) -> Iterator[TopicPartition]:
        """Add sizes, which are read by topic; of partitions that are being copied, earlier samples are kept too.

        Yields the partitions of which a copy was lost with its log directory, or is back.
        """
        self._last.update(sampled.sizes)
        for key, sizes in sampled.sizes.items():
            reassignment = state.reassignments.get(key)
            if reassignment is not None and reassignment.phase is Phase.COPYING:
                self.measured(key, SizeSample(sampled.started_ms, sizes))
                if self._note_failures(key, reassignment.step, sampled):
                    yield key

    def _note_failures(self, key: TopicPartition, step: Step | None, sampled: BytesSampled) -> bool:
        """Note the replicas missing on brokers with failed log directories; return whether they have changed.

        Samples from just after the last call are ignored, since a broker creates an added replica a little later. Of a
        broker that did not answer, the sample before still counts.
        """
        made_by_ms = self._observed.call_ended_ms(key) + METADATA_LAG_MS
        if step is None or self._observed.is_calling(key) or sampled.started_ms < made_by_ms:
            return False
        before, shown = self._failures.get(key), sampled.sizes[key]
        failures: dict[int, tuple[LogDirectory, ...]] = {}
        for broker in step.replicas:
            directories = sampled.directories.get(broker)
            if directories is None:
                failed = (before or {}).get(broker, ())
            else:
                failed = tuple(directory for directory in directories if directory.code) if broker not in shown else ()
            if failed:
                failures[broker] = failed
        self._failures[key] = failures
        return failures != (before or {})

    def failures_of(self, key: TopicPartition) -> Mapping[int, tuple[LogDirectory, ...]] | None:
        """Return by broker the failed log directories where a replica of the running step is missing.

        None if there is no sample from after the last call.
        """
        return self._failures.get(key)

    def measured(self, key: TopicPartition, sample: SizeSample) -> None:
        """Keep sizes of a partition that is being copied, unless they were read before its last call ended."""
        if not self._observed.is_calling(key) and sample.taken_ms >= self._observed.call_ended_ms(key):
            self._of_step[key] = remember(self._of_step.get(key, ()), sample)

    def of_step(self, key: TopicPartition) -> tuple[SizeSample, ...]:
        """Return the samples of a partition since its last call, in order."""
        return self._of_step.get(key, ())

    def has_sample(self, reassignment: Reassignment) -> bool:
        """Whether a copy of the running step was measured; a step that adds nothing needs no sample."""
        step, sizes = reassignment.step, self._last.get(reassignment.key)
        if step is None or not step.adding:
            return True
        return sizes is not None and (step.leader in sizes or any(broker in sizes for broker in step.adding))

    def bytes_copied(self, reassignment: Reassignment) -> int:
        """Count the bytes of the running step's copies by the last sample; 0 if none was taken.

        A copy that has joined the ISR is as large as the leader's replica, so the leader's size stands for all copies.
        """
        step, sizes = reassignment.step, self._last.get(reassignment.key)
        if step is None or sizes is None:
            return 0
        if step.leader is not None and step.leader in sizes:
            return sizes[step.leader] * len(step.adding)
        return sum(sizes.get(broker, 0) for broker in step.adding)

    def call_starts(self, key: TopicPartition) -> None:
        """Drop the samples of the previous step."""
        self._of_step.pop(key, None)
        self._failures.pop(key, None)

    def forget(self, key: TopicPartition) -> None:
        """Drop a partition whose reassignment has ended."""
        self._last.pop(key, None)
        self._of_step.pop(key, None)
        self._failures.pop(key, None)
