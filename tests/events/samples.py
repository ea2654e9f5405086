"""One value or more of every message type; `golden.json` beside it holds the bytes they were once written as."""

import msgspec

from drover.events import (
    brokers,
    clusters,
    partitions,
    plans,
    queue_entries,
    reassignments,
    records,
    throttles,
    unmanaged,
)
from drover.events.reassignments import Blocker, Call, FailureReason, SkipReason, WithdrawalReason
from drover.events.refusals import Refusal, RefusalCode
from drover.events.traits import Completion, Retarget, Traits
from drover.traits import LATEST
from tests.events import adaptation_samples, leader_samples, limit_samples, throttle_samples, unregistered_samples
from tests.events.healing_samples import HEALING

TOKEN = bytes(range(16))
HASH = bytes(range(16, 32))

_RATES = throttles.Rates(leader=10_000_000, follower=10_000_000)
_ENTRIES = throttles.Entries(leader=("0:1", "0:2"), follower=("0:3",))

EVENTS: dict[str, records.AnyEvent] = {
    "cluster-identified-with-its-brokers": clusters.ClusterIdentified(
        cluster="local", kafka_cluster_id="4L6g3nShT-eMCtK--X86sw", brokers=(1, 2, 3)
    ),
    "brokers-seen": clusters.BrokersSeen(cluster="local", brokers=(4, 5)),
    "unreachable-brokers-changed": clusters.UnreachableBrokersChanged(cluster="local", brokers=(3,)),
    "cluster-identified": clusters.ClusterIdentified(cluster="local", kafka_cluster_id="4L6g3nShT-eMCtK--X86sw"),
    "cluster-mismatched": clusters.ClusterMismatched(
        cluster="local", expected_kafka_cluster_id="4L6g3nShT-eMCtK--X86sw", found_kafka_cluster_id="other"
    ),
    "cluster-matched": clusters.ClusterMatched(cluster="local", kafka_cluster_id="4L6g3nShT-eMCtK--X86sw"),
    "cluster-out-of-reach": clusters.ClusterOutOfReach(
        cluster="local", since_ms=1_790_000_000_000, detail="prod-1:9093 cannot be reached: connection refused"
    ),
    "cluster-within-reach": clusters.ClusterWithinReach(cluster="local"),
    "cluster-traits-seen": clusters.ClusterTraitsSeen(
        cluster="local",
        traits=Traits(
            kafka="3.9", completion=Completion.TARGET, retarget=Retarget.ORIGINAL, is_known=True, zookeeper_mode=True
        ),
    ),
    # Written before `elects_unclean` was a trait.
    "cluster-traits-seen-of-the-latest": clusters.ClusterTraitsSeen(
        cluster="local", traits=msgspec.structs.replace(LATEST, elects_unclean=False)
    ),
    "cluster-traits-seen-with-unclean-elections": clusters.ClusterTraitsSeen(cluster="local", traits=LATEST),
    "limits-set": clusters.LimitsSet(
        cluster="local", max_partitions_in_flight=1250, max_moves_per_broker=5, max_replicas_per_step=1
    ),
    "cluster-frozen": clusters.ClusterFrozen(cluster="local", by="ann", reason="incident 7"),
    "cluster-unfrozen": clusters.ClusterUnfrozen(cluster="local", by="ann", reason="incident 7 is over"),
    "freeze-ended": clusters.FreezeEnded(cluster="local", by="bob", reason="my part is done"),
    "blacklist-set": brokers.BlacklistSet(
        cluster="local", brokers=(1, 65), previous_brokers=(1, 10, 65), by="ann", reason="10 is mended"
    ),
    **leader_samples.EVENTS,
    **adaptation_samples.EVENTS,
    **limit_samples.EVENTS,
    **throttle_samples.EVENTS,
    **unregistered_samples.EVENTS,
    **HEALING,
    "broker-failure-recorded": brokers.BrokerFailureRecorded(
        cluster="local", broker=3, failed_at_ms=1_790_000_000_000, by="watch", reason="no ping"
    ),
    "broker-return-recorded": brokers.BrokerReturnRecorded(
        cluster="local",
        broker=3,
        failed_at_ms=1_790_000_000_000,
        returned_at_ms=1_790_000_060_000,
        by="watch",
        reason="it is back",
    ),
    "plan-opened": plans.PlanOpened(cluster="local", plan="friday", by="ann", reason="drain broker 1"),
    "plan-extended": plans.PlanExtended(cluster="local", plan="friday", more=True),
    "plan-throttle-set": plans.PlanThrottleSet(cluster="local", plan="friday", bytes_per_second=10_000_000),
    "plan-cancelled": plans.PlanCancelled(cluster="local", plan="friday", by="ann", reason="too slow"),
    "plan-finished": plans.PlanFinished(cluster="local", plan="friday", completed=2, rolled_back=1, failed=0),
    "plans-forgotten": plans.PlansForgotten(cluster="local", plans=("friday", "monday")),
    "reassignment-created": reassignments.ReassignmentCreated(
        cluster="local",
        topic="orders",
        partition=0,
        topic_id="QBjRZu1kRSm0SVvmuSHUxg",
        plan="friday",
        original=(1, 2, 3),
        target=(2, 3, 4),
    ),
    "step-prepared": reassignments.StepPrepared(
        cluster="local",
        topic="orders",
        partition=0,
        step=1,
        final=True,
        expected=(1, 2, 3),
        replicas=(2, 3, 4),
        leader=1,
    ),
    "step-postponed": reassignments.StepPostponed(cluster="local", topic="orders", partition=0, step=1),
    "call-intended": reassignments.CallIntended(
        cluster="local",
        topic="orders",
        partition=0,
        call=Call.STEP,
        expected=(1, 2, 3),
        replicas=(2, 3, 4),
        step=1,
        final=True,
        leader=1,
    ),
    "call-intended-cancel": reassignments.CallIntended(
        cluster="local", topic="orders", partition=0, call=Call.CANCEL, expected=(2, 3, 4, 1)
    ),
    "call-accepted": reassignments.CallAccepted(
        cluster="local", topic="orders", partition=0, call=Call.STEP, adopted=True
    ),
    "call-rejected": reassignments.CallRejected(
        cluster="local", topic="orders", partition=0, call=Call.STEP, code=39, message="unknown broker"
    ),
    "call-lapsed": reassignments.CallLapsed(
        cluster="local", topic="orders", partition=0, call=Call.CANCEL, detail="the partition is still moving"
    ),
    "call-outcome-lost": reassignments.CallOutcomeLost(
        cluster="local", topic="orders", partition=0, call=Call.RESTORE, detail="no answer within 4 s"
    ),
    "step-confirmed": reassignments.StepConfirmed(
        cluster="local", topic="orders", partition=0, step=1, replicas=(1, 2, 3, 4), bytes_copied=1_048_576
    ),
    "reassignment-completed": reassignments.ReassignmentCompleted(
        cluster="local",
        topic="orders",
        partition=0,
        replicas=(2, 3, 4),
        out_of_sync=(3,),
        before_cancel=True,
        bytes_copied=1_048_576,
    ),
    "step-confirmed-unmeasured": reassignments.StepConfirmed(
        cluster="local", topic="orders", partition=0, step=1, replicas=(1, 2, 3, 4), bytes_unknown=True
    ),
    "reassignment-completed-unmeasured": reassignments.ReassignmentCompleted(
        cluster="local", topic="orders", partition=0, replicas=(2, 3, 4), bytes_unknown=True
    ),
    "rollback-requested": reassignments.RollbackRequested(
        cluster="local", topic="orders", partition=0, by="ann", reason="too slow"
    ),
    "rollback-skipped": reassignments.RollbackSkipped(
        cluster="local", topic="orders", partition=0, why=SkipReason.NO_ORIGINAL_IN_SYNC, isr=(4,)
    ),
    "rollback-requested-until-withdrawn": reassignments.RollbackRequested(
        cluster="local", topic="orders", partition=0, by="ann", reason="too slow", until_withdrawn=True
    ),
    "stop-requested-again": reassignments.StopRequested(
        cluster="local", topic="orders", partition=0, by="ann", reason="enough", until_withdrawn=True, again=True
    ),
    "cancel-withdrawn": reassignments.CancelWithdrawn(
        cluster="local", topic="orders", partition=0, by="ann", reason="let it go on"
    ),
    "step-taken-back": reassignments.StepTakenBack(
        cluster="local", topic="orders", partition=0, step=2, replicas=(4, 2, 3)
    ),
    "return-begun": reassignments.ReturnBegun(
        cluster="local", topic="orders", partition=0, replicas=(1, 4, 5), destination=(1, 2, 3)
    ),
    "reassignment-completed-all-the-same": reassignments.ReassignmentCompleted(
        cluster="local", topic="orders", partition=0, replicas=(4, 5, 6), deferred_by=SkipReason.BELOW_MIN_ISR
    ),
    "reassignment-rolled-back": reassignments.ReassignmentRolledBack(
        cluster="local", topic="orders", partition=0, replicas=(1, 2, 3), started=False
    ),
    "reassignment-rolled-back-without-one": reassignments.ReassignmentRolledBack(
        cluster="local", topic="orders", partition=0, replicas=(1, 2, 4), missing=(3,)
    ),
    "stop-requested": reassignments.StopRequested(
        cluster="local", topic="orders", partition=0, by="ann", reason="enough"
    ),
    "target-replaced": reassignments.TargetReplaced(
        cluster="local", topic="orders", partition=0, plan="saturday", target=(1, 2, 5)
    ),
    "replacement-withdrawn": reassignments.ReplacementWithdrawn(
        cluster="local", topic="orders", partition=0, why=WithdrawalReason.CANCELLED, by="ann", reason="not now"
    ),
    "reassignment-stopped": reassignments.ReassignmentStopped(
        cluster="local", topic="orders", partition=0, replicas=(1, 2, 3, 4), started=False
    ),
    "reassignment-adopted": reassignments.ReassignmentAdopted(
        cluster="local",
        topic="orders",
        partition=0,
        topic_id="QBjRZu1kRSm0SVvmuSHUxg",
        plan="m-1",
        original=(1, 2, 3),
        expected=(1, 2, 3),
        replicas=(2, 3, 4),
    ),
    "late-change-found": reassignments.LateChangeFound(
        cluster="local", topic="orders", partition=0, plan="friday", sent=(2, 3, 4), replicas=(2, 3, 4, 1)
    ),
    "queue-entry-added-for-one-incarnation": queue_entries.QueueEntryAdded(
        cluster="local",
        topic="orders",
        partition=2,
        id="move-2",
        plan="friday",
        target=(4, 1),
        topic_id="QBjRZu1kRSm0SVvmuSHUxg",
    ),
    "queue-entry-added": queue_entries.QueueEntryAdded(
        cluster="local",
        topic="orders",
        partition=2,
        id="move-2",
        plan="friday",
        target=(4, 1),
        original_replicas=(1, 2, 3),
        allow_replication_factor_change=False,
        allow_drover_topics=True,
    ),
    "queue-entry-added-for-any-broker": queue_entries.QueueEntryAdded(
        cluster="local",
        topic="orders",
        partition=2,
        id="move-2",
        plan="friday",
        target=(4, 1),
        allow_emptied_brokers=True,
    ),
    "plan-opened-to-empty-and-fill": plans.PlanOpened(
        cluster="local", plan="friday", by="ann", reason="replace broker 3", empties=(3,), fills=(7,)
    ),
    "plan-extended-to-empty-and-fill": plans.PlanExtended(cluster="local", plan="friday", empties=(4,), fills=(8,)),
    "queue-entry-removed": queue_entries.QueueEntryRemoved(
        cluster="local",
        topic="orders",
        partition=2,
        why=queue_entries.QueueExit.REFUSED,
        detail="orders-2 does not exist in local",
    ),
    "unmanaged-move-seen": unmanaged.UnmanagedMoveSeen(
        cluster="local", topic="orders", partition=3, replicas=(1, 2, 3, 4), adding=(4,), removing=(4,)
    ),
    "unmanaged-move-ended": unmanaged.UnmanagedMoveEnded(cluster="local", topic="orders", partition=3),
    "plan-finished-in-every-way": plans.PlanFinished(
        cluster="local", plan="friday", completed=2, rolled_back=1, failed=0, stopped=3, withdrawn=4
    ),
    "limits-set-to-repair": clusters.LimitsSet(
        cluster="local",
        max_partitions_in_flight=1250,
        max_moves_per_broker=5,
        max_replicas_per_step=1,
        repairs_by_itself=True,
    ),
    "reassignment-blocked": reassignments.ReassignmentBlocked(
        cluster="local",
        topic="orders",
        partition=0,
        why=Blocker.DEAD_DESTINATION,
        detail="broker 4 is not alive: bring it back or cancel",
    ),
    "reassignment-unblocked": reassignments.ReassignmentUnblocked(cluster="local", topic="orders", partition=0),
    "reassignment-failed": reassignments.ReassignmentFailed(
        cluster="local",
        topic="orders",
        partition=0,
        why=FailureReason.PARTITION_GONE,
        detail="the topic was deleted and recreated",
        replicas=(1, 2, 3),
    ),
}

