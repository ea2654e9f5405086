"""Samples of the messages about leaders; see `tests.events.samples`."""

from drover.decide.verdict import EventName
from drover.events import brokers, clusters, commands, leadership, reassignments, records

_ORDERS: EventName = {"cluster": "local", "topic": "orders", "partition": 0}

COMMANDS: dict[str, commands.AnyCommand] = {
    "blacklist-entries": commands.Blacklist(
        id="b-3",
        cluster="local",
        by="ann",
        reason="slow disks",
        brokers=(1,),
        entries=(
            commands.BlacklistEntry(broker=3, topics=("orders",), until_ms=1_790_000_060_000, reason="one slow disk"),
        ),
    ),
    "demote-broker": commands.Demote(
        id="d-1", cluster="local", by="ann", reason="slow disk", broker=3, topics=("orders",), for_ms=7_200_000
    ),
    "demote-broker-until-in-sync": commands.Demote(
        id="d-4", cluster="local", by="ann", reason="it was away", broker=3, until_in_sync=True
    ),
    "restore-broker": commands.Restore(id="d-2", cluster="local", by="ann", reason="new disk", broker=3),
    "balance-leaders": commands.BalanceLeaders(
        id="d-3", cluster="local", by="ann", reason="after a restart", topics=("orders",)
    ),
}

EVENTS: dict[str, records.AnyEvent] = {
    "blacklist-set-entries": brokers.BlacklistSet(
        cluster="local",
        brokers=(1, 3),
        previous_brokers=(1,),
        by="ann",
        reason="slow disk",
        entries=(leadership.ListedBroker(broker=3, topics=("orders",), for_ms=7_200_000, reason="slow disk"),),
    ),
    "blacklist-set-until-in-sync": brokers.BlacklistSet(
        cluster="local",
        brokers=(3,),
        previous_brokers=(),
        by="ann",
        reason="it was away",
        entries=(leadership.ListedBroker(broker=3, reason="it was away", until_in_sync=True),),
    ),
    "leader-order-kept": leadership.LeaderOrderKept(
        **_ORDERS, topic_id="QBjRZu1kRSm0SVvmuSHUxg", canonical=(3, 1, 2), replicas=(3, 1, 2)
    ),
    "leader-order-changed": leadership.LeaderOrderChanged(**_ORDERS, replicas=(1, 2, 3)),
    "leader-order-left": leadership.LeaderOrderLeft(**_ORDERS, replicas=(3, 2, 1), expected=(1, 2, 3)),
    "leader-order-ended": leadership.LeaderOrderEnded(**_ORDERS, why=leadership.OrderEnd.RESTORED, replicas=(3, 1, 2)),
    "leader-orders-intended": leadership.LeaderOrdersIntended(
        cluster="local",
        topic="orders",
        partitions=(0, 7),
        topic_id="QBjRZu1kRSm0SVvmuSHUxg",
        changes=(
            leadership.OrderChange((3, 1, 2), (3, 1, 2), (1, 2, 3), elects=True, leader=3),
            leadership.OrderChange((2, 3, 1), (2, 3, 1), (2, 1, 3), leader=2),
        ),
    ),
    "leader-orders-answered": leadership.LeaderOrdersAnswered(
        cluster="local", topic="orders", partitions=(0, 7), outcome=leadership.OrderOutcome.ELECTING, restored=(7,)
    ),
    "leader-orders-answered-refused": leadership.LeaderOrdersAnswered(
        cluster="local",
        topic="orders",
        partitions=(3,),
        outcome=leadership.OrderOutcome.REFUSED,
        code=39,
        detail="The manual partition assignment includes broker 2, but no such broker is registered.",
    ),
    "leader-elections-ended": leadership.LeaderElectionsEnded(
        cluster="local", topic="orders", partitions=(0, 7), outcome=leadership.ElectionOutcome.ELECTED, restored=(0, 7)
    ),
    "leader-waiting": leadership.LeaderWaiting(
        **_ORDERS,
        why=leadership.LeaderWaitReason.NO_IN_SYNC_REPLICA,
        detail="broker 3 leads, and none of 1, 2 is in sync and alive: bring one of them back",
    ),
    "leader-wait-ended": leadership.LeaderWaitEnded(**_ORDERS),
    "leader-election-intended": leadership.LeaderElectionIntended(
        **_ORDERS, topic_id="QBjRZu1kRSm0SVvmuSHUxg", replicas=(1, 2, 3), leader=3
    ),
    "leader-election-ended": leadership.LeaderElectionEnded(
        **_ORDERS,
        outcome=leadership.ElectionOutcome.REFUSED,
        code=80,
        detail="the preferred leader was not available",
    ),
    "leader-balance-begun": leadership.LeaderBalanceBegun(
        cluster="local", by="ann", reason="after a restart", topics=("orders",)
    ),
    "leader-balance-ended": leadership.LeaderBalanceEnded(cluster="local", elected=12, left=1),
    "leaders-counted": leadership.LeadersCounted(
        cluster="local", brokers=(leadership.LeaderCount(1, 7, 6), leadership.LeaderCount(3, 0, 1))
    ),
    "reassignment-created-reordered": reassignments.ReassignmentCreated(
        **_ORDERS,
        topic_id="QBjRZu1kRSm0SVvmuSHUxg",
        plan="friday",
        original=(3, 1, 2),
        target=(2, 3, 4),
        current=(1, 2, 3),
    ),
    "limits-set-leaders": clusters.LimitsSet(
        cluster="local",
        max_partitions_in_flight=1250,
        max_moves_per_broker=5,
        max_replicas_per_step=1,
        max_leader_movements=100,
        lazy_leadership=True,
        balances_after_return=True,
    ),
}
