"""Drover's own recent throttle writes, which a lagging broker may not show yet. Times are monotonic.

A broker answers DescribeConfigs from its own metadata image. If that is old, a rate that Drover has replaced looks like
another client's, which would be restored in the end, and a removed entry looks as if it were still in force.
"""

from collections import OrderedDict

from drover.events.throttles import NO_ENTRIES, NO_RATES, Entries, Rates
from drover.facts import BrokerRates
from drover.reconcile.observations import METADATA_LAG_MS
from drover.reconcile.throttles.shown_settings import ShownEntries, shown_rates
from drover.state.throttles import ThrottlingState, TopicThrottle

# An entry of the leaders' list (True) or the followers', whether it was added, and until when brokers may not show it.
_Written = OrderedDict[tuple[bool, str], tuple[bool, int]]


class RecentWrites:
    """Tells which readings may be older than the last write of this owner, or of the one before it.

    A reading that begins within `METADATA_LAG_MS` after a write counts only if it shows the written values. Shortly
    after the owner began it must agree with the ledger, since the owner before may just have written that.
    """

    def __init__(self, state: ThrottlingState) -> None:
        self._state = state
        self._inherited_until_ms = 0
        self._rates: dict[int, tuple[Rates, int]] = {}
        self._entries: dict[str, _Written] = {}
        self._recreated: dict[str, int] = {}

    def begin(self, now_ms: int) -> None:
        """Note that this owner takes over."""
        self._inherited_until_ms = now_ms + METADATA_LAG_MS

    def wrote_rates(self, broker: int, rates: Rates, now_ms: int) -> None:
        """Note that Kafka has accepted a broker's rates."""
        self._rates[broker] = rates, now_ms + METADATA_LAG_MS

    def wrote_entries(self, topic: str, added: Entries, removed: Entries, now_ms: int) -> None:
        """Note that Kafka has accepted a change of a topic's lists."""
        written = self._entries.setdefault(topic, OrderedDict())
        while written and next(iter(written.values()))[1] <= now_ms:
            written.popitem(last=False)
        for entries, is_there in ((removed, False), (added, True)):
            for side, names in ((True, entries.leader), (False, entries.follower)):
                for name in names:
                    written.pop((side, name), None)
                    written[side, name] = is_there, now_ms + METADATA_LAG_MS

    def recreated(self, topic: str, now_ms: int) -> None:
        """Note that a topic was deleted and created again: the new one began without lists."""
        self._entries.pop(topic, None)
        self._recreated[topic] = now_ms + METADATA_LAG_MS

    def shows_rates(self, broker: int, shown: BrokerRates, begun_ms: int) -> bool:
        """Whether the rates of a broker count, in a reading that began at this time."""
        rates = shown_rates(shown)
        written, until_ms = self._rates.get(broker, (rates, 0))
        if begun_ms < until_ms:
            return rates == written
        if begun_ms >= self._inherited_until_ms:
            return True
        entry = self._state.broker_throttles.get(broker)
        return rates == (NO_RATES if entry is None else entry.intended)

    def shows_entries(self, topic: str, shown: ShownEntries, begun_ms: int) -> bool:
        """Whether the entries of a topic count, in a reading that began at this time."""
        if begun_ms < self._recreated.get(topic, 0):
            return not shown.leader and not shown.follower
        if begun_ms < self._inherited_until_ms and topic not in self._entries:
            present = self._state.topic_throttles.get(topic, TopicThrottle()).present
            return shown.leader == {*present.leader} and shown.follower == {*present.follower}
        if begun_ms >= self.shown_ms(topic):
            return True
        for (side, name), (is_there, until_ms) in self._entries[topic].items():
            if begun_ms < until_ms and (name in (shown.leader if side else shown.follower)) != is_there:
                return False
        return True

    def removable(self, topic: str, entries: Entries, now_ms: int) -> Entries:
        """Return the entries that every broker shows by now: the driver removes only those that the asked one shows."""
        if now_ms < self._inherited_until_ms:
            return NO_ENTRIES
        if now_ms >= self.shown_ms(topic):
            self._entries.pop(topic, None)
            return entries
        written = self._entries[topic]

        def is_shown(place: tuple[bool, str]) -> bool:
            is_there, until_ms = written.get(place, (False, 0))
            return not is_there or now_ms >= until_ms

        return Entries(
            tuple(name for name in entries.leader if is_shown((True, name))),
            tuple(name for name in entries.follower if is_shown((False, name))),
        )

    def shown_ms(self, topic: str) -> int:
        """Tell when every broker shows the last write to a topic, by this owner or by the one before."""
        written = self._entries.get(topic)
        return max(self._inherited_until_ms, next(reversed(written.values()))[1] if written else 0)
