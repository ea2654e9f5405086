"""The ids of decided commands, remembered for 7 days, so that a repeated command has no effect (R5).

The register is bounded per cluster and per source. The source with the most ids loses its oldest one first, so that a
source that floods a cluster shortens only its own memory.
"""

import struct
import zlib
from collections import deque
from collections.abc import Iterator
from itertools import chain

import msgspec

IDENTITY_RETENTION_MS = 7 * 24 * 3600 * 1000
MOST_PER_CLUSTER = 50_000
MOST_PER_SOURCE = 20_000
# The number of sources. Authors are claims of clients, of which there may be any number, so they share the sources.
SOURCES = 256
_PLACE = struct.Struct(">QQBB")

Identity = tuple[str, str]


class DecidedCommand(msgspec.Struct, frozen=True, gc=False):
    """A decided command: the digest of its content, the log offset and the time of its outcome, and its author.

    `by` is empty in snapshots of older versions, which did not keep it.
    """

    digest: bytes
    offset: int
    at_ms: int
    source: int = 0
    by: str = ""


def source_of(by: str) -> int:
    """Return the number of the source that an author shares with others; never 0, which old snapshots have."""
    return zlib.crc32(by.encode()) % (SOURCES - 1) + 1


class _ClusterCommands:
    """The decided commands of one cluster, packed into some 250 bytes each and unpacked on demand."""

    __slots__ = ("by_source", "packed")

    def __init__(self) -> None:
        self.packed: dict[str, bytes] = {}
        # The ids of each source, the oldest first.
        self.by_source: dict[int, deque[str]] = {}

    def copy(self) -> "_ClusterCommands":
        copy = _ClusterCommands()
        copy.packed = self.packed.copy()
        copy.by_source = {source: ids.copy() for source, ids in self.by_source.items()}
        return copy

    def add(self, id_: str, command: DecidedCommand) -> None:
        place = _PLACE.pack(command.offset, command.at_ms, command.source, len(command.digest))
        self.packed[id_] = place + command.digest + command.by.encode()
        ids = self.by_source.get(command.source)
        if ids is None:
            ids = self.by_source[command.source] = deque()
        ids.append(id_)
        if len(ids) > MOST_PER_SOURCE:
            self._drop_oldest(command.source)
        if len(self.packed) > MOST_PER_CLUSTER:
            self._drop_oldest(max(self.by_source, key=lambda source: (len(self.by_source[source]), source)))

    def get(self, id_: str) -> DecidedCommand | None:
        packed = self.packed.get(id_)
        return None if packed is None else _unpacked(packed)

    def expire(self, horizon_ms: int) -> None:
        for source in tuple(self.by_source):
            ids = self.by_source[source]
            while ids and _PLACE.unpack_from(self.packed[ids[0]])[1] <= horizon_ms:
                self._drop_oldest(source)
            if not ids:
                del self.by_source[source]

    def forget(self, id_: str) -> None:
        packed = self.packed.pop(id_, None)
        if packed is not None:
            self.by_source[_PLACE.unpack_from(packed)[2]].remove(id_)

    def _drop_oldest(self, source: int) -> None:
        del self.packed[self.by_source[source].popleft()]


class DecidedCommands:
    """The decided commands of a shard, by cluster and id; a function of the log, like all of the fold."""

    __slots__ = ("_clusters",)

    def __init__(self) -> None:
        self._clusters: dict[str, _ClusterCommands] = {}

    def copy(self) -> "DecidedCommands":
        """Return an independent copy."""
        copy = DecidedCommands()
        copy._clusters = {name: commands.copy() for name, commands in self._clusters.items()}
        return copy

    def get(self, identity: Identity) -> DecidedCommand | None:
        """Return the command with this id, which may be older than 7 days; None if it is unknown."""
        commands = self._clusters.get(identity[0])
        return None if commands is None else commands.get(identity[1])

    def add(self, identity: Identity, command: DecidedCommand) -> None:
        """Remember a command, unless its id is taken; beyond a bound the oldest id of a source is forgotten."""
        cluster, id_ = identity
        commands = self._clusters.get(cluster)
        if commands is None:
            commands = self._clusters[cluster] = _ClusterCommands()
        earlier = commands.get(id_)
        if earlier is not None and earlier.at_ms <= command.at_ms - IDENTITY_RETENTION_MS:
            commands.expire(command.at_ms - IDENTITY_RETENTION_MS)
            # It did not expire if a command with a later time, from a wrong clock, comes before it in its source.
            commands.forget(id_)
            earlier = None
        if earlier is None:
            commands.add(id_, command)

    def expire(self, at_ms: int) -> None:
        """Forget the commands that are more than 7 days old at this log time."""
        horizon_ms = at_ms - IDENTITY_RETENTION_MS
        for name in tuple(self._clusters):
            self._clusters[name].expire(horizon_ms)
            if not self._clusters[name].packed:
                del self._clusters[name]

    def items(self) -> Iterator[tuple[Identity, DecidedCommand]]:
        """Yield all commands; those of a source in the order in which they are forgotten."""
        for name, commands in self._clusters.items():
            for id_ in chain.from_iterable(commands.by_source.values()):
                yield (name, id_), _unpacked(commands.packed[id_])

    def __len__(self) -> int:
        """Return the number of commands."""
        return sum(len(commands.packed) for commands in self._clusters.values())


def _unpacked(packed: bytes) -> DecidedCommand:
    offset, at_ms, source, size = _PLACE.unpack_from(packed)
    end = _PLACE.size + size
    return DecidedCommand(packed[_PLACE.size : end], offset, at_ms, source, packed[end:].decode())
