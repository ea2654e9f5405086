"""Samples of the messages about brokers that are not registered; see `tests.events.samples`."""

from drover.events import leadership, reassignments, records, throttles
from drover.events.reassignments import Blocker, Call

_RATES = throttles.Rates(leader=10_000_000, follower=10_000_000)

EVENTS: dict[str, records.AnyEvent] = {
    "call-rejected-unregistered": reassignments.CallRejected(
        cluster="local",
        topic="orders",
        partition=0,
        call=Call.RESTORE,
        code=39,
        message="The manual partition assignment includes broker 1, but no such broker is registered.",
        unregistered=1,
    ),
    "call-accepted-cancel-seen": reassignments.CallAccepted(
        cluster="local", topic="orders", partition=0, call=Call.CANCEL, adopted=True
    ),
    "reassignment-stopped-missing": reassignments.ReassignmentStopped(
        cluster="local", topic="orders", partition=0, replicas=(2, 3, 4, 1), missing=(1,)
    ),
    "reassignment-blocked-unregistered": reassignments.ReassignmentBlocked(
        cluster="local",
        topic="orders",
        partition=0,
        why=Blocker.UNREGISTERED_BROKER,
        detail="broker 4 of the target is not registered with Kafka, which refuses every list that names it",
    ),
    "broker-throttle-left-unregistered": throttles.BrokerThrottleLeft(
        cluster="local", broker=1, found=_RATES, unregistered=True
    ),
    "leader-waiting-unregistered": leadership.LeaderWaiting(
        cluster="local",
        topic="orders",
        partition=0,
        why=leadership.LeaderWaitReason.UNREGISTERED_REPLICA,
        detail="broker 1 leads, and Kafka refuses every new order of the list while broker 9 in it is not registered",
    ),
}
