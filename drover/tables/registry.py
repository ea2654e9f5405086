"""Every capability's tables in one list."""

from collections.abc import Mapping

import drover.adaptation.tables
import drover.healing.tables
import drover.identity.tables
import drover.leadership.tables
import drover.plans.tables
import drover.reassignment.tables
import drover.scheduling.tables
import drover.throttling.tables
import drover.unmanaged.tables
from drover.tables.schema import Table
from drover.tables.telling import CapabilityTables

CAPABILITIES: tuple[CapabilityTables, ...] = (
    drover.adaptation.tables.TABLES,
    drover.healing.tables.TABLES,
    drover.identity.tables.TABLES,
    drover.leadership.tables.TABLES,
    drover.plans.tables.TABLES,
    drover.reassignment.tables.TABLES,
    drover.scheduling.tables.TABLES,
    drover.throttling.tables.TABLES,
    drover.unmanaged.tables.TABLES,
)


def tables_of(capabilities: tuple[CapabilityTables, ...]) -> Mapping[str, Table]:
    """Return the tables that capabilities bring, by name."""
    return {table.name: table for capability in capabilities for table in capability.tables}
