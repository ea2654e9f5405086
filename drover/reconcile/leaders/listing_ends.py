"""Which brokers leave the list by themselves: their time is over, or their replicas are in sync."""

from collections.abc import Collection, Mapping

from drover.events.partitions import TopicPartition
from drover.reconcile.leaders.survey_reader import SurveyReader
from drover.reconcile.messages import Timestamp
from drover.state.cluster import ClusterState
from drover.state.leaders import Listing

# A broker that has just died is shown alive and in sync until its session ends: after 9 s by default in KRaft mode,
# after 18 s in ZooKeeper mode.
IN_SYNC_MS = 20_000


class ListingEnds:
    """The ends of the listings of one cluster.

    Log time follows the clocks of the brokers that append. What one has recorded that was far ahead and is right again
    would hold for as long as it was ahead. Such a listing ends after the time it was made for, by the owner's clock.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        # By broker: the listing's beginning, which is still to come, and when (monotonic) its time is over.
        self._ahead: dict[int, tuple[int, int]] = {}
        # By broker: its listing, and the end of the first and the beginning of the last of the surveys (monotonic) that
        # show it in sync without interruption.
        self._in_sync: dict[int, tuple[Listing, int, int]] = {}

    @property
    def until_in_sync(self) -> Collection[int]:
        """The brokers that are listed until their replicas are in sync."""
        return tuple(broker for broker, one in self._state.listings.items() if one.until_in_sync)

    def surveyed(self, reader: SurveyReader) -> None:
        """Note which brokers a survey that was read to its end shows alive, and in sync with all replicas they have.

        A replica that a move is still adding does not count: it says nothing about what the broker missed.
        """
        survey, before, self._in_sync = reader.survey, self._in_sync, {}
        for broker, lagging in reader.out_of_sync.items():
            listing = self._state.listings.get(broker)
            if listing is None or broker not in survey.live_brokers:
                continue
            if any(self._counts(broker, key) for key in lagging):
                continue
            known = before.get(broker)
            since_ms = survey.ended_ms if known is None or known[0] != listing else known[1]
            self._in_sync[broker] = listing, since_ms, survey.started_ms

    def _counts(self, broker: int, key: TopicPartition) -> bool:
        """Whether a replica out of sync keeps its broker on the list."""
        state = self._state
        moving, unmanaged = state.reassignments.get(key), state.unmanaged.get(key)
        is_coming = moving is not None and broker not in moving.current
        is_coming = is_coming or (unmanaged is not None and broker in unmanaged.adding)
        return not is_coming and broker in state.listed_for(key.topic)

    def over(self, now: Timestamp) -> Mapping[int, str]:
        """Return the brokers that leave the list, each with the reason; `now` is in log time."""
        reasons = {broker: f"the time of broker {broker} on the list is over" for broker in self._timed_out(now)}
        for broker, (listing, since_ms, seen_ms) in self._in_sync.items():
            if seen_ms - since_ms >= IN_SYNC_MS and self._state.listings.get(broker) == listing:
                reasons.setdefault(broker, f"the replicas of broker {broker} are in sync")
        return reasons

    def _timed_out(self, now: Timestamp) -> frozenset[int]:
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
