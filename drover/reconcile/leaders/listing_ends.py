"""Brokers that leave the list by themselves: their time is over, or their replicas are in sync."""

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

    Log time follows the clocks of the brokers that append. A listing that was made while a clock ran ahead begins in
    the future; it ends after its own duration by the owner's clock, not when log time reaches its end.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        # By broker: the listing's beginning, in the future, and when (monotonic) its time is over.
        self._ahead: dict[int, tuple[int, int]] = {}
        # By broker: its listing, and when the first survey in a row that shows it in sync ended, and the last one began
        # (monotonic).
        self._in_sync: dict[int, tuple[Listing, int, int]] = {}

    @property
    def until_in_sync(self) -> Collection[int]:
        """The brokers that are listed until their replicas are in sync."""
        return tuple(broker for broker, listing in self._state.listings.items() if listing.until_in_sync)

    def surveyed(self, reader: SurveyReader) -> None:
        """Note the brokers that a survey, read to its end, shows alive with all their replicas in sync.

        A replica that a move is still adding does not count: the broker did not miss it.
        """
        survey, before, self._in_sync = reader.survey, self._in_sync, {}
        for broker, lagging in reader.out_of_sync.items():
            listing = self._state.listings.get(broker)
            if listing is None or broker not in survey.live_brokers:
                continue
            if any(self._counts(broker, key) for key in lagging):
                continue
            earlier = before.get(broker)
            since_ms = survey.ended_ms if earlier is None or earlier[0] != listing else earlier[1]
            self._in_sync[broker] = listing, since_ms, survey.started_ms

    def _counts(self, broker: int, key: TopicPartition) -> bool:
        """Whether a replica out of sync keeps its broker on the list."""
        state = self._state
        moving, unmanaged = state.reassignments.get(key), state.unmanaged.get(key)
        is_coming = moving is not None and broker not in moving.current
        is_coming = is_coming or (unmanaged is not None and broker in unmanaged.adding)
        return not is_coming and broker in state.listed_for(key.topic)

    def over(self, now: Timestamp) -> Mapping[int, str]:
        """Return the brokers that leave the list, each with the reason; `now` has log time as its wall clock."""
        reasons = {broker: f"the time of broker {broker} on the list is over" for broker in self._timed_out(now)}
        for broker, (listing, since_ms, seen_ms) in self._in_sync.items():
            if seen_ms - since_ms >= IN_SYNC_MS and self._state.listings.get(broker) == listing:
                reasons.setdefault(broker, f"the replicas of broker {broker} are in sync")
        return reasons

    def _timed_out(self, now: Timestamp) -> frozenset[int]:
        timed_out, ahead = set(), {}
        for broker, listing in self._state.listings.items():
            if listing.until_ms is None:
                continue
            if listing.until_ms <= now.wall_ms:
                timed_out.add(broker)
            elif listing.since_ms > now.wall_ms:
                since_ms, over_ms = self._ahead.get(broker, (None, 0))
                if since_ms != listing.since_ms:
                    over_ms = now.monotonic_ms + listing.until_ms - listing.since_ms
                ahead[broker] = listing.since_ms, over_ms
                if over_ms <= now.monotonic_ms:
                    timed_out.add(broker)
        self._ahead = ahead
        return frozenset(timed_out)
