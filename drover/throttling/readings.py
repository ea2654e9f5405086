"""The owner's cache of throttle settings that were read from a cluster. Times are monotonic."""

from collections.abc import Iterable

from drover.capability.messages import ThrottlesRead
from drover.capability.observations import FRESH_MS
from drover.facts import BrokerRates, ThrottledReplicas
from drover.throttling.ledger import Read


class Readings:
    """What was read since the last change, and not too long ago: others change settings as well."""

    def __init__(self) -> None:
        self._brokers: dict[int, tuple[BrokerRates, int]] = {}
        self._topics: dict[str, tuple[ThrottledReplicas | None, int]] = {}
        self._changed_ms = 0

    def recent(self, now_ms: int) -> Read:
        """Return what was read within the last 2 s: an older reading is no baseline."""
        since_ms = now_ms - FRESH_MS
        self._brokers = {broker: found for broker, found in self._brokers.items() if found[1] >= since_ms}
        self._topics = {topic: found for topic, found in self._topics.items() if found[1] >= since_ms}
        return Read(
            {broker: rates for broker, (rates, _) in self._brokers.items()},
            {topic: lists for topic, (lists, _) in self._topics.items()},
        )

    def take(self, read: ThrottlesRead, heard_ms: int) -> None:
        """Take settings in, unless they were read before the last change."""
        if read.started_ms < self._changed_ms:
            return
        self._brokers.update((broker, (rates, heard_ms)) for broker, rates in read.brokers.items())
        self._topics.update((topic, (lists, heard_ms)) for topic, lists in read.topics.items())

    def forget(self, brokers: Iterable[int], topics: Iterable[str], ended_ms: int) -> None:
        """Forget what was read of everything that was just written."""
        self._changed_ms = ended_ms
        for broker in brokers:
            self._brokers.pop(broker, None)
        for topic in topics:
            self._topics.pop(topic, None)
