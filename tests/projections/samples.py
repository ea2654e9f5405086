"""Events that make a document each."""

from events.brokers import BlacklistSet, BrokerFailureRecorded
from events.clusters import ClusterFrozen
from events.reassignments import RollbackRequested

FROZEN = ClusterFrozen(cluster="prod", by="ana", reason="incident 7")
FAILED = BrokerFailureRecorded(cluster="prod", broker=3, failed_at_ms=1234, by="watch", reason="no ping")
BLACKLISTED = BlacklistSet(cluster="prod", brokers=(1, 65), previous_brokers=(), by="ana", reason="slow disks")
CANCELLED = (RollbackRequested(cluster="prod", topic="orders", partition=1, by="bob", reason="alarm"),)
