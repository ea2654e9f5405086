"""One value or more of every command."""

from drover.events import commands, leftover_throttles
from drover.events.clusters import HoldRole
from drover.events.plans import Priority, Stepping
from drover.events.refusals import RefusalCode
from tests.events import leader_samples
from tests.events.healing_samples import HEAL_COMMANDS

COMMANDS: dict[str, commands.AnyCommand] = {
    "alter": commands.Alter(
        id="move-1",
        cluster="local",
        by="ann@host",
        reason="drain broker 1",
        partitions=(
            commands.PartitionTarget(topic="orders", partition=0, replicas=(2, 3, 4)),
            commands.PartitionTarget(topic="orders", partition=1, replicas=None),
        ),
    ),
    "alter-with-everything": commands.Alter(
        id="move-2",
        cluster="local",
        by="ann@host",
        reason="drain broker 1",
        partitions=(
            commands.PartitionTarget(topic="orders", partition=2, replicas=(4, 1), original_replicas=(1, 2, 3)),
        ),
        plan="friday",
        more=True,
        throttle_bytes_per_second=10_000_000,
        queue=True,
        allow_replication_factor_change=False,
        allow_drover_topics=True,
    ),
    "limits": commands.ChangeLimits(
        id="l-1",
        cluster="local",
        by="ann",
        reason="a quiet night",
        values={
            "max_moves_per_broker": 10,
            "stepping": "swap",
            "heal.max_bytes_per_day": None,
            "repairs_by_itself": True,
        },
        reset=("reassignment.max.concurrent.leader.movements",),
    ),
    "limits-reset-all": commands.ChangeLimits(
        id="l-2", cluster="local", by="ann", reason="the night is over", reset_all=True
    ),
    "limits-of-a-plan": commands.ChangeLimits(
        id="l-3",
        cluster="local",
        by="ann",
        reason="at weekends",
        values={"windows": "sat,sun 00:00-24:00"},
        plan="friday",
    ),
    "pause": commands.PausePlan(id="p-1", cluster="local", by="ann", reason="a busy hour", plan="friday"),
    "resume": commands.ResumePlan(id="p-2", cluster="local", by="bob", reason="it is over", plan="friday"),
    "hold-broker": commands.HoldBroker(
        id="h-1", cluster="local", by="ann", reason="its disk is slow", broker=4, role=HoldRole.DESTINATION
    ),
    "release-broker": commands.ReleaseBroker(id="h-2", cluster="local", by="bob", reason="a new disk", broker=4),
    "alter-that-empties-and-fills": commands.Alter(
        id="move-5",
        cluster="local",
        by="ann",
        reason="replace broker 3",
        partitions=(commands.PartitionTarget(topic="orders", partition=2, replicas=(7, 1)),),
        empties=(3,),
        fills=(7,),
        allow_emptied_brokers=True,
    ),
    "alter-that-drops-unregistered-brokers": commands.Alter(
        id="move-6",
        cluster="local",
        by="ann",
        reason="undo friday",
        partitions=(commands.PartitionTarget(topic="orders", partition=2, replicas=(1, 2)),),
        drops_unregistered=True,
    ),
    "alter-urgently": commands.Alter(
        id="move-4",
        cluster="local",
        by="ann@host",
        reason="a disk fails",
        partitions=(commands.PartitionTarget(topic="orders", partition=0, replicas=(4, 5, 6)),),
        priority=Priority.HIGH,
    ),
    "cancel": commands.Cancel(id="c-1", cluster="local", by="ann", reason="too slow", mode="rollback", plan="friday"),
    "cancel-partitions": commands.Cancel(
        id="c-2",
        cluster="local",
        by="ann",
        reason="too slow",
        mode="rollback",
        partitions=(commands.PartitionName("orders", 0),),
    ),
    "alter-in-swaps": commands.Alter(
        id="move-3",
        cluster="local",
        by="ann@host",
        reason="drain broker 1",
        partitions=(commands.PartitionTarget(topic="orders", partition=0, replicas=(4, 5, 6)),),
        stepping=Stepping.SWAP,
    ),
    "alter-when-idle": commands.Alter(
        id="znode-7-8-18bcfe56800",
        cluster="local",
        by="zookeeper",
        reason="/admin/reassign_partitions was written in ZooKeeper",
        partitions=(commands.PartitionTarget(topic="orders", partition=0, replicas=(2, 3, 4)),),
        only_when_idle=True,
    ),
    "cancel-topics": commands.Cancel(
        id="c-3", cluster="local", by="ann", reason="too slow", mode="stop", topics=("orders", "payments")
    ),
    "cancel-all": commands.Cancel(id="c-4", cluster="local", by="ann", reason="stop it", mode="rollback", all=True),
    "cancel-queued": commands.Cancel(
        id="c-5", cluster="local", by="ann", reason="not now", mode="rollback", queued="move-2"
    ),
    "alter-of-one-incarnation": commands.Alter(
        id="undo-1",
        cluster="local",
        by="ann",
        reason="back again",
        partitions=(
            commands.PartitionTarget(
                topic="orders", partition=0, replicas=(1, 2, 3), topic_id="QBjRZu1kRSm0SVvmuSHUxg"
            ),
        ),
    ),
    "throttle": commands.Throttle(
        id="t-1", cluster="local", by="ann", reason="producers suffer", plan="friday", bytes_per_second=5_000_000
    ),
    "throttle-of-the-cluster": commands.Throttle(
        id="t-2", cluster="local", by="ann", reason="working hours", bytes_per_second=20_000_000
    ),
    "throttle-cleared": commands.Throttle(id="t-3", cluster="local", by="ann", reason="at night", clear=True),
    "throttle-that-may-rise": commands.Throttle(
        id="t-4",
        cluster="local",
        by="ann",
        reason="a busy topic",
        plan="friday",
        bytes_per_second=5_000_000,
        may_rise_to=20_000_000,
    ),
    "restore-throttles": commands.RestoreThrottles(
        id="t-5",
        cluster="local",
        by="ann",
        reason="the tool was killed",
        brokers=(
            leftover_throttles.LeftoverRates(broker=3, leader=1_000_000),
            leftover_throttles.LeftoverRates(broker=4, follower=0),
        ),
        topics=(leftover_throttles.LeftoverEntries(topic="orders", leader=("0:1", "0:2"), follower=("0:3",)),),
    ),
    "alter-that-may-rise": commands.Alter(
        id="a-9",
        cluster="local",
        by="ann",
        reason="a busy topic",
        partitions=(commands.PartitionTarget(topic="orders", partition=0, replicas=(1, 2)),),
        throttle_bytes_per_second=5_000_000,
        throttle_may_rise_to=20_000_000,
    ),
    "unfreeze-all": commands.Unfreeze(id="f-3", cluster="local", by="ann", reason="all is well", all=True),
    "repair": commands.Repair(id="m-1", cluster="local", by="ann", reason="it never ends"),
    "repair-partitions": commands.Repair(
        id="m-2",
        cluster="local",
        by="ann",
        reason="it never ends",
        partitions=(commands.PartitionName("orders", 0),),
    ),
    "freeze": commands.Freeze(id="f-1", cluster="local", by="ann", reason="incident 7"),
    "unfreeze": commands.Unfreeze(id="f-2", cluster="local", by="ann", reason="incident 7 is over"),
    "blacklist": commands.Blacklist(id="b-1", cluster="local", by="ann", reason="slow disks", brokers=(1, 10, 65)),
    "blacklist-cleared": commands.Blacklist(id="b-2", cluster="local", by="ann", reason="disks are new", brokers=()),
    **leader_samples.COMMANDS,
    "request-refused": commands.RequestRefused(
        id="znode-7-9-18bcfe56801",
        cluster="prod",
        by="zookeeper",
        reason="/admin/reassign_partitions was written in ZooKeeper",
        path="/admin/reassign_partitions",
        code=RefusalCode.MALFORMED,
        detail="this is not JSON",
    ),
    "broker-failed": commands.BrokerFailed(
        id="x-1", cluster="local", by="watch", reason="no ping", broker=3, at_ms=1_790_000_000_000
    ),
    "broker-returned": commands.BrokerReturned(
        id="x-2", cluster="local", by="watch", reason="it is back", broker=3, at_ms=1_790_000_060_000
    ),
    **HEAL_COMMANDS,
}
