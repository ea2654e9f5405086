"""Every capability's tables in one list."""

from collections.abc import Mapping

import drover.spark.tables.adaptation
import drover.spark.tables.healing
import drover.spark.tables.identity
import drover.spark.tables.leaders
import drover.spark.tables.moves
import drover.spark.tables.plans
import drover.spark.tables.scheduling
import drover.spark.tables.throttles
import drover.spark.tables.unmanaged
from drover.spark.tables.handlers import CapabilityTables
from drover.spark.tables.schema import Table

CAPABILITIES: tuple[CapabilityTables, ...] = (
    drover.spark.tables.adaptation.TABLES,
    drover.spark.tables.healing.TABLES,
    drover.spark.tables.identity.TABLES,
    drover.spark.tables.leaders.TABLES,
    drover.spark.tables.plans.TABLES,
    drover.spark.tables.moves.TABLES,
    drover.spark.tables.scheduling.TABLES,
    drover.spark.tables.throttles.TABLES,
    drover.spark.tables.unmanaged.TABLES,
)


def tables_of(capabilities: tuple[CapabilityTables, ...]) -> Mapping[str, Table]:
    """Return the tables that capabilities bring, by name."""
    return {table.name: table for capability in capabilities for table in capability.tables}
