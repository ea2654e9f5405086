"""Events that make a document each."""

from drover.events.brokers import BlacklistSet, BrokerFailureRecorded
from drover.events.clusters import ClusterFrozen
from drover.events.leadership import LeaderBalanceBegun, ListedBroker
from drover.events.reassignments import RollbackRequested

FROZEN = ClusterFrozen(cluster="prod", by="ana", reason="incident 7")
FAILED = BrokerFailureRecorded(cluster="prod", broker=3, failed_at_ms=1234, by="watch", reason="no ping")
BLACKLISTED = BlacklistSet(cluster="prod", brokers=(1, 65), previous_brokers=(), by="ana", reason="slow disks")
DEMOTED = BlacklistSet(
    cluster="prod",
    brokers=(1, 65),
    previous_brokers=(1, 65),
    by="ana",
    reason="slow disks",
    entries=(ListedBroker(broker=65, topics=("orders",), until_ms=1_700_000_007_000),),
)
BALANCING = LeaderBalanceBegun(cluster="prod", by="ana", reason="after the upgrade")
CANCELLED = (RollbackRequested(cluster="prod", topic="orders", partition=1, by="bob", reason="alarm"),)
