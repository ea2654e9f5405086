"""Racks: how well the replicas of a partition are spread, and how well the brokers allow."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from drover.planning.model import Broker


class Racks:
    """The racks of a cluster, by broker.

    A list of replicas is spread the better, the fewer pairs of replicas share a rack: that is the most racks, and as
    even as they allow. A broker without a rack counts as a rack of its own. What the brokers allow follows from those
    that may receive replicas and are not `leaving`.
    """

    def __init__(self, brokers: Iterable[Broker], leaving: Collection[int] = ()) -> None:
        known = tuple(brokers)
        self._rack = {broker.id: broker.rack if broker.rack is not None else broker.id for broker in known}
        rooms: dict[str | int, int] = {}
        for broker in known:
            if broker.may_receive and broker.id not in leaving:
                rack = self._rack[broker.id]
                rooms[rack] = rooms.get(rack, 0) + 1
        self._rooms = tuple(sorted(rooms.values()))
        self.fewest_pairs = lru_cache(maxsize=None)(self._fewest_pairs)

    def of(self, broker: int) -> str | int:
        """Return the rack of a broker; one that is not in the cluster is a rack of its own."""
        return self._rack.get(broker, broker)

    def pairs(self, replicas: Sequence[int]) -> int:
        """Count the pairs of replicas that share a rack."""
        racks = [self._rack.get(broker, broker) for broker in replicas]
        if len(set(racks)) == len(racks):
            return 0
        return sum(racks.count(rack) - 1 for rack in racks) // 2

    def excess(self, replicas: Sequence[int]) -> int:
        """Count the pairs that share a rack beyond what the brokers force; not below zero."""
        pairs = self.pairs(replicas)
        return max(0, pairs - self.fewest_pairs(len(replicas))) if pairs else 0

    def _fewest_pairs(self, count: int) -> int:
        """Spread so many replicas as evenly as the racks have brokers, and count the pairs."""
        levels = [0] * len(self._rooms)
        for _ in range(count):
            free = [index for index, level in enumerate(levels) if level < self._rooms[index]]
            if not free:
                break
            levels[min(free, key=lambda index: levels[index])] += 1
        return sum(level * (level - 1) // 2 for level in levels)
