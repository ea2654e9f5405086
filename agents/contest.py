"""How long to leave a contested shard to the worker that took it."""

import random

# A shard that stayed with its owner for so long is no longer contested.
LULL_S = 10.0
FIRST_PAUSE_S = 0.04
LONGEST_PAUSE_S = 5.0


class Contest:
    """Counts how often a shard was taken away lately.

    Otherwise two workers that both believe they own a shard, because they are in different groups, would take it from
    each other as fast as the log can be written: nothing would be decided, and the log, which is never cut, fills up.
    """

    __slots__ = ("_losses", "_lost_s")

    def __init__(self) -> None:
        self._losses = 0
        self._lost_s = float("-inf")

    def pause_s(self, now_s: float) -> float:
        """Note that the shard was taken at this monotonic moment; return the seconds to wait before taking it back.

        None at first, then twice as long each time, up to 5 s. Spread, so that rivals do not meet again.
        """
        self._losses = self._losses + 1 if now_s - self._lost_s < LULL_S else 0
        self._lost_s = now_s
        if not self._losses:
            return 0.0
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._losses - 1, 16))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads rivals, no secret
