"""The events of this capability go into no table of telemetry; the log has them."""

from drover.tables.telling import CapabilityTables
from events.adaptation import BrokerAllowanceChanged, StartsResumed, StartsSuspended

TABLES = CapabilityTables(name="adaptation", untold=frozenset({BrokerAllowanceChanged, StartsSuspended, StartsResumed}))
