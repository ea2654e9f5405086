"""Distrust of a broker that may not know yet that it is no longer the leader.

A broker that led a partition and hung answers as its leader when it resumes, with its old end offset, until it hears
from the controller (measured: 0.15 s, in which it refused 36 requests). A client that has read further from the next
leader then gets "offset out of range". aiokafka sends no leader epoch with a fetch (KIP-320), so only time
distinguishes such a broker from a log that has lost records.
"""

STALE_LEADER_S = 10.0
# After this time without such an answer, the next one is a new incident.
FORGOTTEN_S = 3.0
RETRY_S = 0.1


class Suspicion:
    """Repeated answers that mean lost records or a stale leader; `is_over` once a stale leader is ruled out."""

    def __init__(self) -> None:
        """Start without such an answer."""
        self._since_s = self._last_s = float("-inf")

    def is_over(self, now_s: float) -> bool:
        """Record such an answer, and return whether it must be believed."""
        if now_s - self._last_s > FORGOTTEN_S:
            self._since_s = now_s
        self._last_s = now_s
        return now_s - self._since_s >= STALE_LEADER_S
