"""Messages between shell and shard core: an arrival from the inbox, and a proposed batch."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from drover.events.codec import CONTENT_TYPE_HEADER, Malformed, decode_command
from drover.events.commands import AnyCommand
from drover.events.records import Batch

FORWARDED_HEADER = "drover-forwarded"
MAX_HEADER_BYTES = 4096


class Arrival(msgspec.Struct, frozen=True):
    """One record of a command topic, in the inbox of its shard.

    `topic_index` is the place in `TopicNames.commands`; `forwarded` says that another worker produced it here because
    it was in a partition that was not its cluster's. `payload` and `headers` are the client's.
    """

    topic_index: int
    offset: int
    timestamp_ms: int
    payload: bytes
    command: AnyCommand | Malformed
    forwarded: bool = False
    headers: tuple[tuple[str, bytes], ...] = ()


def arrival_of(
    topic_index: int, offset: int, timestamp_ms: int, payload: bytes, headers: Iterable[tuple[str, bytes]]
) -> Arrival:
    """Decode one record; one that is not a command holds a `Malformed` value. The last header of a name counts."""
    pairs = tuple(headers)
    named = dict(pairs)
    content_type = named.get(CONTENT_TYPE_HEADER)
    return Arrival(
        topic_index=topic_index,
        offset=offset,
        timestamp_ms=timestamp_ms,
        payload=payload,
        command=decode_command(payload, content_type.decode("latin-1") if content_type else None),
        forwarded=FORWARDED_HEADER in named,
        headers=_kept(pairs),
    )


def _kept(pairs: tuple[tuple[str, bytes], ...]) -> tuple[tuple[str, bytes], ...]:
    """Return the headers to send on; none if they are larger than any legitimate ones."""
    size = sum(len(name) + len(value) for name, value in pairs)
    return pairs if size <= MAX_HEADER_BYTES else ()


@dataclass(frozen=True, slots=True)
class ProposedBatch:
    """A batch to append, and what must be acknowledged first.

    `forward` holds arrivals that belong to another shard, `dead_letters` those that are not commands, with the
    reason; both are produced and acknowledged before the record, whose cursors pass them, is appended. `taken` is every
    arrival that the record decides.
    """

    record: Batch
    payload: bytes
    taken: tuple[Arrival, ...]
    forward: tuple[tuple[Arrival, int], ...] = ()
    dead_letters: tuple[tuple[Arrival, str], ...] = ()
