"""Events about the queue of KIP-236."""

from enum import StrEnum

from drover.events.base import PartitionEvent


class QueueExit(StrEnum):
    """Why an entry left the queue."""

    STARTED = "started"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"
    REFUSED = "refused"


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
