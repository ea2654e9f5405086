"""Deliberate faults of healing; see `tests.simulation.mutants`."""

from tests.simulation.mutant import Mutant

HEALING = "drover/reconcile/healing/reconciler.py"
HEAL_CHUNKS = "drover/reconcile/healing/chunks.py"
HEAL_TIMERS = "drover/reconcile/healing/timers.py"
OUTAGES = "drover/reconcile/healing/outages.py"
HEAL_PLANNING = "drover/reconcile/healing/heal_plan.py"
GUARDS = "drover/decide/rollback_guards.py"

HEALING_MUTANTS = (
    Mutant(
        "give-up-who-is-unreachable",
        GUARDS,
        "    dead = guard.brokers.dead(missing)",
        "    dead = tuple(broker for broker in missing if broker not in guard.live)",
        layer="tests/reassignment/test_unreachable.py",
    ),
    Mutant(
        "heal-who-is-unreachable",
        OUTAGES,
        "        living = brokers.live | brokers.unreachable",
        "        living = brokers.live",
        layer="tests/healing/test_unreachable.py",
    ),
    Mutant(
        "keep-the-heal-of-who-is-back",
        HEALING,
        "        if any(broker not in state.absent_brokers for broker in heal.brokers):",
        "        if any(broker not in state.absent_brokers for broker in ()):",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "two-chunks-at-a-time",
        HEALING,
        "        if state.heal_running is not None:\n            # Fresh",
        "        if state.heal_running is not None and state.heal is None:\n            # Fresh",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "heal-while-frozen",
        HEALING,
        "        if changes_nothing(state) or timers.is_braked(state):",
        "        if timers.is_braked(state):",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "heal-without-brakes",
        HEALING,
        "        if changes_nothing(state) or timers.is_braked(state):",
        "        if changes_nothing(state):",
        layer="tests/healing/test_brakes.py",
    ),
    Mutant(
        "plan-over-the-running-chunk",
        HEALING,
        "        if plan is None or plan.is_idle:\n            cancelled",
        "        if plan is None or plan.active < 2:\n            cancelled",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "heal-with-one-replica-less",
        HEAL_CHUNKS,
        "for broker in canonical),",
        "for broker in canonical[:-1]),",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "heal-what-others-move",
        HEAL_CHUNKS,
        "    if active is not None:\n        return (LeftReason.MOVING",
        "    if active is None and key in state.queue:\n        return (LeftReason.MOVING",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "keep-an-absence-after-the-return",
        OUTAGES,
        "            if broker in state.absent_brokers or broker in state.emptied_brokers:",
        "            if broker in state.emptied_brokers:",
        layer="tests/healing/test_timers.py",
    ),
    Mutant(
        "count-reports-of-the-living",
        "drover/state/healing.py",
        "        return frozenset(brokers.dead(self.failed_brokers))",
        "        return frozenset(self.failed_brokers)",
        layer="tests/shard/test_restoring_steps.py",
    ),
    Mutant(
        "never-end-a-report",
        "drover/reconcile/healing/reports.py",
        "            if started_ms - since_ms >= ALIVE_ENDS_REPORT_MS:",
        "            if started_ms - since_ms >= 10 * ALIVE_ENDS_REPORT_MS:",
        layer="tests/healing/test_reports.py",
    ),
    Mutant(
        "forget-the-first-report",
        "drover/fold/healing.py",
        "    absence = state.absent_brokers.get(event.broker, Absence(at_ms))",
        "    absence = Absence(at_ms)",
        layer="tests/healing/test_timers.py",
    ),
    Mutant(
        "believe-one-look",
        OUTAGES,
        "        if started_ms - since_ms < CONFIRM_AFTER_MS or self._surveyed_ms - since_ms < CONFIRM_AFTER_MS:",
        "        if started_ms < since_ms or self._surveyed_ms < since_ms:",
        layer="tests/healing/test_timers.py",
    ),
    Mutant(
        "heal-before-its-time",
        HEAL_TIMERS,
        "watched.remaining_ms(broker, outage, interval_ms, now) <= 0",
        "watched.remaining_ms(broker, outage, interval_ms // 2, now) <= 0",
        layer="tests/healing/test_timers.py",
    ),
    Mutant(
        "overlook-another-dead-broker",
        HEAL_PLANNING,
        "    not_due = to_heal.away - frozenset(to_heal.due)",
        "    not_due = to_heal.away - to_heal.away",
        layer="tests/healing/test_brakes.py",
    ),
    Mutant(
        "give-up-where-all-are-spared",
        HEAL_PLANNING,
        "    if not proposal.refused:\n        return proposal.unmet",
        "    if proposal is not None:\n        return proposal.unmet",
        layer="tests/healing/test_heal_plan.py",
    ),
    Mutant(
        "begin-a-chunk-twice",
        "drover/fold/healing.py",
        "    chunk = state.heal_chunks.pop(event.chunk)",
        "    chunk = state.heal_chunks[event.chunk]",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "heal-by-a-clock-that-jumped",
        HEAL_TIMERS,
        "return remaining_ms if since_ms is None else max(",
        "return remaining_ms if since_ms != 0 else max(",
        layer="tests/healing/test_clocks.py",
    ),
    Mutant(
        "take-another-target-for-a-cancel",
        "drover/fold/healing.py",
        "    elif before.plan == running.plan and before.cancel_mode is None:",
        "    elif before.plan == running.plan and before.cancel_mode is not None:",
        layer="tests/healing/test_chunks.py",
    ),
    Mutant(
        "count-on-more-returns-than-there-were",
        HEAL_TIMERS,
        "            if len(returns) >= limits.flapping_returns:\n                waits",
        "            if returns:\n                waits",
        layer="tests/healing/test_brakes.py",
    ),
    Mutant(
        "carry-out-a-plan-for-other-brokers",
        HEALING,
        "    return replace(before, moving=now.moving, destinations=now.destinations, spared=now.spared) == now",
        "    return bool(before.due) and bool(now.due)",
        layer="tests/healing/test_heal_plan.py",
    ),
    Mutant(
        "keep-a-plan-that-was-not-needed",
        HEALING,
        "        made, self._made, self._wanted_plan = self._made, None, None",
        "        made, self._wanted_plan = self._made, None",
        layer="tests/healing/test_heal_plan.py",
    ),
)
