"""Each index is held to the scan that it replaces; see `tests.simulation.invariants`."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from drover.events.throttles import Entries
from drover.reconcile.gates import entry_passed_over
from drover.reconcile.starts.queue_reconciler import QueueReconciler
from drover.reconcile.starts.starter import Starter
from drover.reconcile.throttles.ahead import MAX_ENTRIES_PER_TOPIC, entries_ahead
from drover.reconcile.throttles.demand import TopicDemand, need_of
from drover.reconcile.throttles.reconciler import ThrottlingReconciler
from drover.reconcile.unmanaged.reconciler import UnmanagedReconciler
from drover.shard.managed import ManagedCluster
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from tests.simulation.throttle_scan import wanted

if TYPE_CHECKING:
    from tests.simulation.checker import Checker


def s7_what_waits_is_counted(state: ClusterState) -> None:
    """S7: what waits for a step, what is pending without a block, and the plans that are idle."""
    known = state.reassignments.values()
    before_step = {one.key for one in known if one.phase in {Phase.PREPARED, Phase.CONFIRMED}}
    assert set(state.moves.before_step) == before_step, "S7: before a step"
    unblocked = Counter(one.plan for one in known if one.phase is Phase.PENDING and one.block is None)
    assert state.moves.unblocked_of == unblocked, f"S7: {state.moves.unblocked_of} unblocked instead of {unblocked}"
    assert state.moves.unblocked_pending == unblocked.total(), "S7: all that is unblocked"
    idle = {plan.name for plan in state.plans.values() if plan.status is PlanStatus.OPEN and plan.is_idle}
    assert set(state.idle_plans) == idle, "S7: idle plans"


def s7_owners_indexes_agree(checker: "Checker") -> None:
    """S7: what each owner has indexed is what it would find by looking at everything."""
    for worker in checker.world.workers:
        for shard in worker.shards:
            if shard.holds_token and not shard.core._proposals.is_under_way and shard.loop is None:
                clusters = shard.core._clusters
                for name in clusters.names():
                    _agree(clusters.of(name))


def _agree(cluster: ManagedCluster) -> None:
    for reconciler in cluster._reconcilers:
        match reconciler:
            case ThrottlingReconciler():
                _throttles_agree(reconciler)
            case QueueReconciler():
                _queue_agrees(reconciler)
            case Starter():
                _starter_agrees(reconciler)
            case UnmanagedReconciler():
                listed = reconciler.observed.moves.keys()
                assert reconciler._others == listed - cluster.state.moves.in_flight.keys(), "S7: moves of others"
            case _:
                pass


def _throttles_agree(throttling: ThrottlingReconciler) -> None:
    state, demand, scanned = throttling.state, throttling._demand, wanted(throttling.state)
    assert {broker: demand.rate(broker) for broker in demand.brokers} == scanned.rates, "S7: rates"
    assert {name for name, topic in demand.topics.items() if topic.incarnations} == set(scanned.entries), (
        "S7: throttled"
    )
    for topic, entries in scanned.entries.items():
        found = demand.topics[topic]
        ahead = _ahead(topic, found, state)
        there = {*entries.leader, *ahead.leader}, {*entries.follower, *ahead.follower}
        assert (found.leader, found.follower) == there, f"S7: {topic}"
        assert found.needed == len(entries.leader), f"S7: {found.needed} entries of {topic} are needed"
        assert found.topic_id == scanned.topic_ids[topic], f"S7: the incarnation of {topic}"
        known = state.topic_throttles.get(topic)
        if known is not None and not known.pending and known.topic_id == found.topic_id:
            _differences_agree(found, known.present)
    pending = {broker for broker, entry in state.broker_throttles.items() if entry.pending}
    assert throttling._pending_brokers == pending, "S7: throttles that are owed"


def _ahead(name: str, topic: TopicDemand, state: ClusterState) -> Entries:
    """Hold the moves whose entries were asked for ahead to what waits, or has begun; return their entries."""
    leader: set[str] = set()
    follower: set[str] = set()
    waiting = 0
    for key in topic.ahead.entries:
        reassignment = state.reassignments[key]
        assert key.topic == name, f"S7: {key} is not of {name}"
        assert state.rate_of(reassignment.plan) is not None, f"S7: no throttle holds for {key}"
        expected = entries_ahead(reassignment)
        if reassignment.phase is Phase.PENDING:
            assert topic.ahead.entries[key] == expected, f"S7: {key} waits for other entries"
        leader |= topic.ahead.entries[key][0]
        follower |= topic.ahead.entries[key][1]
        waiting += 0 if need_of(reassignment, state) else len(topic.ahead.entries[key][0])
    assert topic.ahead.waiting == waiting, f"S7: {topic.ahead.waiting} entries of {name} wait"
    assert len(topic.leader) <= MAX_ENTRIES_PER_TOPIC, f"S7: {len(topic.leader)} entries of {name}"
    return Entries(tuple(leader), tuple(follower))


def _differences_agree(demand: TopicDemand, present: Entries) -> None:
    """Hold the few entries that are compared to a comparison of all; comparing must not change what is asked here."""
    asked = replace(demand, leader=set(demand.leader), follower=set(demand.follower))
    scanned = replace(asked)
    scanned.change_all()
    assert asked.differences(present) == scanned.differences(present), "S7: throttled entries that differ"


def _queue_agrees(queue: QueueReconciler) -> None:
    state = queue.state
    scanned = [key for key in state.queue if entry_passed_over(key, state) is None]
    assert queue.next_entries(len(scanned) + 1) == scanned, "S7: whose turn it is in the queue"


def _starter_agrees(starter: Starter) -> None:
    state, waiting = starter.state, starter.waiting
    known = {*state.moves.pending, *state.moves.before_step}
    assert set(starter._identities) == known, "S7: what waits for a step"
    # Until it is put into its group anew, a move stays in the one that it is in.
    places = {*waiting.keys(), *starter.unplaced, *starter.put_off, *starter.unsized}
    assert places == known, "S7: every move that waits comes back"
    elsewhere = Counter((*waiting.keys(), *starter.put_off, *starter.unsized))
    assert all(count == 1 for count in elsewhere.values()), "S7: a move waits in one place"
    assert set(starter._to_observe) <= set(waiting.keys()), "S7: partitions to observe"
    assert set(starter._passed) <= known, "S7: what is kept for a move that does not wait"
    plans = Counter(state.reassignments[key].plan for key in tuple(waiting.keys()))
    assert plans == waiting.shares._waiting, "S7: who waits"
    directions = Counter(direction for directions, _ in waiting.backlog.entries.values() for direction in directions)
    assert set(waiting.backlog.entries) == set(state.moves.pending), "S7: the backlog"
    assert set(waiting.backlog.bytes) == set(directions), "S7: the directions of the backlog"
