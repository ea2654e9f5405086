"""The golden snapshots: folds that Drover once wrote down, checked in, and restored for ever.

`python -m tests.shard.snapshot_samples` adds the bytes of new samples. It never changes bytes that are there: if old
ones are not restored any more, the form or a value of the state must be mended, not the file.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from drover.events.clusters import Budgets, HoldRole
from drover.events.partitions import TopicPartition
from drover.events.plans import Priority, Stepping
from drover.events.reassignments import Blocker, CancelMode, SkipReason
from drover.events.records import Cursor
from drover.events.throttles import Entries, Rates
from drover.events.traits import Completion, Retarget, Traits
from drover.fold.decided_commands import DecidedCommand
from drover.fold.log import ShardFold
from drover.fold.snapshot import encode_fold
from drover.state.adaptation import Allowance, Suspension
from drover.state.cluster import ClusterState
from drover.state.identity import Outage
from drover.state.phase import Phase
from drover.state.plans import ClusterThrottle, Pause, Plan, PlanStatus
from drover.state.reassignment import Asked, Block, ExpiredCalls, Reassignment, Replacement, Step
from drover.state.scheduling import ChangedLimit, ClosedWindow, Freeze, HeldBroker, Limits, QueueEntry
from drover.state.throttles import BrokerThrottle, ConfigRefusal, Interference, TopicThrottle
from drover.state.unmanaged import UnmanagedMove
from tests.shard.snapshot_heals import with_a_heal, with_a_superseded_heal, with_brokers
from tests.shard.snapshot_leaders import with_a_listing_until_in_sync, with_intended_orders, with_leaders
from tests.shard.snapshot_plans import with_an_unregistered_broker, with_goals

GOLDEN = Path(__file__).parent / "golden"
SLOT, SINCE = 1, 17


def _plans(state: ClusterState) -> None:
    state.plans["friday"] = Plan(
        name="friday", by="ana@host", reason="drain broker 1", opened_ms=1_790_000_000_000, more=True,
        extended_ms=1_790_000_000_500, throttle_bytes_per_second=10_000_000, active=3, completed=4, rolled_back=5,
        failed=6, stopped=7, waiting=2, withdrawn=1,
    )  # fmt: skip
    state.plans["monday"] = Plan("monday", "bob", "", 1_789_000_000_000, status=PlanStatus.CANCELLED)


def _reassignments(state: ClusterState) -> None:
    first = Reassignment(
        key=TopicPartition("orders", 0), topic_id="AAAAAAAAAAAAAAAAAAAAAQ", plan="friday", number=11,
        original=(1, 2, 3), target=(4, 2, 3), created_ms=1_790_000_000_000, phase=Phase.COPYING,
        since_ms=1_790_000_000_100, current=(1, 2, 3), step=Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1),
        outcome_unknown=True,
        attempts=2, bytes_copied=512, block=Block(Blocker.NO_LEADER, "nobody leads", 1_790_000_000_200),
    )  # fmt: skip
    second = Reassignment(
        key=TopicPartition("orders", 1), topic_id="AAAAAAAAAAAAAAAAAAAAAQ", plan="friday", number=12,
        original=(2, 3, 1), target=(4, 3, 2), created_ms=1_790_000_000_000, phase=Phase.RESTORING,
        since_ms=1_790_000_000_300, current=(2, 3, 1), step=Step(2, True, (2, 3, 1, 4), (4, 3, 2), None),
        cancel_mode=CancelMode.STOP, replacement=Replacement("friday", (3, 4, 1)), restoring=(2, 3, 1),
        unresolved_targets=((2, 3, 1, 4), (4, 3, 2)), repaired=True,
    )  # fmt: skip
    third = Reassignment(
        key=TopicPartition("bestellungen.größe", 0), topic_id="AAAAAAAAAAAAAAAAAAAAAg", plan="friday", number=13,
        original=(1,), target=(2,), created_ms=1_790_000_000_400, phase=Phase.PENDING, since_ms=1_790_000_000_400,
        current=(1,),
    )  # fmt: skip
    for one in (first, second, third):
        state.put(one)


def _waiting(state: ClusterState) -> None:
    key = TopicPartition("payments", 3)
    state.queue[key] = QueueEntry("alter-9", "friday", (1, 2), 1_790_000_000_600, (3, 2), False, True)
    state.queue[TopicPartition("payments", 1)] = QueueEntry("alter-9", "friday", (2, 1), 1_790_000_000_600)
    state.unmanaged[key] = UnmanagedMove((1, 2, 3), (3,), (1,), 1_790_000_000_800)
    state.expired_calls[TopicPartition("orders", 7)] = ExpiredCalls(
        "AAAAAAAAAAAAAAAAAAAAAQ", "monday", ((1, 2), (2, 1)), (1, 2), 1_790_000_000_900
    )


def _brokers(state: ClusterState) -> None:
    state.failed_brokers.update({3: 1_790_000_000_000, 5: 1_790_000_000_001})
    state.broker_throttles[1] = BrokerThrottle(Rates(None, 7), Rates(10_000_000, 10_000_000), True, False)
    state.broker_throttles[4] = BrokerThrottle(Rates(None, None), Rates(None, None), False, True)
    state.topic_throttles["orders"] = TopicThrottle(
        present=Entries(("0:1",), ("0:4",)), add=Entries((), ("1:4",)), remove=Entries(("1:2",), ()), pending=True,
        left=True,
    )  # fmt: skip


def _full() -> ShardFold:
    """Every field of everything is set, and most of them differ from their defaults."""
    fold = ShardFold(2, 6)
    fold.position, fold.epoch, fold.token, fold.owner = 4711, 9, bytes(range(16)), "worker-1"
    fold.group, fold.generation, fold.sequence = "drover-worker", 12, 4000
    fold.chain, fold.chain_offset, fold.at_ms = b"\xfe" * 16, 4709, 1_790_000_001_000
    fold.cursors = tuple(Cursor(f"topic-id-{number}", 100 + number) for number in range(4))
    fold.fenced_batches, fold.stale_acquires = 3, 1
    state = fold.state.cluster("prod")
    state.kafka_cluster_id, state.mismatched_kafka_cluster_id = "kafka-1", "kafka-2"
    state.freeze = Freeze("bob", "incident 7", 1_790_000_000_950)
    state.limits = Limits(100, 4, 2, repairs_by_itself=True)
    state.blacklist, state.next_number = (1, 4), 14
    for fill in (_plans, _reassignments, _waiting, _brokers):
        fill(state)
    state.rebuild_indexes()
    fold.state.cluster("another")
    for number, identity in enumerate((("prod", "alter-1"), ("another", "freeze-1"))):
        fold.decided_commands.add(
            identity, DecidedCommand(bytes([number] * 16), 4000 + number, 1_790_000_000_000 + number)
        )
    return fold


def _with_topic_ids() -> ShardFold:
    """The incarnation of a throttled topic is known."""
    fold = _full()
    throttles = fold.state.cluster("prod").topic_throttles
    throttles["orders"] = msgspec.structs.replace(throttles["orders"], topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    return fold


def _with_ended_plans() -> ShardFold:
    """It is known when plans ended."""
    fold = _with_topic_ids()
    fold.state.cluster("prod").ended_plans["monday"] = 1_790_000_000_940
    return fold


def _with_a_deferred_cancel() -> ShardFold:
    """A rollback that was asked for waits for its guard."""
    fold = _with_ended_plans()
    state = fold.state.cluster("prod")
    entry = state.reassignments[TopicPartition("orders", 0)]
    asked = Asked(CancelMode.ROLLBACK, "bob", "a latency alarm", 1_790_000_000_250)
    state.change(entry, msgspec.structs.replace(entry, asked=asked, deferred_by=SkipReason.BELOW_MIN_ISR))
    return fold


def _on_its_way_back_by_steps() -> ShardFold:
    """A rollback needs copies."""
    fold = _with_a_deferred_cancel()
    state = fold.state.cluster("prod")
    entry = state.reassignments[TopicPartition("orders", 1)]
    state.change(entry, msgspec.structs.replace(entry, returning_to=(2, 3, 1)))
    return fold


def _with_a_heal() -> ShardFold:
    return with_a_heal(_on_its_way_back_by_steps())


def _with_void_records() -> ShardFold:
    """Somebody else has written to the log."""
    fold = _on_its_way_back_by_steps()
    fold.void_records = 3
    return fold


def _frozen_by_several() -> ShardFold:
    """Two have frozen the cluster; an entry is of one incarnation."""
    fold = _on_its_way_back_by_steps()
    state = fold.state.cluster("prod")
    state.later_freezes["ann"] = Freeze("ann", "incident 8", 1_790_000_000_960)
    key = TopicPartition("payments", 1)
    state.queue[key] = msgspec.structs.replace(state.queue[key], topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    return fold


def _out_of_reach() -> ShardFold:
    """The cluster cannot be looked at."""
    fold = _frozen_by_several()
    fold.state.cluster("prod").outage = Outage(1_790_000_000_970, "no broker answers")
    return fold


def _with_known_brokers() -> ShardFold:
    """A cluster whose brokers were seen alive."""
    fold = _full()
    fold.state.cluster("prod").known_brokers = (1, 2, 3, 65)
    fold.decided_commands.add(("prod", "alter-2"), DecidedCommand(bytes(16), 4005, 1_790_000_000_100, 7, "ana@host"))
    return fold


def _with_steppings() -> ShardFold:
    """A plan and the cluster say how partitions go to their targets."""
    fold = _on_its_way_back_by_steps()
    state = fold.state.cluster("prod")
    state.limits = msgspec.structs.replace(state.limits, stepping=Stepping.SWAP)
    state.steppings["monday"] = Stepping.SINGLE
    return fold


def _unmeasured() -> ShardFold:
    """A step was over before anybody knew its size."""
    fold = _out_of_reach()
    state = fold.state.cluster("prod")
    entry = state.reassignments[TopicPartition("orders", 1)]
    state.change(entry, msgspec.structs.replace(entry, bytes_unknown=True))
    return fold


def _with_leaders() -> ShardFold:
    return with_leaders(_on_its_way_back_by_steps())


def _with_intended_orders() -> ShardFold:
    return with_intended_orders(_with_leaders())


def _with_changed_limits() -> ShardFold:
    """Commands have set limits: two of the cluster, and one of healing to no bound."""
    fold = _with_a_heal()
    state = fold.state.cluster("prod")
    at_ms = 1_790_000_000_970
    state.changed_limits = {
        "max_moves_per_broker": ChangedLimit(9, 4, "ann", "a quiet night", at_ms),
        "stepping": ChangedLimit("swap", "grow", "ann", "a quiet night", at_ms),
        "heal.max_bytes_per_day": ChangedLimit(None, 1_000_000, "bob", "the disks are new", at_ms),
        "repairs_by_itself": ChangedLimit(True, False, "bob", "nobody is here", at_ms),
    }
    return fold


def _with_throttles_of_others() -> ShardFold:
    """Others have deleted and changed throttles that Drover had set."""
    fold = _with_steppings()
    state = fold.state.cluster("prod")
    known = state.broker_throttles[1]
    others = Interference(Rates(None, 5_000_000), 2, 1_790_000_000_980)
    state.broker_throttles[1] = msgspec.structs.replace(known, others=others)
    topic = state.topic_throttles["orders"]
    state.topic_throttles["orders"] = msgspec.structs.replace(topic, times_deleted=3, deleted_ms=1_790_000_000_981)
    return fold


def _with_refused_throttles() -> ShardFold:
    """Kafka refuses to set the rates of a broker and to change the lists of a topic."""
    fold = _with_throttles_of_others()
    state = fold.state.cluster("prod")
    rates = ConfigRefusal(31, "Cluster authorization failed.", 1_790_000_000_982)
    state.broker_throttles[1] = msgspec.structs.replace(state.broker_throttles[1], refusal=rates)
    lists = ConfigRefusal(44, None, 1_790_000_000_983)
    state.topic_throttles["orders"] = msgspec.structs.replace(state.topic_throttles["orders"], refusal=lists)
    return fold


def _with_a_throttle_of_the_cluster() -> ShardFold:
    """A command has set the cluster's throttle, and Drover may raise one of the plans'."""
    fold = _with_throttles_of_others()
    state = fold.state.cluster("prod")
    state.cluster_throttle = ClusterThrottle(20_000_000, "ann", "working hours", 1_790_000_000_985)
    state.throttle_bounds["friday"] = 30_000_000
    return fold


def _within_budgets() -> ShardFold:
    """Budgets bound what is in flight, and a step says how much it copies."""
    fold = _with_changed_limits()
    state = fold.state.cluster("prod")
    state.limits = msgspec.structs.replace(state.limits, budgets=Budgets(4, 3, 200, 500_000_000))
    entry = state.reassignments[TopicPartition("orders", 1)]
    assert entry.step is not None
    state.change(entry, msgspec.structs.replace(entry, step=msgspec.structs.replace(entry.step, copy_bytes=1_000_000)))
    state.rebuild_indexes()
    return fold


def _with_priorities() -> ShardFold:
    """A plan goes before others, one is paused, and a broker is held as a source."""
    fold = _within_budgets()
    state = fold.state.cluster("prod")
    at_ms = 1_790_000_000_980
    state.priorities = {next(iter(state.plans)): Priority.HIGH}
    state.paused_plans = {next(iter(state.plans)): Pause("ann", "a busy hour", at_ms)}
    state.held_brokers = {3: HeldBroker("ann", "its disk is slow", at_ms, HoldRole.SOURCE)}
    return fold


def _with_traits() -> ShardFold:
    """The brokers have said what their version is."""
    fold = _with_priorities()
    fold.state.cluster("prod").traits = Traits(
        kafka="3.9", completion=Completion.ADDED, retarget=Retarget.ORIGINAL, is_known=True,
        zookeeper_mode=True, with_elr=True, takes_dead_destinations=True, migrates=True,
    )  # fmt: skip
    return fold


def _adapting() -> ShardFold:
    """One broker may use half of its slots, and copies wait for a partition with too few replicas in sync."""
    fold = _with_traits()
    state = next(iter(fold.state.clusters.values()))
    state.limits = msgspec.structs.replace(state.limits, adapts_to_health=True)
    state.allowances = {3: Allowance(1, "replica 3 of orders:0 is not in sync", 1_790_000_000_980)}
    state.suspend(Suspension(2, (TopicPartition("orders", 0),), 1_790_000_000_990))
    closed = ClosedWindow("sat 00:00-24:00", 1_790_380_800_000, 1_790_000_000_995)
    plan = next(iter(state.plans))
    state.closed_windows, state.plan_windows = {"": closed, plan: closed}, {plan: closed.windows}
    return fold


def _with_lists_left() -> ShardFold:
    """A reassignment ended a moment ago."""
    fold = _adapting()
    state = fold.state.cluster("prod")
    state.lists_left[TopicPartition("orders", 7)] = (3, 1, 2), 1_790_000_000_995
    state.lists_dropped_ms = 1_790_000_000_994
    return fold


def _with_lists_before() -> ShardFold:
    """Reassignments have ended for more than ten seconds."""
    fold = _with_lists_left()
    state = fold.state.cluster("prod")
    state.lists_before[TopicPartition("orders", 8)] = (2, 3, 1), 1_790_000_000_993
    return fold


def _with_a_superseded_heal() -> ShardFold:
    return with_a_superseded_heal(_with_lists_before())


def _with_goals() -> ShardFold:
    return with_goals(_with_a_superseded_heal())


def _with_a_listing_until_in_sync() -> ShardFold:
    return with_a_listing_until_in_sync(_with_intended_orders())


def _with_an_unregistered_broker() -> ShardFold:
    return with_an_unregistered_broker(_with_a_superseded_heal())


def _with_brokers() -> ShardFold:
    return with_brokers(_with_a_superseded_heal())


SAMPLES: Mapping[str, Callable[[], ShardFold]] = {
    "snapshot_1": _full,
    "snapshot_2": _with_topic_ids,
    "snapshot_3": _with_ended_plans,
    "snapshot_4": _with_a_deferred_cancel,
    "snapshot_5": _on_its_way_back_by_steps,
    "snapshot_healing": _with_a_heal,
    "snapshot_void_records": _with_void_records,
    "snapshot_freezes": _frozen_by_several,
    "snapshot_outage": _out_of_reach,
    "snapshot_known_brokers": _with_known_brokers,
    "snapshot_steppings": _with_steppings,
    "snapshot_unmeasured": _unmeasured,
    "snapshot_leaders": _with_leaders,
    "snapshot_changed_limits": _with_changed_limits,
    "snapshot_throttles_of_others": _with_throttles_of_others,
    "snapshot_refused_throttles": _with_refused_throttles,
    "snapshot_cluster_throttle": _with_a_throttle_of_the_cluster,
    "snapshot_budgets": _within_budgets,
    "snapshot_priorities": _with_priorities,
    "snapshot_traits": _with_traits,
    "snapshot_intended_orders": _with_intended_orders,
    "snapshot_adaptation": _adapting,
    "snapshot_lists_left": _with_lists_left,
    "snapshot_lists_before": _with_lists_before,
    "snapshot_superseded_heal": _with_a_superseded_heal,
    "snapshot_plan_goals": _with_goals,
    "snapshot_until_in_sync": _with_a_listing_until_in_sync,
    "snapshot_unregistered_broker": _with_an_unregistered_broker,
    "snapshot_brokers": _with_brokers,
}


def written(fold: ShardFold) -> list[bytes]:
    """Return a snapshot's records as they would be written today, the manifest last."""
    image = encode_fold(fold)
    chunks = [image.chunk(number, SLOT, SINCE) for number in range(len(image.chunks))]
    return [*chunks, image.manifest(SLOT, SINCE)]


def read(name: str) -> list[bytes]:
    """Return the records that are checked in."""
    return msgspec.msgpack.decode((GOLDEN / f"{name}.msgpack").read_bytes(), type=list[bytes])


def main() -> None:
    """Add what is missing."""
    for name, sample in SAMPLES.items():
        file = GOLDEN / f"{name}.msgpack"
        if not file.exists():
            file.write_bytes(msgspec.msgpack.encode(written(sample())))


if __name__ == "__main__":
    main()
