"""Events about moves that others have begun: seen and shown, never fought."""

from drover.events.base import PartitionEvent


class UnmanagedMoveSeen(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="unmanaged-move-seen"):
    """Kafka lists a move that is not Drover's; written again when the same partition's lists change.

    A move with a broker in both `adding` and `removing` may never end by itself (seen live on 3.7.2 and 4.3.1).
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class UnmanagedMoveEnded(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="unmanaged-move-ended"):
    """Kafka lists it no more, or Drover has taken it over."""
