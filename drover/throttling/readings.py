"""The owner's cache of throttle settings that were read from a cluster. Times are monotonic."""

from collections.abc import Iterable

from drover.capability.messages import ThrottlesRead
from drover.capability.observations import FRESH_MS
from drover.facts import BrokerRates, ThrottledReplicas
from drover.throttling.ledger import Read


class Readings:
    """Settings read lately, and since the last change; others change settings too."""

    def __init__(self) -> None:
        self._brokers: dict[int, tuple[BrokerRates, int]] = {}
        self._topics: dict[str, tuple[ThrottledReplicas | None, int]] = {}
        self._topic_ids: dict[str, str] = {}
        # What was written, or turned out to be another incarnation, while the reading under way was taken.
        self._outdated_brokers: set[int] = set()
        self._outdated_topics: set[str] = set()
        self.is_reading = False
        # What is recent at one moment, until something is read or written: asked for every step that waits.
        self._recent: tuple[int, Read] | None = None

    def recent(self, now_ms: int) -> Read:
        """Return what was read within the last 2 s: an older reading is no baseline."""
        if self._recent is not None and self._recent[0] == now_ms:
            return self._recent[1]
        since_ms = now_ms - FRESH_MS
        self._brokers = {broker: found for broker, found in self._brokers.items() if found[1] >= since_ms}
        self._topics = {topic: found for topic, found in self._topics.items() if found[1] >= since_ms}
        read = Read(
            {broker: rates for broker, (rates, _) in self._brokers.items()},
            {topic: lists for topic, (lists, _) in self._topics.items()},
        )
        self._recent = now_ms, read
        return read

    def begin(self) -> None:
        """Note that a reading begins; there is one at a time."""
        self.is_reading = True
        self._outdated_brokers, self._outdated_topics = set(), set()

    def take(self, read: ThrottlesRead) -> None:
        """Store settings; not those that were written meanwhile, nor those of a topic's earlier incarnation.

        Their age counts from the answer, not from the batch that handles it: the owner may have stood still in between.
        """
        self.is_reading, self._recent = False, None
        brokers = ((it, rates) for it, rates in read.brokers.items() if it not in self._outdated_brokers)
        topics = ((it, lists) for it, lists in read.topics.items() if it not in self._outdated_topics)
        self._brokers.update((broker, (rates, read.ended_ms)) for broker, rates in brokers)
        self._topics.update((topic, (lists, read.ended_ms)) for topic, lists in topics)

    def see(self, topic: str, topic_id: str) -> None:
        """Forget what was read, or is being read, of a topic that turns out to be another incarnation."""
        if self._topic_ids.get(topic) != topic_id:
            self._topic_ids[topic] = topic_id
            self.forget((), (topic,))

    def forget(self, brokers: Iterable[int], topics: Iterable[str]) -> None:
        """Forget the readings of everything that was just written, and that is being read meanwhile."""
        self._recent = None
        for broker in brokers:
            self._brokers.pop(broker, None)
            self._outdated_brokers.add(broker)
        for topic in topics:
            self._topics.pop(topic, None)
            self._outdated_topics.add(topic)
