"""Deliberate faults of the steppings, and of rollbacks in the middle of them."""

from tests.simulation.mutant import Mutant

STARTER = "drover/reconcile/starts/starter.py"
ROUTE = "drover/reconcile/moves/route.py"
STEPPING = "drover/reconcile/moves/stepping.py"
BACK = "drover/reconcile/moves/rollback.py"

STEP_MUTANTS = (
    Mutant(
        "keep-the-room-of-what-cannot-begin",
        "drover/decide/cancellation.py",
        "    return (StepPostponed(**event_name(cluster, reassignment.key), step=step.number),)\n",
        "    return ()\n",
        layer="tests/scheduling/test_postponed.py",
    ),
    Mutant(
        "name-an-unregistered-broker-in-a-step",
        STEPPING,
        "    now = replace(now, current=without(now.current, now.unregistered))",
        "    now = replace(now, current=now.current)",
        layer="tests/reassignment/test_stepping.py",
    ),
    Mutant(
        "fight-a-move-to-the-list-of-a-step-that-is-over",
        "drover/state/reassignment.py",
        "        if self.is_settled:\n            return frozenset(lists)\n        if self.restoring",
        "        if self.restoring",
        layer="tests/shard/test_unregistered.py",
    ),
    Mutant(
        "swap-more-than-was-added",
        STEPPING,
        "min(len(added) + over, max(most, over))",
        "min(len(added) + over + 1, max(most, over) + 1)",
        layer="tests/reassignment/test_stepping.py",
    ),
    Mutant(
        "swap-below-min-isr",
        STEPPING,
        "    while drops and not _keeps_enough(now, added, drops):",
        "    while drops and not extra:",
        layer="tests/reassignment/test_stepping.py",
    ),
    Mutant(
        "cancel-what-kafka-refuses-to-cancel",
        "drover/reconcile/moves/route.py",
        "    if not rollback_guards.has_original_in_sync(given_up, seen):",
        "    if given_up.is_adopted:",
        layer="tests/reassignment/test_route.py",
    ),
    Mutant(
        "swap-the-leader-first",
        STEPPING,
        "        return is_needed, broker == now.leader, is_good, is_alone",
        "        return is_needed, False, is_good, is_alone",
        layer="tests/reassignment/test_stepping.py",
    ),
    Mutant(
        "swap-away-the-last-replica-of-a-rack",
        STEPPING,
        "        is_alone = rack is not None and all(now.racks.get(other) != rack for other in others)",
        "        is_alone = rack is None or any(now.racks.get(other) == rack for other in others)",
    ),
    Mutant(
        "swap-to-fewer-racks-for-the-leader",
        STEPPING,
        "        is_needed = is_good and is_alone and _racks(now, others) < least",
        "        is_needed = is_good and is_alone and _racks(now, others) < 0",
        layer="tests/reassignment/test_stepping.py",
    ),
    Mutant(
        "swap-into-a-long-list",
        STEPPING,
        "    added = live[: max(0, most - max(0, over - lagging))]",
        "    added = live[:most]",
        layer="tests/reassignment/test_stepping.py",
    ),
    Mutant(
        "wait-for-a-copy-on-a-dead-broker",
        ROUTE,
        "    if not dead or not others or not",
        "    if dead or not",
        layer="tests/shard/test_steppings.py",
    ),
    Mutant(
        "forget-the-plans-stepping",
        "drover/reconcile/moves/context.py",
        "state.steppings.get(reassignment.plan, state.limits.stepping)",
        "state.limits.stepping",
        layer="tests/shard/test_steppings.py",
    ),
    Mutant(
        "keep-the-room-of-another-copy",
        "drover/reconcile/starts/steps.py",
        "    return set(step.adding) <= set(prepared.adding)",
        "    return True",
        layer="tests/shard/test_steppings.py",
    ),
    Mutant(
        "ask-for-originals-that-were-dropped",
        "drover/state/reassignment.py",
        "return self.destination if set(self.destination) <= set(self.current) else self.current",
        "return self.destination",
        layer="tests/shard/test_steppings.py",
    ),
    Mutant(
        "suspect-others-of-a-step-that-was-done",
        BACK,
        " or not set(seen.replicas) >= set(reassignment.destination)",
        "",
        layer="tests/shard/test_steppings.py",
    ),
    Mutant(
        "take-a-drop-for-a-rollback-that-gave-up",
        BACK,
        "    if brokers == set(reassignment.current):",
        "    if not brokers:",
        layer="tests/reassignment/test_rollback.py",
    ),
    Mutant(
        "take-the-target-for-the-list-of-every-step",
        "drover/fold/moves.py",
        "    replicas = before.target if replicas == before.target else replicas\n",
        "    replicas = before.target\n",
    ),
    Mutant(
        "forget-which-list-is-old-when-nothing-was-sent",
        "drover/reconcile/observations.py",
        "        if replaced and effect is not CallEffect.DONE:",
        "        if replaced and effect is None:",
        layer="tests/shard/test_old_metadata.py",
    ),
    Mutant(
        "believe-a-new-owners-look-between-two-restores",
        "drover/reconcile/moves/reconciler.py",
        "            if reassignment.call_open or is_between:",
        "            if reassignment.call_open:",
        layer="tests/shard/test_old_metadata.py",
    ),
)
