"""Deliberate faults: each a small change of the source that some promise must notice. Never applied to the checkout."""

from tests.simulation.adaptation_mutants import ADAPTATION_MUTANTS
from tests.simulation.healing_mutants import HEALING_MUTANTS
from tests.simulation.leader_mutants import LEADER_MUTANTS
from tests.simulation.limit_mutants import LIMIT_MUTANTS
from tests.simulation.mutant import Mutant
from tests.simulation.sharing_mutants import SHARING_MUTANTS
from tests.simulation.step_mutants import STEP_MUTANTS
from tests.simulation.throttle_mutants import THROTTLE_MUTANTS

FOLD = "drover/fold/log.py"
CORE = "drover/shard/core.py"
MANAGED = "drover/shard/managed.py"
PIPELINE = "drover/shard/pipeline.py"
PROPOSALS = "drover/shard/proposals.py"
CONTRACT = "drover/reconcile/contract.py"
INBOX = "drover/shard/inbox.py"
OBSERVED = "drover/reconcile/observations.py"
UNCONFIRMED = "drover/reconcile/debounce.py"
GATES = "drover/reconcile/gates.py"
STARTER = "drover/reconcile/starts/starter.py"
PLANS = "drover/reconcile/plans/reconciler.py"
HOSTING = "agents/shards.py"
CALLING = "agents/calls.py"
RECONCILE = "drover/reconcile/moves/reconcile.py"
RECONCILER = "drover/reconcile/moves/reconciler.py"
START = "drover/reconcile/moves/start.py"
ROUTE = "drover/reconcile/moves/route.py"
STEPPING = "drover/reconcile/moves/stepping.py"
BACK = "drover/reconcile/moves/rollback.py"
CALLS = "drover/reconcile/moves/calls.py"
GUARDS = "drover/decide/rollback_guards.py"
DEMAND = "drover/reconcile/throttles/demand.py"
TARGETS = "drover/decide/targets.py"

