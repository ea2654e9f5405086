"""The events about moves that others started; no table needs them."""

from drover.events.unmanaged import UnmanagedMoveEnded, UnmanagedMoveSeen
from drover.spark.tables.handlers import CapabilityTables

TABLES = CapabilityTables(
    name="unmanaged",
    unhandled=frozenset(
        {
            UnmanagedMoveEnded,
            UnmanagedMoveSeen,
        }
    ),
)