OUTCOME = records.Outcome(
    id="move-1",
    cluster="local",
    type="alter",
    by="ann@host",
    reason="drain broker 1",
    topic="drover.alter",
    offset=17,
    verdict="accepted",
    digest=HASH,
    plan="move-1",
    accepted=(partitions.PartitionReference("orders", 0),),
    unchanged=(partitions.PartitionReference("orders", 1),),
    refusals=(Refusal(RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, "orders:9 does not exist in local", "orders", 9),),
    first_offset=5,
)


def batch_of(*events: records.AnyEvent) -> records.Batch:
    """Return a batch that carries these events."""
    return records.Batch(
        schema=1,
        token=TOKEN,
        epoch=3,
        sequence=8,
        at_ms=1_790_000_000_000,
        cursors=tuple(records.Cursor("QBjRZu1kRSm0SVvmuSHUxg", offset) for offset in (18, 2, 0, 0)),
        previous_hash=HASH,
        events=events,
    )


RECORDS: dict[str, records.Record] = {
    "genesis": records.Genesis(schema=1, shards=6, shard=2),
    "acquire": records.Acquire(schema=1, epoch=3, token=TOKEN, owner="w1", group="drover-worker", generation=7),
    "batch": batch_of(),
    "batch-with-everything": records.Batch(
        schema=1,
        token=TOKEN,
        epoch=3,
        sequence=9,
        at_ms=1_790_000_000_100,
        cursors=(records.Cursor("QBjRZu1kRSm0SVvmuSHUxg", 18),),
        previous_hash=HASH,
        outcomes=(OUTCOME,),
        events=(EVENTS["plan-opened"], EVENTS["reassignment-created"]),
        state_hash=HASH,
    ),
    "batch-that-vouches-for-a-snapshot": records.Batch(
        schema=1,
        token=TOKEN,
        epoch=3,
        sequence=11,
        at_ms=1_790_000_000_300,
        cursors=(records.Cursor("QBjRZu1kRSm0SVvmuSHUxg", 19),),
        previous_hash=HASH,
        snapshot_digest=TOKEN,
    ),
    # The events leave out what the outcome says.
    "batch-of-a-cancel": records.Batch(
        schema=1,
        token=TOKEN,
        epoch=3,
        sequence=10,
        at_ms=1_790_000_000_200,
        cursors=(records.Cursor("QBjRZu1kRSm0SVvmuSHUxg", 19),),
        previous_hash=HASH,
        outcomes=(
            records.Outcome(
                id="cancel-7",
                cluster="local",
                type="cancel",
                by="ann",
                reason="too slow",
                topic="drover.cancel",
                offset=18,
                verdict="accepted",
                digest=HASH,
                accepted=(partitions.PartitionReference("orders", 0), partitions.PartitionReference("orders", 1)),
            ),
        ),
        events=(
            reassignments.RollbackRequested(
                cluster="local", topic="orders", partition=0, by="ann", reason="too slow", command="cancel-7"
            ),
            reassignments.StopRequested(
                cluster="local", topic="orders", partition=1, by="ann", reason="too slow", command="cancel-7"
            ),
            reassignments.CancelWithdrawn(
                cluster="local", topic="orders", partition=2, by="ann", reason="too slow", command="cancel-7"
            ),
            reassignments.ReplacementWithdrawn(
                cluster="local",
                topic="orders",
                partition=3,
                why=WithdrawalReason.CANCELLED,
                by="ann",
                reason="too slow",
                command="cancel-7",
            ),
        ),
    ),
}
