"""The events about moves that others started; no table needs them."""

from drover.events.foreign import ForeignMoveEnded, ForeignMoveSeen
from drover.spark.tables.telling import CapabilityTables

TABLES = CapabilityTables(
    name="unmanaged",
    untold=frozenset(
        {
            ForeignMoveEnded,
            ForeignMoveSeen,
        }
    ),
)
