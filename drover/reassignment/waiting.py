"""What waits to be decided: commands that name others in `after`, and the queue of KIP-236."""

from msgspec import Struct


class HeldCommand(Struct, frozen=True, omit_defaults=True):
    """A command that waits for those it names in `after`; where it stands, and since when."""

    payload: bytes
    topic: str
    offset: int
    since_ms: int


class QueueEntry(Struct, frozen=True, omit_defaults=True):
    """One partition in the queue of KIP-236, from the alter command `id`; see `events.waiting.QueueEntryAdded`."""

    id: str
    plan: str
    target: tuple[int, ...]
    since_ms: int
    original_replicas: tuple[int, ...] | None = None
    allow_replication_factor_change: bool = True
    allow_drover_topics: bool = False
