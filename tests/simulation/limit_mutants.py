"""Deliberate faults of the limits: one for each budget, and of what commands change."""

from tests.simulation.mutant import Mutant

GATES = "drover/reconcile/gates.py"
ROOM = "drover/reconcile/starts/room.py"
STARTER = "drover/reconcile/starts/starter.py"
WAITING = "drover/reconcile/starts/waiting_list.py"
WITHHELD = "tests/scheduling/test_withholding.py"
WINDOWS = "tests/scheduling/test_windows.py"
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
        GATES,
        "directions.count(direction) * start.share",
        "start.share",
        layer=SHARES,
    ),
    Mutant(
        "expect-whole-slots-of-what-is-looked-at",
        ROOM,
        "self._expected[resource] += start.share",
        "self._expected[resource] += 16",
        layer="tests/scheduling/test_room.py",
    ),
    Mutant(
        "count-copies-in-with-those-out",
        GATES,
        'return limits.max_incoming if direction.way == "in" else limits.max_outgoing',
        "return limits.max_outgoing",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "count-copies-out-with-those-in",
        GATES,
        'return limits.max_incoming if direction.way == "in" else limits.max_outgoing',
        "return limits.max_incoming",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-copies-of-a-cluster",
        GATES,
        "return state.moves.copies_in_flight if",
        "return 0 if",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-bytes-in-flight",
        GATES,
        "start.copies and view.state.moves.bytes_in_flight >= most",
        "start.copies and view.state.moves.bytes_in_flight >= 2 * most",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-leaders-of-steps",
        GATES,
        "else state.leader_movements",
        "else state.leaders_under_way",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "let-others-pass-at-a-budget",
        STARTER,
        "            this.exhausted[gate] = None\n",
        "            pass\n",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-leaders-of-order-calls",
        "drover/state/leaders.py",
        "return len(self.elections) + len(self.intended_orders)",
        "return len(self.elections)",
        layer="tests/scheduling/test_budgets.py",
    ),
    Mutant(
        "forget-the-racks",
        ROOM,
        "self._uplinks[uplink] += step.slot_share\n",
        "self._uplinks[uplink] += step.slot_share // 2\n",
        layer="tests/scheduling/test_racks.py",
    ),
    Mutant(
        "count-copies-within-a-rack",
        ROOM,
        " is not None and rack != source]",
        " is not None]",
        layer="tests/scheduling/test_racks.py",
    ),
    Mutant(
        "begin-what-is-paused",
        GATES,
        "return start.plan in view.state.paused_plans",
        "return start.plan in view.state.steppings and start.plan in view.state.paused_plans",
        layer=WITHHELD,
    ),
    Mutant(
        "begin-outside-the-windows-of-the-plan",
        GATES,
        "return bool(start.plan) and start.plan in view.state.closed_windows",
        "return bool(start.plan) and start.plan in view.state.steppings",
        layer=WINDOWS,
    ),
    Mutant(
        "close-no-windows-of-plans",
        "drover/reconcile/starts/limits_reconciler.py",
        ', "": state.limits.windows, **state.plan_windows}',
        ', "": state.limits.windows}',
        layer=WINDOWS,
    ),
    Mutant(
        "copy-to-what-is-held",
        GATES,
        "if hold is not None and hold.holds(direction.way) and",
        'if hold is not None and hold.holds("out") and direction.way == "out" and',
        layer=WITHHELD,
    ),
    Mutant(
        "serve-plans-in-the-order-of-acceptance",
        WAITING,
        "return 1, self.shares.served(plan), ",
        "return 1, 0, ",
        layer="tests/scheduling/test_waiting_list.py",
    ),
    Mutant(
        "take-the-same-groups-each-time",
        WAITING,
        "                groups[name] = groups.pop(name)\n",
        "",
        layer="tests/scheduling/test_waiting_list.py",
    ),
    Mutant(
        "keep-nothing-for-who-is-passed",
        STARTER,
        "if count >= PATIENCE else None",
        "if count >= 100 * PATIENCE else None",
        layer="tests/scheduling/test_starting.py",
    ),
    Mutant(
        "take-the-slot-that-is-kept",
        ROOM,
        "return 0 if owner == key else amount",
        "return 0 if owner != key else amount",
        layer="tests/scheduling/test_starting.py",
    ),
    Mutant(
        "begin-before-sizes-are-known",
        STARTER,
        "return may_wait and now_ms < by_ms",
        "return may_wait and by_ms < now_ms",
        layer="tests/scheduling/test_unsized.py",
    ),
    Mutant(
        "wait-for-sizes-for-ever",
        STARTER,
        "            if self._sized_by.get(key, 0) > now_ms:\n",
        "            if self._sized_by.get(key, 0) > 0:\n",
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
