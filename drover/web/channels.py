"""Channels that viewers follow: one per query, computed and encoded once for all of its viewers."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from drover.web.changes import Document, difference
from drover.web.query import Query

# The most changes to catch up with; a viewer that missed more gets the whole document again.
KEPT_CHANGES = 256
# The most bytes of these changes; the last change is always kept.
KEPT_BYTES = 256 * 1024
# Changes up to this size are sent without comparing them with the size of the whole document.
FEW_BYTES = 16 * 1024
# How long a channel without viewers is kept, so that viewers that were cut off can return.
IDLE_S = 60.0
# Of views with a filter, and as many of views without one.
MAX_CHANNELS = 200
VERSION_DIGITS = 15


def encode_event(name: str, data: Document, id_: str | None = None) -> bytes:
    """Encode a server-sent event; JSON has no line breaks, so that the data is one line."""
    head = "" if id_ is None else f"id: {id_}\n"
    return f"{head}event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


@dataclass(slots=True)
class Channel:
    """The document of one query and its latest changes; `boot` makes the ids of its events unique."""

    boot: str
    document: Document
    version: int = 0
    changes: deque[tuple[int, bytes]] = field(default_factory=deque)
    viewers: int = 0
    idle_since_s: float = 0.0
    fresh: asyncio.Event = field(default_factory=asyncio.Event)
    is_ended: bool = False
    _snapshot: bytes | None = None
    _kept_bytes: int = 0

    def publish(self, document: Document) -> bool:
        """Replace the document; return whether it has changed."""
        change = difference(self.document, document)
        if not change:
            return False
        self.version += 1
        self.document = document
        self._snapshot = None
        self._keep(encode_event("change", change, self._id))
        # Waiting viewers hold the old event; later viewers get the new one.
        self.fresh.set()
        self.fresh = asyncio.Event()
        return True

    def _keep(self, event: bytes) -> None:
        """Add the event of this version, and drop the oldest ones beyond the bounds."""
        self.changes.append((self.version, event))
        self._kept_bytes += len(event)
        while len(self.changes) > 1 and (self._kept_bytes > KEPT_BYTES or len(self.changes) > KEPT_CHANGES):
            self._kept_bytes -= len(self.changes.popleft()[1])

    @property
    def _id(self) -> str:
        return f"{self.boot}-{self.version}"

    def version_of(self, event_id: str | None) -> int | None:
        """Return the version of an event's id; None if it is from another process, or too old to catch up with."""
        boot, _, number = (event_id or "").rpartition("-")
        # `int` refuses thousands of digits; no version has that many.
        if boot != self.boot or not (number.isascii() and number.isdecimal() and len(number) <= VERSION_DIGITS):
            return None
        version = int(number)
        return version if self.version - len(self.changes) <= version <= self.version else None

    def since(self, version: int | None) -> bytes:
        """Return the events that a viewer with this version, or with none yet (None), lacks.

        These are the changes since then, or the whole document if it is smaller.
        """
        if version is None or version < self.version - len(self.changes):
            return self._whole()
        missed = [event for number, event in self.changes if number > version]
        # If rows have changed again and again, the changes are larger than the document.
        missed_bytes = sum(map(len, missed))
        if len(missed) > 1 and missed_bytes > FEW_BYTES and missed_bytes > len(self._whole()):
            return self._whole()
        return b"".join(missed)

    def _whole(self) -> bytes:
        if self._snapshot is None:
            self._snapshot = encode_event("snapshot", self.document, self._id)
        return self._snapshot

    def end(self) -> None:
        """Tell the viewers that nothing follows; each may ask for its query again."""
        self.is_ended = True
        self.fresh.set()

    @contextmanager
    def viewer(self) -> Iterator[None]:
        """Count a viewer for the length of a block."""
        self.viewers += 1
        try:
            yield
        finally:
            self.viewers -= 1


@dataclass(slots=True)
class Channels:
    """All channels; `build` computes the document of a query."""

    boot: str
    build: Callable[[Query], Document]
    _channels: dict[Query, Channel] = field(default_factory=dict)
    _opened: int = 0

    def channel(self, query: Query) -> Channel:
        """Return the channel of a query; while too many are followed, another one ends for it.

        Views with a filter end no views without one, nor the other way round.
        """
        channel = self._channels.get(query)
        if channel is None:
            self._make_room(query)
            self._opened += 1
            channel = self._channels[query] = Channel(f"{self.boot}.{self._opened}", self.build(query))
        return channel

    def _make_room(self, query: Query) -> None:
        alike = {other: channel for other, channel in self._channels.items() if other.is_plain == query.is_plain}
        if len(alike) < MAX_CHANNELS:
            return
        idle = [other for other, channel in alike.items() if not channel.viewers]
        # One that was just opened has not been idle yet; its viewer may be on the way. Where none is idle, the one that
        # was opened first goes, so that nobody can keep others out.
        last = min(idle, key=lambda other: alike[other].idle_since_s or math.inf, default=next(iter(alike)))
        self._channels.pop(last).end()

    def refresh(self, now_s: float) -> None:
        """Compute every channel anew, and forget those that have had no viewers for a while."""
        for query, channel in list(self._channels.items()):
            if channel.viewers or channel.idle_since_s == 0.0:
                channel.idle_since_s = now_s
            elif now_s - channel.idle_since_s > IDLE_S:
                del self._channels[query]
                continue
            channel.publish(self.build(query))
