"""PURE: byte samples of moving partitions, turned into amounts, a smoothed rate and a time of arrival."""

from collections import deque
from dataclasses import dataclass

from events.partitions import TopicPartition
from events.progress import Progress

WINDOW_MS = 15_000
# Below this much history a rate would be a guess.
LEAST_SPAN_MS = 500


@dataclass(frozen=True, slots=True)
class Transfer:
    """How far one step's copying is.

    `rate` is bytes copied per second over the last seconds, `closing_rate` by how much per second the rest shrank: less
    than `rate` while producers write on, negative when they write faster than is copied. Both are None when there are
    too few samples.
    """

    step: int
    bytes_done: int
    bytes_total: int
    rate: float | None
    closing_rate: float | None
    at_ms: int

    @property
    def remaining_ms(self) -> int | None:
        """How long the rest takes; None when that cannot be told."""
        left = max(0, self.bytes_total - self.bytes_done)
        if left == 0:
            return 0
        if self.closing_rate is None or self.closing_rate <= 0:
            return None
        return round(left / self.closing_rate * 1000)


class Transfers:
    """The latest samples of one or more clusters; samples of an owner that was replaced are dropped."""

    def __init__(self) -> None:
        self._epochs: dict[str, int] = {}
        self._samples: dict[tuple[str, TopicPartition], deque[Progress]] = {}

    def see(self, sample: Progress) -> None:
        """Take note of one sample; repeats and late ones are harmless."""
        epoch = self._epochs.get(sample.cluster, 0)
        if sample.epoch < epoch:
            return
        self._epochs[sample.cluster] = sample.epoch
        samples = self._samples.setdefault((sample.cluster, sample.key), deque())
        if samples and (samples[-1].step != sample.step or samples[-1].epoch != sample.epoch):
            samples.clear()
        if samples and sample.at_ms <= samples[-1].at_ms:
            return
        samples.append(sample)
        while samples[-1].at_ms - samples[0].at_ms > WINDOW_MS:
            samples.popleft()

    def transfer(self, cluster: str, key: TopicPartition, step: int) -> Transfer | None:
        """Tell how far this step of a partition is; None without a sample of it."""
        samples = self._samples.get((cluster, key))
        if not samples or samples[-1].step != step:
            return None
        first, last = samples[0], samples[-1]
        span_ms = last.at_ms - first.at_ms
        rate = closing_rate = None
        if span_ms >= LEAST_SPAN_MS:
            rate = (last.bytes_done - first.bytes_done) / span_ms * 1000
            closed = (first.bytes_total - first.bytes_done) - (last.bytes_total - last.bytes_done)
            closing_rate = closed / span_ms * 1000
        return Transfer(step, last.bytes_done, last.bytes_total, rate, closing_rate, last.at_ms)
