"""The events of this capability go into no table of telemetry; the log has them."""

from drover.events.adaptation import BrokerAllowanceChanged, StartsResumed, StartsSuspended
from drover.spark.tables.handlers import CapabilityTables

TABLES = CapabilityTables(
    name="adaptation", unhandled=frozenset({BrokerAllowanceChanged, StartsSuspended, StartsResumed})
)
