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
        self._changed_ms = 0
        self._topic_ids: dict[str, str] = {}
        self._distrusted: set[str] = set()
        self.is_reading = False

    def recent(self, now_ms: int) -> Read:
        """Return what was read within the last 2 s: an older reading is no baseline."""
        since_ms = now_ms - FRESH_MS
        self._brokers = {broker: found for broker, found in self._brokers.items() if found[1] >= since_ms}
        self._topics = {topic: found for topic, found in self._topics.items() if found[1] >= since_ms}
        return Read(
            {broker: rates for broker, (rates, _) in self._brokers.items()},
            {topic: lists for topic, (lists, _) in self._topics.items()},
        )

    def take(self, read: ThrottlesRead, answered_ms: int) -> None:
        """Store settings, unless they were read before the last change or from a topic's earlier incarnation."""
        self.is_reading = False
        distrusted, self._distrusted = self._distrusted, set()
        if read.started_ms < self._changed_ms:
            return
        self._brokers.update((broker, (rates, answered_ms)) for broker, rates in read.brokers.items())
        trusted = ((topic, lists) for topic, lists in read.topics.items() if topic not in distrusted)
        self._topics.update((topic, (lists, answered_ms)) for topic, lists in trusted)

    def see(self, topic: str, topic_id: str) -> None:
        """Forget what was read, or is being read, of a topic that turns out to be another incarnation."""
        if self._topic_ids.get(topic) == topic_id:
            return
        self._topic_ids[topic] = topic_id
        self._topics.pop(topic, None)
        if self.is_reading:
            self._distrusted.add(topic)

    def forget(self, brokers: Iterable[int], topics: Iterable[str], ended_ms: int) -> None:
        """Forget the readings of everything that was just written."""
        self._changed_ms = ended_ms
        for broker in brokers:
            self._brokers.pop(broker, None)
        for topic in topics:
            self._topics.pop(topic, None)
