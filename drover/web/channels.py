"""Channels that viewers follow: one per query, computed and encoded once however many viewers it has."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import msgspec

from drover.web.changes import Document, difference
from drover.web.query import Query

# So many changes can be caught up with; who missed more gets the whole document again.
KEPT_CHANGES = 256
# And so many bytes of them, except that the last change is always there.
KEPT_BYTES = 256 * 1024
# Changes of so many bytes are sent, without a look at what the whole document would have.
FEW_BYTES = 16 * 1024
# A channel that nobody looks at is kept for so long, for viewers that were cut off.
IDLE_S = 60.0
# Of views with a filter, and as many of views without one.
MAX_CHANNELS = 200
VERSION_DIGITS = 15


class TooManyChannelsError(Exception):
    """So many different queries are being followed that another one is refused for now."""


def encode_event(name: str, data: Document, id_: str | None = None) -> bytes:
    """Write one server-sent event; JSON holds no line break."""
    head = "" if id_ is None else f"id: {id_}\n"
    return f"{head}event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


@dataclass(slots=True)
class Channel:
    """The document of one query and how it came to be; `boot` tells it from other channels in the ids of events."""

    boot: str
    document: Document
    version: int = 0
    changes: deque[tuple[int, bytes]] = field(default_factory=deque)
    viewers: int = 0
    idle_since_s: float = 0.0
    fresh: asyncio.Event = field(default_factory=asyncio.Event)
    _snapshot: bytes | None = None
    _kept_bytes: int = 0

    def publish(self, document: Document) -> bool:
        """Make this the document; tells whether it is another one."""
        change = difference(self.document, document)
        if not change:
            return False
        self.version += 1
        self.document = document
        self._snapshot = None
        self._keep(encode_event("change", change, self._id))
        # Whoever waits holds the old event; who comes later gets the new one.
        self.fresh.set()
        self.fresh = asyncio.Event()
        return True

    def _keep(self, event: bytes) -> None:
        """Add the event of this version, and drop the oldest ones that are too many, or too large together."""
        self.changes.append((self.version, event))
        self._kept_bytes += len(event)
        while len(self.changes) > 1 and (self._kept_bytes > KEPT_BYTES or len(self.changes) > KEPT_CHANGES):
            self._kept_bytes -= len(self.changes.popleft()[1])

    @property
    def _id(self) -> str:
        return f"{self.boot}-{self.version}"

    def version_of(self, event_id: str | None) -> int | None:
        """Return the version that an event's id names; None if it is of another run, or too old to catch up with."""
        boot, _, number = (event_id or "").rpartition("-")
        # No version has so many digits; Python refuses to read thousands of them.
        if boot != self.boot or not (number.isascii() and number.isdecimal() and len(number) <= VERSION_DIGITS):
            return None
        version = int(number)
        return version if self.version - len(self.changes) <= version <= self.version else None

    def since(self, version: int | None) -> bytes:
        """Return what a viewer lacks who has this version, or nothing yet (None): events, as one piece.

        Those are the changes, or the whole document where that is less.
        """
        if version is None or version < self.version - len(self.changes):
            return self._whole()
        missed = [event for number, event in self.changes if number > version]
        # Rows that change again and again make more of it than the document has.
        missed_bytes = sum(map(len, missed))
        if len(missed) > 1 and missed_bytes > FEW_BYTES and missed_bytes > len(self._whole()):
            return self._whole()
        return b"".join(missed)

    def _whole(self) -> bytes:
        if self._snapshot is None:
            self._snapshot = encode_event("snapshot", self.document, self._id)
        return self._snapshot

    def viewer(self) -> AbstractContextManager[None]:
        """Count one viewer."""
        return _counted(self)


@dataclass(slots=True)
class Channels:
    """All channels; `build` computes the document of a query. `viewers` also counts those who wait for a channel."""

    boot: str
    build: Callable[[Query], Document]
    viewers: int = 0
    _channels: dict[Query, Channel] = field(default_factory=dict)
    _opened: int = 0

    def channel(self, query: Query) -> Channel:
        """Return the channel of a query, for which the one that has been idle longest may have to go.

        A view without a filter has a channel whatever filters are followed. Raises `TooManyChannelsError`.
        """
        found = self._channels.get(query)
        if found is None:
            self._make_room(query)
            self._opened += 1
            found = self._channels[query] = Channel(f"{self.boot}.{self._opened}", self.build(query))
        return found

    def _make_room(self, query: Query) -> None:
        alike = {other: channel for other, channel in self._channels.items() if other.is_plain == query.is_plain}
        if len(alike) < MAX_CHANNELS:
            return
        idle = [other for other, channel in alike.items() if not channel.viewers]
        if not idle:
            raise TooManyChannelsError
        # One that was just opened has not been idle yet; its viewer may be on the way.
        del self._channels[min(idle, key=lambda other: alike[other].idle_since_s or math.inf)]

    def refresh(self, now_s: float) -> None:
        """Compute every channel anew, and forget those that nobody has looked at for a while."""
        for query, channel in list(self._channels.items()):
            if channel.viewers or channel.idle_since_s == 0.0:
                channel.idle_since_s = now_s
            elif now_s - channel.idle_since_s > IDLE_S:
                del self._channels[query]
                continue
            channel.publish(self.build(query))

    def viewer(self) -> AbstractContextManager[None]:
        """Count one viewer, who need not have a channel yet."""
        return _counted(self)


@contextmanager
def _counted(viewed: Channel | Channels) -> Iterator[None]:
    viewed.viewers += 1
    try:
        yield
    finally:
        viewed.viewers -= 1
