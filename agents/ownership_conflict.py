"""The pause before a worker takes back a shard that another worker has taken."""

import random

# After this time with the same owner, a shard is no longer disputed.
LULL_S = 10.0
FIRST_PAUSE_S = 0.04
LONGEST_PAUSE_S = 5.0


class OwnershipConflict:
    """Counts how often a shard was recently taken away, to slow down the workers that compete for it.

    Two workers in different groups both own the shard by their assignment. Without a pause they would take it from each
    other as fast as the log can be written, decide no command, and fill up the log, which is never truncated.
    """

    __slots__ = ("_losses", "_lost_s")

    def __init__(self) -> None:
        self._losses = 0
        self._lost_s = float("-inf")

    def pause_s(self, now_s: float) -> float:
        """Record that the shard was taken at this monotonic time; return the seconds to wait before taking it back.

        No pause at first, then twice as long each time, up to 5 s, with jitter, so that competing_groups do not collide
        again.
        """
        self._losses = self._losses + 1 if now_s - self._lost_s < LULL_S else 0
        self._lost_s = now_s
        if not self._losses:
            return 0.0
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._losses - 1, 16))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads competing owners, no secret
