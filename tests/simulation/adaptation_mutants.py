"""Deliberate faults of what moves may do while partitions lose replicas."""

from tests.simulation.mutant import Mutant

JUDGING = "drover/adaptation/judging.py"
JUDGED, ADAPTING = "tests/adaptation/test_judging.py", "tests/adaptation/test_adapting.py"

ADAPTATION_MUTANTS = (
    Mutant(
        "blame-moves-for-what-they-explain",
        JUDGING,
        "        if key in health.moving:\n",
        "        if key in health.min_isr:\n",
        layer=JUDGED,
    ),
    Mutant(
        "blame-the-living-for-the-dead",
        JUDGING,
        "if broker in facts.isr or broker not in health.live:",
        "if broker in facts.isr:",
        layer=JUDGED,
    ),
    Mutant(
        "recover-at-once",
        JUDGING,
        "if broker not in found and at_ms - known.since_ms >= RECOVER_EVERY_MS:",
        "if broker not in found:",
        layer=JUDGED,
    ),
    Mutant(
        "begin-while-too-few-are-in-sync",
        "drover/scheduling/wanting.py",
        "        if step.adding and state.is_suspended(key):\n",
        "        if step.adding and state.is_suspended(key) and state.is_withheld:\n",
        layer=ADAPTING,
    ),
    Mutant(
        "use-all-slots-of-a-lowered-broker",
        "drover/scheduling/room.py",
        "slots = self._state.slots_of(port.broker, limit_of(self._state.limits, port))",
        "slots = limit_of(self._state.limits, port)",
        layer=ADAPTING,
    ),
    Mutant(
        "never-let-repairs-begin",
        "drover/adaptation/state.py",
        "return self.suspension is not None and key not in self.below_min_isr",
        "return self.suspension is not None",
        layer=ADAPTING,
    ),
)
