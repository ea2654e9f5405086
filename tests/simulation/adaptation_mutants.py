"""Deliberate faults in how moves are restricted while replicas lag."""

from tests.simulation.mutant import Mutant

JUDGING = "drover/reconcile/adaptation/judgement.py"
JUDGED, ADAPTING = "tests/adaptation/test_judgement.py", "tests/adaptation/test_adapting.py"

ADAPTATION_MUTANTS = (
    Mutant(
        "blame-moves-for-what-they-explain",
        JUDGING,
        "if facts is None or key in health.moving:",
        "if facts is None:",
        layer=JUDGED,
    ),
    Mutant(
        "blame-the-living-for-the-dead",
        JUDGING,
        "if broker in live and broker not in facts.isr:",
        "if broker not in facts.isr:",
        layer=JUDGED,
    ),
    Mutant(
        "recover-at-once",
        JUDGING,
        "if broker not in by_broker and at_ms - quiet_since_ms >= RECOVER_EVERY_MS:",
        "if broker not in by_broker:",
        layer=JUDGED,
    ),
    Mutant(
        "recover-as-soon-as-the-cause-ends",
        JUDGING,
        "max(since_ms, last_cause_ms.get(broker, since_ms))",
        "since_ms",
        layer=JUDGED,
    ),
    Mutant(
        "suspend-because-a-move-adds-a-replica",
        JUDGING,
        "own = sum(broker not in adding for broker in facts.replicas)",
        "own = len(facts.replicas) + 0 * len(adding)",
        layer=JUDGED,
    ),
    Mutant(
        "end-a-suspension-before-minimums-are-read",
        JUDGING,
        "own if is_named else 1",
        "1 + 0 * is_named",
        layer=ADAPTING,
    ),
    Mutant(
        "judge-all-by-the-few-that-move",
        "drover/reconcile/adaptation/reconciler.py",
        "case Observation() if self._has_surveyed:",
        "case Observation():",
        layer=ADAPTING,
    ),
    Mutant(
        "blame-what-has-lagged-for-a-moment",
        "drover/reconcile/adaptation/reconciler.py",
        "if survey.ended_ms - since_ms >= LAGGING_FOR_MS",
        "if survey.ended_ms >= since_ms",
        layer=ADAPTING,
    ),
    Mutant(
        "put-the-next-look-off-for-one-that-took-long",
        "drover/reconcile/adaptation/reconciler.py",
        "min(before_ms, self._took_ms)",
        "max(before_ms, self._took_ms)",
        layer=ADAPTING,
    ),
    Mutant(
        "ask-for-the-same-topics-each-time",
        "drover/reconcile/adaptation/reconciler.py",
        "key=lambda each: (self._asked_ms.get(each[1].topic, -1), each)",
        "key=lambda each: (0 * self._asked_ms.get(each[1].topic, -1), each)",
        layer=ADAPTING,
    ),
    Mutant(
        "begin-while-too-few-are-in-sync",
        "drover/reconcile/gates.py",
        "return start.copies > 0 and view.state.is_suspended(start.key)",
        "return start.copies > 0 and view.state.is_suspended(start.key) and view.state.freeze is not None",
        layer=ADAPTING,
    ),
    Mutant(
        "use-all-slots-of-a-lowered-broker",
        "drover/reconcile/gates.py",
        "        slots = state.slots_of(direction.broker, limit_of(state.limits, direction))",
        "        slots = limit_of(state.limits, direction)",
        layer=ADAPTING,
    ),
    Mutant(
        "never-let-repairs-begin",
        "drover/state/adaptation.py",
        "return self.suspension is not None and key not in self.below_min_isr",
        "return self.suspension is not None",
        layer=ADAPTING,
    ),
)
