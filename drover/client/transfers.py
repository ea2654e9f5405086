"""PURE: amounts, a smoothed rate and an estimated end of copies, from byte samples of moving partitions."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from drover.decide.copy_pace import HALF_MS
from drover.events.partitions import TopicPartition
from drover.events.progress import Progress

WINDOW_MS = 15_000
# A rate is shown only while samples keep coming: one within this time, or within this many times their usual interval.
FRESH_MS = 5_000
FRESH_SAMPLES = 3
# Copies proceed in bursts, so that a verdict needs a long history: as long as the owner's own verdict (L6) needs.
HISTORY_MS = 2 * HALF_MS + WINDOW_MS
# Below this much history a rate would be a guess.
LEAST_SPAN_MS = 500


class Amounts(Protocol):
    """The amounts in a byte sample of a copying step, from which rates are computed."""

    @property
    def at_ms(self) -> int:
        """When the sample was taken, in ms since the epoch."""
        ...

    @property
    def bytes_done(self) -> int:
        """Bytes on disk of the replicas that are being added."""
        ...

    @property
    def bytes_total(self) -> int:
        """Bytes that these replicas will have when they are in sync."""
        ...


@dataclass(frozen=True, slots=True)
class Transfer:
    """The progress of one step's copies.

    `rate` is bytes copied per second over the last seconds. `closing_rate` is the bytes per second by which the rest
    shrank: less than `rate` while producers write, and negative if they write faster than the copies proceed. Both are
    None if there are too few samples or the last one is too old. `falls_behind` says that the rest has grown for a
    minute, `has_stalled` that no byte was copied for a minute although some are left. `at_ms` is the time of the last
    sample.
    """

    step: int
    bytes_done: int
    bytes_total: int
    rate: float | None
    closing_rate: float | None
    at_ms: int
    falls_behind: bool = False
    has_stalled: bool = False

    @property
    def remaining_ms(self) -> int | None:
        """The estimated time for the rest; None if it cannot be estimated."""
        left = max(0, self.bytes_total - self.bytes_done)
        if left == 0:
            return 0
        if self.closing_rate is None or self.closing_rate <= 0:
            return None
        return round(left / self.closing_rate * 1000)


@dataclass(frozen=True, slots=True)
class Arriving:
    """The copies of one step: the broker that sends them, None without a leader, and bytes per second by receiver."""

    source: int | None
    rates: dict[int, float]


class Transfers:
    """The latest samples of one or more clusters; samples of former owners are dropped."""

    def __init__(self) -> None:
        self._epochs: dict[str, int] = {}
        self._samples: dict[tuple[str, TopicPartition], deque[Progress]] = {}

    def see(self, sample: Progress) -> None:
        """Add a sample; repeated and late samples are harmless."""
        epoch = self._epochs.get(sample.cluster, 0)
        if sample.epoch < epoch:
            return
        self._epochs[sample.cluster] = sample.epoch
        samples = self._samples.setdefault((sample.cluster, sample.key), deque())
        if samples and _stretch(samples[-1]) != _stretch(sample):
            samples.clear()
        if samples and sample.at_ms <= samples[-1].at_ms:
            return
        samples.append(sample)
        while samples[-1].at_ms - samples[0].at_ms > HISTORY_MS:
            samples.popleft()

    def forget_before(self, at_ms: int) -> None:
        """Drop the moves whose last sample is older than this, so that a long-running reader does not grow."""
        old = [place for place, samples in self._samples.items() if samples[-1].at_ms < at_ms]
        for place in old:
            del self._samples[place]

    def arriving(
        self, cluster: str, key: TopicPartition, step: int, now_ms: int = 0, since_ms: int = 0
    ) -> Arriving | None:
        """Return who sends this step's copies and how fast each broker receives; None without enough samples.

        `since_ms` is when the reassignment was accepted; older samples belong to an earlier reassignment.
        """
        samples = self._of(cluster, key, step, since_ms)
        if not samples:
            return None
        last = samples[-1]
        recent = [sample for sample in samples if last.at_ms - sample.at_ms <= WINDOW_MS]
        first = recent[0]
        span_ms = last.at_ms - first.at_ms
        if span_ms < LEAST_SPAN_MS or _is_stale(recent, now_ms):
            return None
        before = {replica.broker: replica.bytes for replica in first.adding}
        rates = {
            replica.broker: max(0, replica.bytes - before.get(replica.broker, replica.bytes)) / span_ms * 1000
            for replica in last.adding
        }
        return Arriving(last.leader, rates)

    def transfer(
        self, cluster: str, key: TopicPartition, step: int, now_ms: int = 0, since_ms: int = 0
    ) -> Transfer | None:
        """Return the progress of a partition's step at `now_ms` (wall clock); None without a sample of it.

        `since_ms` is when the reassignment was accepted; older samples belong to an earlier reassignment.
        """
        samples = self._of(cluster, key, step, since_ms)
        if not samples:
            return None
        last = samples[-1]
        recent = [sample for sample in samples if last.at_ms - sample.at_ms <= WINDOW_MS]
        first = recent[0]
        if _is_stale(recent, now_ms):
            return Transfer(step, last.bytes_done, last.bytes_total, None, None, last.at_ms)
        rate, closing_rate = rates_between(first, last)
        falls_behind, has_stalled = _falls_behind(samples), _has_stalled(samples)
        return Transfer(
            step, last.bytes_done, last.bytes_total, rate, closing_rate, last.at_ms, falls_behind, has_stalled
        )

    def _of(self, cluster: str, key: TopicPartition, step: int, since_ms: int) -> Sequence[Progress]:
        samples = self._samples.get((cluster, key), ())
        if not samples or samples[-1].step != step:
            return ()
        # A sample does not name its reassignment: an earlier one of the same partition may have had the same step.
        return samples if samples[0].at_ms >= since_ms else [sample for sample in samples if sample.at_ms >= since_ms]


def rates_between(first: Amounts, last: Amounts) -> tuple[float | None, float | None]:
    """Return the bytes copied per second between two samples of a step, and those by which the rest shrank.

    Both are None if the samples are less than `LEAST_SPAN_MS` apart. The first is never negative, although a replica
    shrinks when it is truncated. The same brokers must have bytes in both samples.
    """
    span_ms = last.at_ms - first.at_ms
    if span_ms < LEAST_SPAN_MS:
        return None, None
    copied = last.bytes_done - first.bytes_done
    grown = last.bytes_total - first.bytes_total
    return max(0, copied) / span_ms * 1000, (copied - grown) / span_ms * 1000


def _stretch(sample: Progress) -> tuple[int, int, frozenset[int]]:
    """Return the properties that two samples must share to be compared.

    The brokers with bytes are among them: a broker that dies drops to no bytes, and returns with all of them.
    """
    return sample.epoch, sample.step, frozenset(replica.broker for replica in sample.adding if replica.bytes)


def _is_stale(recent: Sequence[Progress], now_ms: int) -> bool:
    return now_ms - recent[-1].at_ms > max(FRESH_MS, FRESH_SAMPLES * _pace_ms(recent))


def _pace_ms(samples: Sequence[Progress]) -> float:
    return (samples[-1].at_ms - samples[0].at_ms) / max(1, len(samples) - 1)


def _falls_behind(samples: Sequence[Progress]) -> bool:
    """Whether the rest has not shrunk in either half of a minute while producers wrote."""
    last = samples[-1]
    middle = next((sample for sample in reversed(samples) if last.at_ms - sample.at_ms >= HALF_MS), None)
    first = next((sample for sample in reversed(samples) if last.at_ms - sample.at_ms >= 2 * HALF_MS), None)
    if first is None or middle is None or last.bytes_total <= first.bytes_total:
        return False
    lacks = [sample.bytes_total - sample.bytes_done for sample in (first, middle, last)]
    return lacks[2] > 0 and lacks[0] <= lacks[1] <= lacks[2]


def _has_stalled(samples: Sequence[Progress]) -> bool:
    """Whether the samples of a whole minute show no more bytes than the first of them."""
    last = samples[-1]
    first = next((sample for sample in reversed(samples) if last.at_ms - sample.at_ms >= 2 * HALF_MS), None)
    return first is not None and first.bytes_done >= last.bytes_done < last.bytes_total
