"""Make an arrival of a record of a command topic, whoever read it."""

from collections.abc import Iterable

from drover.events.codec import CONTENT_TYPE_HEADER, decode_command
from drover.shard.messages import Arrival

FORWARDED_HEADER = "drover-forwarded"
MAX_HEADER_BYTES = 4096


def arrival_of(
    topic_index: int, offset: int, timestamp_ms: int, payload: bytes, headers: Iterable[tuple[str, bytes]]
) -> Arrival:
    """Decode one record; what is no command travels on as a value that says why. The last header of a name counts."""
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
    """Return the headers to send on; none of them where they are larger than any that mean something."""
    size = sum(len(name) + len(value) for name, value in pairs)
    return pairs if size <= MAX_HEADER_BYTES else ()
