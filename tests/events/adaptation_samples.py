"""Samples of the events that restrict moves while replicas lag; see `tests.events.samples`."""

from drover.events import adaptation, clusters, records
from drover.events.partitions import PartitionReference

EVENTS: dict[str, records.AnyEvent] = {
    "limits-set-adapting": clusters.LimitsSet(
        cluster="local",
        max_partitions_in_flight=1250,
        max_moves_per_broker=5,
        max_replicas_per_step=1,
        adapts_to_health=True,
    ),
    "broker-allowance-changed": adaptation.BrokerAllowanceChanged(
        cluster="local",
        broker=3,
        halvings=1,
        previous_halvings=0,
        why=adaptation.AllowanceReason.LOSING_REPLICAS,
        detail="replica 3 of orders:0 is not in sync, and no move explains it",
    ),
    "starts-suspended": adaptation.StartsSuspended(
        cluster="local", count=1, partitions=(PartitionReference("orders", 0),)
    ),
    "starts-resumed": adaptation.StartsResumed(cluster="local"),
}
