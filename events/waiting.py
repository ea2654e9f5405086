"""Events about what waits to be decided: large commands, and the queue of KIP-236."""

from enum import StrEnum

from msgspec import Struct

from drover.events.base import Event, PartitionEvent


class QueueExit(StrEnum):
    """Why an entry left the queue."""

    STARTED = "started"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"
    REFUSED = "refused"


class PartitionRun(Struct, frozen=True):
    """Some partitions of one topic, in their order."""

    topic: str
    partitions: tuple[int, ...]


class CommandBegun(Event, frozen=True, kw_only=True, omit_defaults=True, tag="command-begun"):
    """A command is too large for one record: this one decides a part of it, and the next ones the rest.

    `left` are the partitions that are not decided here, in the order in which they will be, `part` of them at a time.
    `payload` is the command in msgpack; it is in `topic` at `offset`. Until all is decided no other command of the
    cluster is; with `withholds`, which a cancel has, no step starts either.
    """

    id: str
    payload: bytes
    topic: str
    offset: int
    left: tuple[PartitionRun, ...]
    part: int
    withholds: bool = False


class CommandAdvanced(Event, frozen=True, kw_only=True, omit_defaults=True, tag="command-advanced"):
    """The next part of such a command is decided in this very record; `decided` of those that were left are by now."""

    id: str
    decided: int


class QueueEntryAdded(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="queue-entry-added"):
    """One partition of an alter command with `queue` waits behind everything that was accepted before (R236-12).

    `id` is that command's. What it asks for is checked when there is room for it. `topic_id` is the incarnation of the
    topic that was there at acceptance; it is None in logs from before entries remembered it.
    """

    id: str
    plan: str
    target: tuple[int, ...]
    original_replicas: tuple[int, ...] | None = None
    allow_replication_factor_change: bool = True
    allow_drover_topics: bool = False
    topic_id: str | None = None
    allow_emptied_brokers: bool = False


class QueueEntryRemoved(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="queue-entry-removed"):
    """An entry left the queue: it was started, withdrawn by a cancel, replaced by a later entry, or refused.

    `detail` says for a refused one why, in the words that a refusal would have.
    """

    why: QueueExit
    detail: str = ""
