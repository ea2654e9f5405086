"""The end of a plan: finished when nothing of it is left to do, forgotten some time later."""

from collections.abc import Iterator, Mapping

from drover.events.partitions import TopicPartition
from drover.events.plans import PlanFinished, PlansForgotten
from drover.facts import Move
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Reconciler
from drover.reconcile.messages import Timestamp
from drover.state.plans import Plan

# If an announced further command does not come, the plan may finish without it after a minute.
MORE_WAIT_MS = 60_000
# A plan that has ended is kept for a day; the log keeps its history for ever.
RETENTION_MS = 24 * 3600 * 1000
MAX_ENDED_PLANS = 10_000
# At most so many are forgotten in one batch.
_AT_ONCE = 1000


class PlansReconciler(Reconciler):
    """Closes every open plan whose reassignments have all ended, and forgets those that ended long ago."""

    def reconcile(self, batch: BatchBuilder) -> None:
        """Finish idle plans that announce no further command; forget those that ended a day ago or are too many."""
        for name in sorted(self.state.idle_plans):
            plan = self.state.plans[name]
            if not self._waits(plan, batch.at_ms):
                batch.emit(
                    PlanFinished(
                        cluster=self.state.name,
                        plan=name,
                        completed=plan.completed,
                        rolled_back=plan.rolled_back,
                        failed=plan.failed,
                        stopped=plan.stopped,
                        withdrawn=plan.withdrawn,
                    )
                )
        forgotten = tuple(self._to_forget(batch.at_ms))
        if forgotten:
            batch.emit(PlansForgotten(cluster=self.state.name, plans=forgotten))

    def _waits(self, plan: Plan, at_ms: int) -> bool:
        return plan.more and 0 <= at_ms - plan.extended_ms < MORE_WAIT_MS

    def _to_forget(self, at_ms: int) -> Iterator[str]:
        excess = len(self.state.ended_plans) - MAX_ENDED_PLANS
        for number, (name, ended_ms) in enumerate(self.state.ended_plans.items()):
            if number >= _AT_ONCE or (number >= excess and at_ms - ended_ms < RETENTION_MS):
                return
            yield name

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Wake when an announced command has not come for a minute."""
        del moves
        announced = (plan for name in self.state.idle_plans if (plan := self.state.plans[name]).more)
        waits_ms = min((plan.extended_ms + MORE_WAIT_MS - now.wall_ms for plan in announced), default=None)
        return Attention(due_ms=None if waits_ms is None else now.monotonic_ms + max(0, waits_ms))
