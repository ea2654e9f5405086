"""Which brokers' time on the list is over: by the log's time, and never later than they were listed for."""

from drover.capability.messages import Moment
from drover.leadership.state import LeadershipState


class ListingTimes:
    """The ends of the listings of one cluster.

    Log time follows the clocks of the brokers that append. What one has recorded that was far ahead and is right again
    would hold for as long as it was ahead. Such a listing ends after the time it was made for, by the owner's clock.
    """

    def __init__(self, state: LeadershipState) -> None:
        self._state = state
        # By broker: the listing's beginning, which is still to come, and when (monotonic) its time is over.
        self._ahead: dict[int, tuple[int, int]] = {}

    def over(self, now: Moment) -> frozenset[int]:
        """Return the brokers whose time is over; `now` is in log time."""
        found, ahead = set(), {}
        for broker, one in self._state.listings.items():
            if one.until_ms is None:
                continue
            if one.until_ms <= now.wall_ms:
                found.add(broker)
            elif one.since_ms > now.wall_ms:
                since_ms, over_ms = self._ahead.get(broker, (None, 0))
                if since_ms != one.since_ms:
                    over_ms = now.monotonic_ms + one.until_ms - one.since_ms
                ahead[broker] = one.since_ms, over_ms
                if over_ms <= now.monotonic_ms:
                    found.add(broker)
        self._ahead = ahead
        return frozenset(found)
