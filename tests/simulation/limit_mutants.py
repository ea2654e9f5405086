"""Deliberate faults of the limits: one for each budget, and of what commands change."""

from tests.simulation.mutant import Mutant

ROOM = "drover/reconcile/starts/room.py"
STEP_NEEDS = "drover/reconcile/starts/step_needs.py"
WITHHELD = "tests/scheduling/test_withholding.py"
LIMITS = "tests/scheduling/test_limits.py"
SHARES = "tests/scheduling/test_slot_shares.py"

LIMIT_MUTANTS = (
    Mutant(
        "take-nothing-for-an-unknown-size",
        "drover/state/slot_share.py",
        "    if copy_bytes is not None:\n        for share in _SHARES:\n            if copy_bytes *",
        "    if copy_bytes is None or copy_bytes:\n        for share in _SHARES:\n            if (copy_bytes or 0) *",
        layer=SHARES,
    ),
    Mutant(
        "take-one-share-for-all-copies-of-a-step",
        ROOM,
        "self._is_full(one, needs.count(one) * share, expected, kept)",
        "self._is_full(one, share, expected, kept)",
        layer=SHARES,
    ),
    Mutant(
        "expect-whole-slots-of-what-is-looked-at",
        "drover/reconcile/starts/candidates.py",
        "            self.expected[resource] += amount(resource, share)\n",
        "            self.expected[resource] += 1\n",
        layer="tests/scheduling/test_candidates.py",
    ),
    Mutant(
        "wait-for-the-largest-share-that-lacked",
        "drover/reconcile/starts/candidates.py",
        "self._full[one] = min(LEAST_SHARE if",
        "self._full[one] = max(LEAST_SHARE if",
        layer="tests/scheduling/test_candidates.py",
    ),
    Mutant(
        "count-copies-in-with-those-out",
        ROOM,
        'return limits.max_incoming if port.way == "in" else limits.max_outgoing',
        "return limits.max_outgoing",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "count-copies-out-with-those-in",
        ROOM,
        'return limits.max_incoming if port.way == "in" else limits.max_outgoing',
        "return limits.max_incoming",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-copies-of-a-cluster",
        ROOM,
        "budgets.max_replica_copies_in_flight, state.moves.copies_in_flight\n",
        "budgets.max_replica_copies_in_flight, 0\n",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-bytes-in-flight",
        ROOM,
        " and state.moves.bytes_in_flight >= budgets.max_bytes_in_flight\n",
        " and state.moves.bytes_in_flight >= 2 * budgets.max_bytes_in_flight\n",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-leaders-of-steps",
        ROOM,
        "state.limits.max_leader_movements, state.leader_movements\n",
        "state.limits.max_leader_movements, state.leaders_under_way\n",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "leave-the-line-of-a-budget-for-good",
        "drover/reconcile/starts/candidates.py",
        "            self.budget_lines.leave(group)\n            self._wait(group, full)\n            if",
        "            self.budget_lines.leave(group)\n            if",
        layer="tests/scheduling/test_budget_lines.py",
    ),
    Mutant(
        "look-through-no-line-that-a-group-is-in",
        "drover/reconcile/starts/candidates.py",
        "full if budget is None else (*full, budget), group[1]",
        "full, group[1]",
        layer="tests/scheduling/test_budget_lines.py",
    ),
    Mutant(
        "stop-in-the-middle-of-a-line",
        "drover/reconcile/starts/candidates.py",
        "                self._note_freed(budget)\n                return",
        "                return",
        layer="tests/scheduling/test_budget_lines.py",
    ),
    Mutant(
        "queue-for-a-budget-in-the-order-of-arrival",
        "drover/reconcile/starts/budget_lines.py",
        "LazyQueue()).push(group, rank)\n",
        "LazyQueue()).push(group, rank._replace(port=len(self._budget_of)))\n",
        layer="tests/scheduling/test_budget_lines.py",
    ),
    Mutant(
        "forget-the-leaders-of-order-calls",
        "drover/state/leaders.py",
        "return len(self.elections) + len(self.intended_orders)",
        "return len(self.elections)",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "notice-no-port-that-is-left",
        "drover/reconcile/starts/starter.py",
        "            self.candidates.free(self._held_ports.follow(key))\n",
        "            self._held_ports.follow(key)\n",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-racks",
        "drover/reconcile/starts/rack_traffic.py",
        "                self._taken[uplink] += step.slot_share\n",
        "                self._taken[uplink] += step.slot_share // 2\n",
        layer="tests/scheduling/test_racks.py",
    ),
    Mutant(
        "count-copies-within-a-rack",
        "drover/reconcile/starts/rack_traffic.py",
        " is not None and rack != source]",
        " is not None]",
        layer="tests/scheduling/test_racks.py",
    ),
    Mutant(
        "begin-what-is-paused",
        STEP_NEEDS,
        "        if reassignment.plan in state.paused_plans:\n",
        "        if reassignment.plan in state.steppings and reassignment.plan in state.paused_plans:\n",
        layer=WITHHELD,
    ),
    Mutant(
        "copy-to-what-is-held",
        ROOM,
        "        if held is not None and held.holds(port.way):\n",
        '        if held is not None and held.holds("out") and port.way == "out":\n',
        layer=WITHHELD,
    ),
    Mutant(
        "serve-plans-in-the-order-of-acceptance",
        "drover/reconcile/starts/candidates.py",
        "return (rank.tier, self.shares.served(rank.plan) if rank.tier else 0, rank)",
        "return (rank.tier, 0, rank)",
        layer="tests/scheduling/test_candidates.py",
    ),
    Mutant(
        "keep-nothing-for-who-is-passed",
        "drover/reconcile/starts/candidates.py",
        "        if entry.passed >= PATIENCE and not any",
        "        if entry.passed >= 100 * PATIENCE and not any",
        layer="tests/scheduling/test_candidates.py",
    ),
    Mutant(
        "take-the-slot-that-is-kept",
        "drover/reconcile/starts/candidates.py",
        "None if owner is None or owner == key else",
        "None if owner is None or owner != key else",
        layer="tests/scheduling/test_starting.py",
    ),
    Mutant(
        "begin-before-sizes-are-known",
        STEP_NEEDS,
        "        if step.adding and self._unsized.holds(key):",
        "        if not step.adding and self._unsized.holds(key):",
        layer="tests/scheduling/test_unsized.py",
    ),
    Mutant(
        "wait-for-sizes-for-ever",
        "drover/reconcile/starts/unsized.py",
        "        if due_ms is None or now_ms < due_ms:",
        "        if due_ms is None or now_ms >= due_ms:",
        layer="tests/scheduling/test_unsized.py",
    ),
    Mutant(
        "reset-no-limit",
        "drover/fold/scheduling.py",
        "        state.changed_limits.pop(change.name, None)\n",
        "        state.changed_limits.get(change.name)\n",
        layer=LIMITS,
    ),
    Mutant(
        "change-a-part-of-what-was-asked",
        "drover/decide/limits.py",
        "        return refuse(RefusalCode.INVALID_LIMIT, str(error))\n    changed",
        "        values = []\n    changed",
        layer=LIMITS,
    ),
)
