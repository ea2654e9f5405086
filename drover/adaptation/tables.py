"""No table needs what moves may do less: the log tells it."""

from drover.tables.telling import CapabilityTables
from events.adaptation import BrokerAllowanceChanged, StartsResumed, StartsSuspended

TABLES = CapabilityTables(name="adaptation", untold=frozenset({BrokerAllowanceChanged, StartsSuspended, StartsResumed}))
