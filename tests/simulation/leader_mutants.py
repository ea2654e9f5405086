"""Deliberate faults in who leads, and in the order of lists."""

from tests.simulation.mutant import Mutant

LEADERS = "drover/reconcile/leaders/judgement.py"
LEADERSHIP = "drover/reconcile/leaders/reconciler.py"
REORDERS = "drover/reconcile/leaders/reorders.py"
ORDER_CALLS = "drover/reconcile/leaders/order_calls.py"
ENDS = "drover/reconcile/leaders/call_ends.py"
ELECTIONS = "drover/reconcile/leaders/elections.py"
GATHERING = "drover/reconcile/leaders/call_groups.py"
START = "drover/reconcile/moves/start.py"
TARGETS = "drover/decide/targets.py"
LISTING_ENDS = "drover/reconcile/leaders/listing_ends.py"

LEADER_MUTANTS = (
    Mutant(
        "believe-one-survey-that-shows-a-broker-in-sync",
        LISTING_ENDS,
        "            if seen_ms - since_ms >= IN_SYNC_MS and",
        "            if",
        layer="tests/leadership/test_until_in_sync.py",
    ),
    Mutant(
        "forget-the-canonical-order",
        ORDER_CALLS,
        "        change = OrderChange(wanted.canonical,",
        "        change = OrderChange(wanted.replicas,",
    ),
    Mutant(
        "forget-the-canonical-order-of-a-reassignment",
        REORDERS,
        "topic_id=seen.topic_id, canonical=wanted.canonical, replicas=seen.replicas",
        "topic_id=seen.topic_id, canonical=wanted.replicas, replicas=seen.replicas",
    ),
    Mutant(
        "take-a-lost-order-for-one-without-effect",
        ORDER_CALLS,
        "        elif self._debounce.has_persisted(key, seen):",
        "        elif True:",
        layer="tests/leadership/test_order_calls.py",
    ),
    Mutant(
        "believe-a-broker-that-shows-the-leader-from-before-an-election",
        ELECTIONS,
        "            if end.outcome is ElectionOutcome.ELECTED and election.leader is not None:",
        "            if end.outcome is ElectionOutcome.UNKNOWN and election.leader is not None:",
        layer="tests/simulation/test_regressions.py",
    ),
    Mutant(
        "elect-after-the-list-of-brokers-has-changed",
        ENDS,
        "kept is not None and not is_held_up:",
        "kept is not None:",
        layer="tests/leadership/test_order_calls.py",
    ),
    Mutant(
        "send-a-reorder-alone-that-waits-for-a-replica",
        ORDER_CALLS,
        "    return not (is_slow or changes_nothing(state)) and len(seen.isr) == len(seen.replicas)",
        "    return not changes_nothing(state)",
        layer="tests/leadership/test_order_calls.py",
    ),
    Mutant(
        "begin-a-gathered-call-as-late-as-its-last-intent-allows",
        GATHERING,
        "        return taken, self._start_by_ms",
        "        return taken, start_by_ms",
        layer="tests/leadership/test_call_groups.py",
    ),
    Mutant(
        "take-a-reordered-list-for-the-original",
        TARGETS,
        "active.current) if is_reorder(active) else active.original",
        "active.current) if False else active.original",
        layer="tests/simulation/test_regressions.py",
    ),
    Mutant(
        "elect-who-is-out-of-sync",
        LEADERS,
        "    return broker in seen.isr and broker in policy.live",
        "    return broker in policy.live",
        layer="tests/leadership/test_properties.py",
    ),
    Mutant(
        "ignore-the-budget-of-leaders",
        LEADERSHIP,
        "        under_way = state.leader_movements + self._reorders.under_way",
        "        under_way = 0",
        layer="tests/leadership/test_life.py",
    ),
    Mutant(
        "restore-over-a-unmanaged-change",
        LEADERS,
        "    return LeaveAlone()",
        "    return None",
        layer="tests/leadership/test_life.py",
    ),
    Mutant(
        "send-the-target-as-it-is",
        START,
        "    step = _in_todays_order(reassignment, step, seen, context)\n",
        "",
        layer="tests/reassignment/test_start.py",
    ),
    Mutant(
        "prepare-a-leader-that-is-listed",
        START,
        "            target=effective_step_target(reassignment, context.listed),",
        "            target=reassignment.step_target,",
        layer="tests/leadership/test_moves.py",
    ),
    Mutant(
        "let-a-listed-broker-follow-the-leader",
        START,
        "    return _gate_of_leaders(step, seen, context)",
        "    return None",
        layer="tests/reassignment/test_start.py",
    ),
    Mutant(
        "forget-the-order-before-a-step",
        "drover/shard/managed.py",
        "            yield from order_before(state, state.reassignments[event.key], event)",
        "            pass",
        layer="tests/leadership/test_moves.py",
    ),
    Mutant(
        "believe-old-metadata-after-a-takeover",
        "drover/reconcile/leaders/order_calls.py",
        "            if not order.left_alone and key not in self._state.moves.in_flight:\n",
        "            if order.left_alone and key not in self._state.moves.in_flight:\n",
        layer="tests/leadership/test_order_calls.py",
    ),
    Mutant(
        "believe-the-list-before-a-lost-reorder",
        "drover/reconcile/leaders/order_calls.py",
        "        self._observed.call_replaced(key, expected, ended_ms, is_accepted=False)\n",
        "        assert expected, ended_ms\n",
        layer="tests/leadership/test_order_calls.py",
    ),
    Mutant(
        "reorder-a-merged-list",
        "drover/reconcile/leaders/judgement.py",
        "        return len(seen.replicas) > shortest and judgement.canonical == seen.replicas\n",
        "        return False\n",
        layer="tests/leadership/test_life.py",
    ),
    Mutant(
        "elect-beside-an-open-call",
        "drover/reconcile/leaders/moving_partitions.py",
        "    return reassignment.call is Call.STEP and not reassignment.call_open",
        "    return True",
        layer="tests/leadership/test_moves.py",
    ),
    Mutant(
        "end-the-order-of-an-earlier-topic-again",
        "drover/decide/order_endings.py",
        "    if kept is None or kept.topic_id != topic_id or kept.canonical == replicas:",
        "    if kept is None or kept.canonical == replicas:",
        layer="tests/reassignment/test_alter.py",
    ),
)