MUTANTS = (
    # -- who may write, and when
    Mutant("skip-epoch-check", FOLD, "if record.epoch != self.epoch + 1:", "if record.epoch > self.epoch + 1:"),
    Mutant("believe-an-old-token", FOLD, "if record.token != self.token:", "if record.epoch > self.epoch:"),
    Mutant(
        "act-before-durable",
        HOSTING,
        "        await self._send_aside(proposed)\n",
        "        self.core._proposals.is_under_way = False\n"
        "        self.core._proposals._proved_ms = self.core._proposals._proposed_ms\n        self._start_effects()\n"
        "        await self._send_aside(proposed)\n",
    ),
    Mutant("act-when-fenced", HOSTING, "if folded.verdict is RecordVerdict.VALID:", "if folded.verdict is not None:"),
    Mutant("no-wait-after-takeover", CONTRACT, "TAKEOVER_WAIT_MS = 5000", "TAKEOVER_WAIT_MS = 0"),
    Mutant("call-however-late", CALLING, "if clock().monotonic_ms > effect.start_by_ms:", "if not effect.requests:"),
    Mutant(
        "count-from-the-acknowledgement",
        CORE,
        "self._proposals.at(now), self._proposals.start_by_ms",
        "self._proposals.at(now), now.monotonic_ms + 1000",
        layer="tests/shard/test_takeover.py",
    ),
    Mutant(
        "call-another-cluster",
        MANAGED,
        "        return lapse(self.state, CALL_GATES)",
        "        return None",
        layer="tests/shard/test_faults.py",
    ),
    # -- commands: none lost, none doubled
    Mutant("advance-cursor-early", PROPOSALS, "= arrival.offset + 1", "= arrival.offset + 2"),
    Mutant("forget-cursor", PROPOSALS, "= arrival.offset + 1", "= arrival.offset"),
    Mutant("forget-digests", PIPELINE, "self._index.deciding(identity) if earlier is None else earlier.digest", "None"),
    Mutant(
        "forget-what-was-fenced",
        HOSTING,
        "        self.inbox.give_back()\n        self._disown()",
        "        self.inbox.settle()\n        self._disown()",
    ),
    Mutant(
        "decide-again", INBOX, "queue[0].offset < next_offset", "queue[0].offset < 0", layer="tests/shard/test_inbox.py"
    ),
    Mutant("give-back-backwards", INBOX, "for arrival in reversed(self._taken):", "for arrival in self._taken:"),
    Mutant("bury-nothing", PIPELINE, "self._taken.dead_letters.append((arrival, result.reason))", "pass"),
    Mutant(
        "forward-nothing",
        PIPELINE,
        "self._taken.forward.append((arrival, result.shard))",
        "pass",
    ),
    Mutant(
        "forward-after-the-record",
        HOSTING,
        "        await self._send_aside(proposed)\n        began = monotonic()\n"
        "        counted = outcome_metrics.counted(self.fold.state.clusters, proposed)\n"
        "        folded = await self._services.log.append(self.number, proposed.record, proposed.payload)\n",
        "        began = monotonic()\n"
        "        counted = outcome_metrics.counted(self.fold.state.clusters, proposed)\n"
        "        folded = await self._services.log.append(self.number, proposed.record, proposed.payload)\n"
        "        await self._send_aside(proposed)\n",
    ),
    # -- looking
    Mutant(
        "complete-on-not-listed",
        RECONCILE,
        "    if seen.replicas == step.replicas:\n        joining",
        "    if seen.move is None:\n        joining",
    ),
    Mutant(
        "accept-a-stale-sight",
        OBSERVED,
        "if is_stale or key in self._calling or started_ms < call_ended.get(key, 0):",
        "if is_stale or key in self._calling:",
        layer="tests/capability/test_observations.py",
    ),
    Mutant(
        "forget-what-was-left",
        RECONCILER,
        "            self.observed.call_made(key, replicas, now.monotonic_ms)\n",
        "            pass\n",
        layer="tests/shard/test_old_metadata.py",
    ),
    Mutant(
        "believe-a-broker-that-is-behind-after-the-end",
        "drover/reconcile/moves/reconciler.py",
        "            self.observed.call_made(key, seen.facts.replicas, ended_ms)",
        "            self.observed.call_ends(key, ended_ms)",
        layer="tests/shard/test_old_metadata.py",
    ),
    Mutant(
        "believe-at-once",
        UNCONFIRMED,
        "CONFIRM_AFTER_MS = METADATA_LAG_MS",
        "CONFIRM_AFTER_MS = 0",
        layer="tests/shard/test_old_metadata.py",
    ),
    Mutant(
        "ignore-topic-id", RECONCILE, "if seen is None or seen.topic_id != reassignment.topic_id:", "if seen is None:"
    ),
    Mutant(
        "retry-without-look",
        CALLS,
        "    return (CallOutcomeLost(**event_name(cluster, reassignment.key)",
        "    return (CallLapsed(**event_name(cluster, reassignment.key)",
    ),
    Mutant(
        "start-on-an-old-sight",
        OBSERVED,
        "FRESH_TO_START_MS = 500",
        "FRESH_TO_START_MS = 60_000",
        layer="tests/shard/test_old_metadata.py",
    ),
    # -- steps and limits
    Mutant(
        "drop-freeze-check",
        GATES,
        "(CLUSTER_KNOWN, NOT_FROZEN, NOT_MIGRATING)",
        "(CLUSTER_KNOWN, NOT_MIGRATING)",
    ),
    Mutant(
        "count-slots-wrong",
        GATES,
        "len(state.moves.in_flight) >= state.limits.max_partitions_in_flight",
        "len(state.moves.in_flight) > state.limits.max_partitions_in_flight",
    ),
    Mutant(
        "forget-loads",
        STARTER,
        "return self._shut(start, this) is None",
        "return True",
    ),
    Mutant(
        "grow-at-once",
        STEPPING,
        "    return _appended(now, most) if live else None",
        "    return _appended(now, len(live)) if live else None",
    ),
    Mutant(
        "copy-to-the-dead",
        START,
        "    if unusable is not None:\n        return unusable\n    out_of_sync",
        "    out_of_sync",
    ),
    Mutant(
        "step-with-nobody-in-sync",
        START,
        "    return len(seen.isr) < min(context.min_isr, len(seen.replicas))",
        "    return len(seen.isr) < min(context.min_isr, 0)",
        layer="tests/reassignment/test_start.py",
    ),
    Mutant(
        "hold-back-the-repair",
        START,
        "    is_short = _lacks_in_sync(seen, context)",
        "    is_short = False",
        layer="tests/shard/test_repair_by_adding.py",
    ),
    Mutant(
        "drop-the-out-of-sync",
        START,
        "    if shrinks and out_of_sync:",
        "    if shrinks and not seen.isr:",
        layer="tests/reassignment/test_start.py",
    ),
    Mutant(
        "finish-a-plan-early",
        "drover/state/plans.py",
        "    return plan.is_idle and plan.status is PlanStatus.OPEN",
        "    return plan.status is PlanStatus.OPEN",
    ),
    Mutant(
        "believe-the-list-before",
        RECONCILER,
        "                self.observed.call_replaced(key, before, ended.ended_ms)\n",
        "                pass\n",
        layer="tests/simulation/test_regressions.py",
    ),
    Mutant(
        "believe-the-merged-list",
        "drover/reconcile/observations.py",
        "                self._note(self._merged, key, merged, ended_ms, MOST_METADATA_LAG_MS)\n",
        "                pass\n",
        layer="tests/shard/test_unmanaged_moves.py",
    ),
    Mutant(
        "take-a-broker-that-is-behind-for-somebody-elses-cancel",
        "drover/reconcile/debounce.py",
        "CERTAIN_AFTER_MS = MOST_METADATA_LAG_MS\n",
        "CERTAIN_AFTER_MS = METADATA_LAG_MS\n",
        layer="tests/shard/test_faults.py",
    ),
    # -- indexes and the hash
    Mutant(
        "lose-a-listed-move-that-drover-has-ended",
        "drover/reconcile/unmanaged/reconciler.py",
        "(self._others.discard if key in in_flight else self._others.add)(key)",
        "self._others.discard(key)",
    ),
    Mutant(
        "overlook-moves-that-others-begin",
        "drover/reconcile/unmanaged/reconciler.py",
        "(*self._others, *self.observed.begun)",
        "tuple(self._others)",
    ),
    Mutant(
        "take-no-more-what-was-tried-in-vain",
        STARTER,
        "            if self.put_off.get(key) == due_ms:\n",
        "            if self.put_off.get(key) is None:\n",
    ),
    Mutant(
        "keep-the-load-of-what-ended",
        "drover/state/move_index.py",
        "            self._weigh(reassignment.weighing_step, None)\n",
        "",
    ),
    Mutant(
        "forget-who-needs-a-throttle-no-more",
        DEMAND,
        "        if before is not None:\n            self._remove(key, before)\n",
        "        if before is not None and after is not None:\n            self._remove(key, before)\n",
    ),
    Mutant(
        "leave-the-queue-out-of-the-hash",
        "drover/state/scheduling.py",
        '"queue", factory=dict, content=items_in_order,',
        '"queue", factory=dict, content=items_in_order, hashed=False,',
        layer="tests/simulation/test_golden.py",
    ),
    Mutant(
        "roll-back-to-what-is-there",
        "drover/state/reassignment.py",
        "return self.current if is_given_up or self.cancel_mode is CancelMode.STOP else self.original",
        "return self.current",
    ),
    # -- rollback and stop
    Mutant(
        "forget-order",
        ROUTE,
        "    if seen.replicas == destination or (missing and set(seen.replicas) == set(destination)):",
        "    if set(seen.replicas) == set(destination):",
    ),
    Mutant(
        "cancel-whoever-moves",
        BACK,
        "        return others_move(reassignment, seen, context)\n    return follow(",
        "        del step\n    return follow(",
        layer="tests/reassignment/test_late.py",
    ),
    Mutant(
        "ignore-the-skip-rule",
        "drover/decide/rollback_guards.py",
        "        return None if len(in_sync) >= needed else SkipReason.BELOW_MIN_ISR",
        "        return None",
        layer="tests/reassignment/test_rollback_guards.py",
    ),
    Mutant(
        "give-up-who-is-away-for-a-moment",
        GUARDS,
        "broker in guard.unregistered or (has_lasted and broker in dead)",
        "broker in guard.unregistered or broker in dead",
        layer="tests/reassignment/test_rollback_guards.py",
    ),
    Mutant(
        "keep-only-the-originals-in-sync",
        GUARDS,
        "    needed = max(len(original), min(guard.min_isr, len(facts.isr)))",
        "    needed = len(kept)",
        layer="tests/reassignment/test_rollback_guards.py",
    ),
    Mutant(
        "forget-what-is-deferred",
        "drover/fold/moves.py",
        "    deferred_by = None if before.asked is None else event.why",
        "    deferred_by = None",
        layer="tests/shard/test_deferred_cancels.py",
    ),
    Mutant(
        "return-to-the-target",
        "drover/state/reassignment.py",
        "        return self.target if self.returning_to is None else self.returning_to",
        "        return self.target",
        layer="tests/shard/test_restoring_steps.py",
    ),
    Mutant(
        "cancel-under-an-open-call",
        "drover/fold/moves.py",
        "    phase = before.phase if before.call_open else _ROLLING_BACK",
        "    phase = _ROLLING_BACK",
    ),
    Mutant(
        "cancel-what-goes-back-by-itself",
        "drover/state/reassignment.py",
        "        lists = set(self.late_lists(at_ms))",
        "        lists = {self.original, *self.late_lists(at_ms)}",
        layer="tests/shard/test_unmanaged_rollback.py",
    ),
    Mutant(
        "believe-in-a-lost-cancel",
        BACK,
        "        if (reassignment.outcome_unknown or strange or done) and not context.persisted:",
        "        if (strange or done) and not context.persisted:",
        layer="tests/reassignment/test_reconcile.py",
    ),
    *THROTTLE_MUTANTS,
    # -- what was asked for
    Mutant(
        "move-a-topic-that-was-made-anew",
        TARGETS,
        "    if asserted in {None, present}:",
        "    if present:",
        layer="tests/scheduling/test_queue_entries.py",
    ),
    Mutant(
        "roll-back-what-a-new-topic-ended",
        TARGETS,
        "        if _is_of_an_earlier_topic(active, seen):",
        "        if active.is_adopted and _is_of_an_earlier_topic(active, seen):",
        layer="tests/simulation/test_regressions.py",
    ),
    Mutant(
        "end-what-waits-without-a-look",
        "drover/reconcile/starts/queue_reconciler.py",
        "if active is None or is_untouched(active) or observed.live_seen_ms is None:",
        "if active is None or observed.live_seen_ms is None:",
        layer="tests/simulation/test_regressions.py",
    ),
    Mutant(
        "let-an-older-entry-win",
        "drover/decide/alter.py",
        "    if decided.refusal is not None or key not in state.queue:",
        "    if True:",
        layer="tests/scheduling/test_queue_entries.py",
    ),
    Mutant(
        "end-the-freeze-of-others",
        "drover/decide/freezes.py",
        "    if command.all or not others:",
        "    if True:",
        layer="tests/reassignment/test_decide.py",
    ),
    *STEP_MUTANTS,
    *HEALING_MUTANTS,
    *ADAPTATION_MUTANTS,
    *LIMIT_MUTANTS,
    # -- who comes first
    *SHARING_MUTANTS,
    # -- who leads
    *LEADER_MUTANTS,
)
