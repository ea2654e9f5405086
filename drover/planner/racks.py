"""Racks: how well the replicas of a partition are spread, and how well the brokers allow."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from drover.planner.model import Broker


class Racks:
    """The racks of a cluster, by broker.

    A list of replicas is spread the better, the fewer pairs of replicas share a rack: that is the most racks, and as
    even as they allow. A broker without a rack counts as a rack of its own. What the brokers allow follows from those
    that may receive replicas and are not `leaving`, and from those that may not and keep the replica that they have.
    Of a topic that belongs `within` a set of brokers only these may receive.
    """

    def __init__(self, brokers: Iterable[Broker], leaving: Collection[int] = ()) -> None:
        known = tuple(brokers)
        self._rack = {broker.id: broker.rack if broker.rack is not None else broker.id for broker in known}
        self._receivers = frozenset(broker.id for broker in known if broker.may_receive and broker.id not in leaving)
        self._leaving = frozenset(leaving)
        self._fewest_pairs = lru_cache(maxsize=None)(self._spread_evenly)

    def of(self, broker: int) -> str | int:
        """Return the rack of a broker; one that is not in the cluster is a rack of its own."""
        return self._rack.get(broker, broker)

    def pairs(self, replicas: Sequence[int]) -> int:
        """Count the pairs of replicas that share a rack."""
        racks = [self._rack.get(broker, broker) for broker in replicas]
        if len(set(racks)) == len(racks):
            return 0
        return sum(racks.count(rack) - 1 for rack in racks) // 2

    def excess(self, replicas: Sequence[int], within: frozenset[int] | None) -> int:
        """Count the pairs that share a rack beyond what the brokers force; not below zero."""
        pairs = self.pairs(replicas)
        return max(0, pairs - self.fewest_pairs(replicas, within)) if pairs else 0

    def fewest_pairs(self, replicas: Sequence[int], within: frozenset[int] | None, more: int = 0) -> int:
        """Count the pairs that a partition with these replicas, and so many more, has in the best case."""
        receivers = self._receivers if within is None else self._receivers & within
        keeping = [broker for broker in replicas if broker not in receivers and broker not in self._leaving]
        return self._fewest_pairs(len(replicas) + more, tuple(sorted(map(self.of, keeping), key=str)), within)

    def _spread_evenly(self, count: int, kept: Sequence[str | int], within: frozenset[int] | None) -> int:
        """Spread so many replicas as evenly as the racks have brokers, and count the pairs."""
        receivers = self._receivers if within is None else self._receivers & within
        rooms = Counter(self._rack[broker] for broker in receivers) + Counter(kept)
        levels = dict.fromkeys(rooms, 0)
        for _ in range(count):
            free = [rack for rack, level in levels.items() if level < rooms[rack]]
            if not free:
                break
            levels[min(free, key=lambda rack: levels[rack])] += 1
        return sum(level * (level - 1) // 2 for level in levels.values())
