"""Messages between shell and shard core: an arrival from the inbox, and a proposed batch."""

from dataclasses import dataclass

import msgspec

from drover.events.codec import Malformed
from drover.events.commands import AnyCommand
from drover.events.records import Batch


class Arrival(msgspec.Struct, frozen=True):
    """One record of a command topic, in the inbox of its shard.

    `topic_index` is the place in `TopicNames.commands`; `forwarded` says that another worker produced it here because
    it was in a partition that was not its cluster's. `payload` and `headers` are what the client sent.
    """

    topic_index: int
    offset: int
    timestamp_ms: int
    payload: bytes
    command: AnyCommand | Malformed
    forwarded: bool = False
    headers: tuple[tuple[str, bytes], ...] = ()


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
