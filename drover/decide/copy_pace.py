"""Whether a copy gains on its leader, by sizes on disk that were measured over a minute (L6); pure.

Sizes are telemetry, not truth: no call depends on them. They are a reason to report that a copy cannot end. That report
is recorded, so that a replay needs no sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Kafka averages a throttle over about eleven seconds and lets each fetch through whole: half a minute is far longer.
# Two halves must agree, since producers send in bursts and one burst is no trend.
HALF_MS = 30_000
# Twelve samples a minute tell a trend as well as sixty.
SPACING_MS = 5000


@dataclass(frozen=True, slots=True)
class SizeSample:
    """Bytes on disk of one partition by broker, read at `taken_ms` (the owner's monotonic clock)."""

    taken_ms: int
    sizes: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CopyPace:
    """How fast one copy and its leader grew in two halves of a minute; rates in bytes per second.

    Neither flag is set if the copy gained in one half only.
    """

    broker: int
    leader_rate: int
    copy_rate: int
    falls_behind: bool
    catches_up: bool


def remember(samples: tuple[SizeSample, ...], sample: SizeSample) -> tuple[SizeSample, ...]:
    """Add a sample, unless the last one is too young, and drop what is older than two halves need."""
    if samples and sample.taken_ms - samples[-1].taken_ms < SPACING_MS:
        return samples
    kept = (*samples, sample)
    while _halves(kept[1:]) is not None:
        kept = kept[1:]
    return kept


def pace(samples: Sequence[SizeSample], leader: int, broker: int) -> CopyPace | None:
    """Measure the copy on `broker` against its leader; None while there are not two halves of half a minute.

    Only a stretch counts in which both sizes are known and neither falls: a size that falls was truncated, deleted by
    retention or compacted, and says nothing about copying. A leader that does not grow can be caught up with at any
    rate, so no copy falls behind it.
    """
    ends = _halves(_stretch(samples, leader, broker))
    if ends is None:
        return None
    first, _, last = ends
    lacks = [max(0, sample.sizes[leader] - sample.sizes[broker]) for sample in ends]
    elapsed_ms = last.taken_ms - first.taken_ms
    growth = last.sizes[leader] - first.sizes[leader]
    return CopyPace(
        broker=broker,
        leader_rate=growth * 1000 // elapsed_ms,
        copy_rate=(last.sizes[broker] - first.sizes[broker]) * 1000 // elapsed_ms,
        falls_behind=growth > 0 and lacks[2] > 0 and lacks[0] <= lacks[1] <= lacks[2],
        catches_up=not lacks[2] or lacks[0] > lacks[1] > lacks[2],
    )


def rate_in_words(bytes_per_second: int) -> str:
    """Format a rate for people, in decimal units."""
    if bytes_per_second >= 1_000_000:
        return f"{bytes_per_second / 1_000_000:.1f} MB/s"
    return f"{bytes_per_second / 1000:.1f} kB/s" if bytes_per_second >= 1000 else f"{bytes_per_second} B/s"


def _halves(samples: Sequence[SizeSample]) -> tuple[SizeSample, SizeSample, SizeSample] | None:
    if not samples:
        return None
    first, last = samples[0], samples[-1]
    middle = next((sample for sample in samples if sample.taken_ms - first.taken_ms >= HALF_MS), None)
    if middle is None or last.taken_ms - middle.taken_ms < HALF_MS:
        return None
    return first, middle, last


def _stretch(samples: Sequence[SizeSample], leader: int, broker: int) -> Sequence[SizeSample]:
    start = 0
    for place, sample in enumerate(samples):
        if leader not in sample.sizes or broker not in sample.sizes:
            start = place + 1
        elif place > start and any(sample.sizes[it] < samples[place - 1].sizes[it] for it in (leader, broker)):
            start = place
    return samples[start:]
