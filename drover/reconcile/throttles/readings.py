"""The owner's cache of throttle settings that were read from a cluster. Times are monotonic."""

from collections.abc import Iterable

from drover.facts import BrokerRates
from drover.reconcile.messages import ThrottlesRead
from drover.reconcile.observations import FRESH_MS
from drover.reconcile.throttles.ledger import Read
from drover.reconcile.throttles.recent_writes import RecentWrites
from drover.reconcile.throttles.shown_settings import ShownEntries

# How soon a reading that may be older than the last write is repeated.
REREAD_MS = 200


class Readings:
    """Settings read recently and since Drover's last write; other clients may change them at any time."""

    def __init__(self, recent_writes: RecentWrites) -> None:
        self._recent_writes = recent_writes
        self._brokers: dict[int, tuple[BrokerRates, int]] = {}
        self._topics: dict[str, tuple[ShownEntries | None, int]] = {}
        self._topic_ids: dict[str, str] = {}
        # Brokers and topics that were written, or topics created anew, since the reading under way began.
        self._outdated_brokers: set[int] = set()
        self._outdated_topics: set[str] = set()
        self.is_reading = False
        self._begun_ms = 0
        # When (monotonic) to repeat the reading of a broker or topic that may have been older than the last write.
        self._reread: dict[int | str, int] = {}
        # The recent settings at one time, cached until something is read or written: every waiting step asks for them.
        self._recent: tuple[int, Read] | None = None

    def recent(self, now_ms: int) -> Read:
        """Return the settings read within the last 2 s: an older reading is no baseline."""
        if self._recent is not None and self._recent[0] == now_ms:
            return self._recent[1]
        since_ms = now_ms - FRESH_MS
        self._brokers = {broker: reading for broker, reading in self._brokers.items() if reading[1] >= since_ms}
        self._topics = {topic: reading for topic, reading in self._topics.items() if reading[1] >= since_ms}
        read = Read(
            {broker: rates for broker, (rates, _) in self._brokers.items()},
            {topic: lists for topic, (lists, _) in self._topics.items()},
        )
        self._recent = now_ms, read
        return read

    def begin(self, brokers: Iterable[int], topics: Iterable[str], now_ms: int) -> None:
        """Note that a reading of these begins; there is one at a time."""
        self.is_reading, self._begun_ms = True, now_ms
        self._outdated_brokers, self._outdated_topics = set(), set()
        for broker in brokers:
            self._reread.pop(broker, None)
        for topic in topics:
            self._reread.pop(topic, None)

    def take(self, read: ThrottlesRead) -> None:
        """Store settings, without those that were written meanwhile and those of a topic's earlier incarnation.

        Settings that may be older than the last write do not count, and are read again after `REREAD_MS`. The age of
        the others counts from the answer, since the batch that handles it may come much later.
        """
        self.is_reading, self._recent = False, None
        recent_writes, begun_ms, at_ms = self._recent_writes, self._begun_ms, read.ended_ms
        for broker, rates in read.brokers.items():
            if broker in self._outdated_brokers:
                continue
            if recent_writes.shows_rates(broker, rates, begun_ms):
                self._brokers[broker] = rates, at_ms
            else:
                self._reread[broker] = at_ms + REREAD_MS
        for topic, lists in read.topics.items():
            if topic in self._outdated_topics:
                continue
            shown = None if lists is None else ShownEntries.of(lists)
            if shown is None or recent_writes.shows_entries(topic, shown, begun_ms):
                self._topics[topic] = shown, at_ms
            else:
                self._reread[topic] = at_ms + REREAD_MS

    def to_read(
        self, brokers: Iterable[int], topics: Iterable[str], now_ms: int
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return these with the readings that are due to be repeated, without those that are not due yet."""
        due = {name for name, at_ms in self._reread.items() if at_ms <= now_ms}
        late = self._reread.keys() - due
        return (
            tuple(sorted({*brokers, *(name for name in due if isinstance(name, int))} - late)),
            tuple(sorted({*topics, *(name for name in due if isinstance(name, str))} - late)),
        )

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when the next reading is to be repeated; None if there is none, or if it waits for a call under way."""
        return min((at_ms for at_ms in self._reread.values() if at_ms > now_ms), default=None)

    def see(self, topic: str, topic_id: str, now_ms: int) -> None:
        """Forget readings, and one under way, of a topic that turns out to be another incarnation."""
        before = self._topic_ids.get(topic)
        if before != topic_id:
            self._topic_ids[topic] = topic_id
            self.forget((), (topic,))
            if before is not None:
                self._recent_writes.recreated(topic, now_ms)

    def forget(self, brokers: Iterable[int], topics: Iterable[str]) -> None:
        """Forget readings, and one under way, of brokers and topics that were just written."""
        self._recent = None
        for broker in brokers:
            self._brokers.pop(broker, None)
            self._outdated_brokers.add(broker)
        for topic in topics:
            self._topics.pop(topic, None)
            self._outdated_topics.add(topic)
