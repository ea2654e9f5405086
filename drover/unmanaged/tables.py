"""The events about moves that others started; no table needs them."""

from drover.tables.telling import CapabilityTables
from events.foreign import ForeignMoveEnded, ForeignMoveSeen

TABLES = CapabilityTables(
    name="unmanaged",
    untold=frozenset(
        {
            ForeignMoveEnded,
            ForeignMoveSeen,
        }
    ),
)
