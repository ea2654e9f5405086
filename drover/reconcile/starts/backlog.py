"""How much is still to be copied over each way into and out of a broker: which of what waits is at the busiest one."""

from collections import Counter
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.state.ports import Port, Ports

# What a copy of unknown size, or of nothing, counts: the busiest port is then the one with the most copies.
LEAST_BYTES = 1


@dataclass(slots=True)
class Backlog:
    """The bytes that wait at each port; a copy weighs on the port it leaves and on the one it enters."""

    _entries: dict[TopicPartition, tuple[Ports, int]] = field(default_factory=dict)
    _bytes: Counter[Port] = field(default_factory=Counter)

    def put(self, key: TopicPartition, ports: Ports, copy_bytes: int | None) -> None:
        """Note what waits of a partition, in place of what was known of it."""
        self.drop(key)
        size = max(LEAST_BYTES, copy_bytes or 0)
        self._entries[key] = (ports, size)
        for port in ports:
            self._bytes[port] += size

    def resize(self, key: TopicPartition, copy_bytes: int) -> None:
        """Note another size of a partition that waits."""
        self.put(key, self._entries[key][0], copy_bytes)

    def drop(self, key: TopicPartition) -> None:
        """Forget a partition that waits no longer."""
        ports, size = self._entries.pop(key, ((), 0))
        for port in ports:
            left = self._bytes[port] - size
            if left:
                self._bytes[port] = left
            else:
                del self._bytes[port]

    def busiest(self, key: TopicPartition) -> int:
        """Return the bytes that wait at the busiest port of a partition."""
        ports, _ = self._entries.get(key, ((), 0))
        return max((self._bytes[port] for port in ports), default=0)

    def size(self, key: TopicPartition) -> int:
        """Return the size of one of its copies."""
        return self._entries.get(key, ((), 0))[1]
