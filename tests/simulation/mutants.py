"""Deliberate faults: each a small change of the source that some promise must notice. Never applied to the checkout."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: in the file at `path` the text `old`, which stands there once, becomes `new`.

    `layer` names tests that notice it, where no seed can: what it breaks does not come about in the simulation.
    """

    name: str
    path: str
    old: str
    new: str
    layer: str = ""

    def apply(self, root: Path) -> None:
        """Put the fault into a copy of the source tree."""
        file = root / self.path
        text = file.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.name}: its text stands {text.count(self.old)} times in {self.path}"
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")


FOLD = "drover/shard/fold.py"
CORE = "drover/shard/core.py"
INTAKE = "drover/shard/intake.py"
INBOX = "drover/shard/inbox.py"
TRACK = "drover/shard/track.py"
SLOTS = "drover/shard/slots.py"
PAGE = "drover/shard/page.py"
HOSTING = "drover/runtime/shards.py"
CALLING = "drover/runtime/calls.py"
PLAN = "drover/reassignment/plan.py"
BACK = "drover/reassignment/way_back.py"
CALLS = "drover/reassignment/calls.py"
THROTTLES = "drover/reassignment/throttles.py"
LEDGER = "drover/reassignment/evolve_throttles.py"

MUTANTS = (
    # -- who may write, and when
    Mutant("skip-epoch-check", FOLD, "if record.epoch != self.epoch + 1:", "if record.epoch > self.epoch + 1:"),
    Mutant("believe-an-old-token", FOLD, "if record.token != self.token:", "if record.epoch > self.epoch:"),
    Mutant(
        "act-before-durable",
        HOSTING,
        "        await self._send_aside(draft)\n",
        "        self.core._due += self.core._drafted\n        self._start_effects()\n"
        "        await self._send_aside(draft)\n",
    ),
    Mutant("act-when-fenced", HOSTING, "if folded.verdict is Verdict.VALID:", "if folded.verdict is not None:"),
    Mutant("no-wait-after-takeover", TRACK, "TAKEOVER_WAIT_MS = 5000", "TAKEOVER_WAIT_MS = 0"),
    Mutant("call-however-late", CALLING, "if clock().monotonic_ms > effect.start_by_ms:", "if not effect.requests:"),
    Mutant(
        "count-from-the-acknowledgement",
        CORE,
        "start_by_ms = self._proved_ms + CALL_START_MS",
        "start_by_ms = now.monotonic_ms + CALL_START_MS",
    ),
    Mutant(
        "call-another-cluster",
        CORE,
        "state.mismatched_kafka_cluster_id is None\n\n    def wanted",
        "True\n\n    def wanted",
    ),
    # -- commands: none lost, none doubled
    Mutant("advance-cursor-early", CORE, "= arrival.offset + 1", "= arrival.offset + 2"),
    Mutant("forget-cursor", CORE, "= arrival.offset + 1", "= arrival.offset"),
    Mutant("forget-digests", INTAKE, "register.earlier(identity), register.digest(identity)", "None, None"),
    Mutant(
        "forget-what-was-fenced",
        HOSTING,
        "        self.inbox.give_back()\n        self._disown()",
        "        self.inbox.settle()\n        self._disown()",
    ),
    Mutant("decide-again", INBOX, "while queue and queue[0].offset < cursor:", "while queue and queue[0].offset < 0:"),
    Mutant("give-back-backwards", INBOX, "for arrival in reversed(self._taken):", "for arrival in self._taken:"),
    Mutant("bury-nothing", INTAKE, "    intake.dead_letters.append((arrival, malformed.detail))\n", ""),
    Mutant(
        "forward-nothing",
        INTAKE,
        "intake.forward.append((arrival, shard_of(command.cluster, place.shards)))",
        "pass",
    ),
    Mutant(
        "forward-after-the-record",
        HOSTING,
        "        await self._send_aside(draft)\n        began = monotonic()\n"
        "        folded = await self._services.log.append(self.number, draft.record, draft.payload)\n",
        "        began = monotonic()\n"
        "        folded = await self._services.log.append(self.number, draft.record, draft.payload)\n"
        "        await self._send_aside(draft)\n",
    ),
    # -- looking
    Mutant(
        "complete-on-not-listed",
        PLAN,
        "    if seen.replicas == step.replicas:\n        joining",
        "    if seen.move is None:\n        joining",
    ),
    Mutant(
        "accept-a-stale-sight",
        TRACK,
        "if key in self.calls or observation.started_ms < self._call_ended.get(key, 0):",
        "if key in self.calls:",
        layer="tests/shard/test_track.py",
    ),
    Mutant("believe-at-once", TRACK, "DOUBT_MS = 2000", "DOUBT_MS = 0"),
    Mutant("ignore-topic-id", PLAN, "if seen is None or seen.topic_id != reassignment.topic_id:", "if seen is None:"),
    Mutant(
        "retry-without-look",
        CALLS,
        "    return (CallOutcomeLost(**event_name(cluster, reassignment.key)",
        "    return (CallLapsed(**event_name(cluster, reassignment.key)",
    ),
    Mutant(
        "start-on-an-old-sight",
        TRACK,
        "FRESH_TO_START_MS = 500",
        "FRESH_TO_START_MS = 60_000",
        layer="tests/shard/test_foreign.py",
    ),
    # -- steps and limits
    Mutant("drop-freeze-check", SLOTS, "    if state.freeze is None:\n", "    if state.name:\n"),
    Mutant(
        "count-slots-wrong", SLOTS, "if len(state.in_flight) >= state.limits", "if len(state.in_flight) > state.limits"
    ),
    Mutant(
        "forget-loads",
        SLOTS,
        "return all(state.loads.get(broker, 0) < limit for broker in step.load)",
        "return bool(limit)",
    ),
    Mutant(
        "grow-at-once",
        "drover/reassignment/replica_sets.py",
        "if broker in live)[:max_replicas_per_step]",
        "if broker in live)",
    ),
    Mutant(
        "copy-to-the-dead",
        PLAN,
        "        return _dead_destination(dead, context)\n    needed",
        "        del dead\n    needed",
    ),
    Mutant(
        "step-with-nobody-in-sync",
        PLAN,
        "    if len(seen.isr) < needed:",
        "    if needed < 0:",
        layer="tests/shard/test_situations.py",
    ),
    Mutant(
        "drop-the-out-of-sync",
        PLAN,
        "    if shrinks and missing:",
        "    if shrinks and not seen.isr:",
        layer="tests/reassignment/test_start.py",
    ),
    Mutant("finish-a-plan-early", PAGE, "or not plan.is_idle or waits:", "or waits:"),
    # -- the way back
    Mutant(
        "forget-order",
        BACK,
        "    if seen.replicas == reassignment.way_back:",
        "    if set(seen.replicas) == set(reassignment.way_back):",
    ),
    Mutant(
        "cancel-whoever-moves",
        BACK,
        "        return foreign(reassignment, seen, context)\n    return cancel(",
        "        del step\n    return cancel(",
        layer="tests/reassignment/test_late.py",
    ),
    Mutant(
        "ignore-the-skip-rule",
        "drover/reassignment/rollback.py",
        "        return None if len(in_sync) >= needed else SkipReason.BELOW_MIN_ISR",
        "        return None",
        layer="tests/reassignment/test_rollback.py",
    ),
    Mutant(
        "cancel-under-an-open-call",
        "drover/reassignment/evolve.py",
        "    phase = before.phase if before.call_open else _ROLLING_BACK",
        "    phase = _ROLLING_BACK",
    ),
    # -- throttles
    Mutant(
        "drop-throttle-restore",
        THROTTLES,
        "rates=entry.baseline, found=seen, release=True)",
        "rates=seen, found=seen, release=True)",
    ),
    Mutant(
        "forget-the-baseline",
        LEDGER,
        "baseline = event.found if known is None else known.baseline",
        "baseline = event.found",
    ),
    Mutant(
        "leave-entries-behind",
        THROTTLES,
        "        tuple(entry for entry in known.present.follower if entry not in entries.follower),",
        "        (),",
    ),
    Mutant(
        "start-before-the-throttle",
        THROTTLES,
        "        if entry is None or entry.pending or entry.intended != Rates(rate, rate):",
        "        if entry is None:",
    ),
    Mutant("leave-half-a-throttle", THROTTLES, "        if theirs == seen:", "        if theirs:"),
)
