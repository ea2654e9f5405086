"""The forms of windows of time, buckets of durations and lists of brokers in tables."""

import math
from functools import lru_cache

WINDOW_MS = 60_000
BUCKETS_PER_DOUBLING = 8


def window(at_ms: int) -> int:
    """Return the start of the window of a time, ms since epoch."""
    return at_ms - at_ms % WINDOW_MS


@lru_cache(maxsize=4096)
def bucket(duration_ms: int) -> int:
    """Return the bucket of a duration: 8 for each doubling, so that a bucket's ends are 9 % apart."""
    return math.floor(math.log2(max(1, duration_ms)) * BUCKETS_PER_DOUBLING)


def bucket_end_ms(number: int) -> float:
    """Return the upper end of a bucket, in ms."""
    return float(2 ** ((number + 1) / BUCKETS_PER_DOUBLING))


@lru_cache(maxsize=4096)
def listed(brokers: tuple[int, ...]) -> str:
    """Write broker ids as the tables do."""
    return ",".join(map(str, brokers))
