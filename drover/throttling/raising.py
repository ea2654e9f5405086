"""Raising a plan's throttle, within the bound that its operator gave, until the copies keep up with producers (L6)."""

from collections.abc import Iterable
from fractions import Fraction

from drover.capability.batch import BatchBuilder
from drover.capability.contract import Reconciler
from drover.capability.messages import Moment
from drover.capability.observations import ObservationCache
from drover.reassignment.copy_pace import HALF_MS, SPACING_MS, CopyPace, pace, rate_in_words
from drover.reassignment.copy_sizes import CopySizes
from drover.reassignment.values import Reassignment
from drover.state.cluster import ClusterState
from events.partitions import TopicPartition
from events.plans import PlanThrottleRaised
from events.reassignments import Blocker, ReassignmentBlocked
from events.records import AnyEvent
from events.throttles import Rates

# A copy must gain on its leader, and sizes are measured coarsely.
_MARGIN = Fraction(11, 10)
# After a new rate sizes must be measured afresh: Kafka averages a throttle over eleven seconds, then come two halves.
MEASURED_AFRESH_MS = 11_000 + 2 * HALF_MS + SPACING_MS


def risen_rate(rate: int, bound: int, behind: Iterable[CopyPace]) -> int:
    """Return the least rate, at most `bound`, at which the copies that fall behind gain on their leaders.

    The copies of a broker share its rate, each in proportion: what a copy lacks, the rate lacks. A copy that got
    nothing tells no proportion: the rate doubles.
    """
    needed = rate * _MARGIN
    for one in behind:
        share = Fraction(one.leader_rate, one.copy_rate) if one.copy_rate > 0 else Fraction(2)
        needed = max(needed, rate * share * _MARGIN)
    return min(bound, int(needed))


class ThrottleRaiser(Reconciler):
    """Raises the throttle of plans whose copies are blocked because it is too low, as far as their bound allows."""

    def __init__(self, state: ClusterState, observed: ObservationCache, sizes: CopySizes) -> None:
        super().__init__(state, observed)
        self._sizes = sizes
        self._blocked: set[TopicPartition] = set()
        self._raised_ms: dict[str, int] = {}

    def begin(self, now: Moment) -> None:
        """Find what is blocked already; a predecessor may have raised a rate just now."""
        state = self.state
        self._blocked = {key for key in state.moves.in_flight if _is_too_low(state.reassignments[key])}
        self._raised_ms = dict.fromkeys(state.throttle_bounds, now.monotonic_ms)

    def applied(self, event: AnyEvent) -> None:
        """Note what is blocked because of its throttle."""
        if type(event) is ReassignmentBlocked and event.why is Blocker.THROTTLE_TOO_LOW:
            self._blocked.add(event.key)

    def reconcile(self, batch: BatchBuilder) -> None:
        """Raise each plan that may rise and is too low, once sizes were measured under the rate that holds."""
        if not self._blocked:
            return
        known, bounds = self.state.reassignments, self.state.throttle_bounds
        self._raised_ms = {plan: at_ms for plan, at_ms in self._raised_ms.items() if plan in bounds}
        self._blocked = {key for key in self._blocked if key in known and _is_too_low(known[key])}
        for plan in sorted({known[key].plan for key in self._blocked}):
            self._raise(plan, batch)

    def _raise(self, plan: str, batch: BatchBuilder) -> None:
        state, now_ms = self.state, batch.now.monotonic_ms
        bound, rate = state.throttle_bounds.get(plan), state.plans[plan].throttle_bytes_per_second
        raised_ms = self._raised_ms.get(plan)
        if bound is None or rate is None or rate >= bound:
            return
        if raised_ms is not None and now_ms - raised_ms < MEASURED_AFRESH_MS:
            return
        keys = sorted(key for key in self._blocked if state.reassignments[key].plan == plan)
        behind = {key: found for key in keys if (found := self._behind(key, rate))}
        if not behind:
            return
        risen = risen_rate(rate, bound, (one for found in behind.values() for one in found))
        key, (first, *_) = next(iter(behind.items()))
        detail = (
            f"the leader of {key} grows by {rate_in_words(first.leader_rate)} and its copy on broker {first.broker} by "
            f"{rate_in_words(first.copy_rate)}"
        )
        batch.emit(
            PlanThrottleRaised(
                cluster=state.name, plan=plan, bytes_per_second=risen, previous_bytes_per_second=rate, detail=detail
            )
        )
        self._raised_ms[plan] = now_ms

    def _behind(self, key: TopicPartition, rate: int) -> list[CopyPace]:
        """List the copies that fall behind and that this rate holds back, and neither another plan's nor others'."""
        step = self.state.reassignments[key].step
        if step is None or step.leader is None:
            return []
        ours = Rates(rate, rate)
        throttles, samples = self.state.broker_throttles, self._sizes.of_step(key)
        found = [
            pace(samples, step.leader, broker)
            for broker in step.adding
            if any(it in throttles and throttles[it].intended == ours for it in (broker, step.leader))
        ]
        return [one for one in found if one is not None and one.falls_behind]

    def due_ms(self, now: Moment) -> int | None:
        """Wake when sizes will have been measured under a raised rate."""
        plans = {self.state.reassignments[key].plan for key in self._blocked if key in self.state.reassignments}
        times = (at_ms + MEASURED_AFRESH_MS for plan, at_ms in self._raised_ms.items() if plan in plans)
        return min((time for time in times if time > now.monotonic_ms), default=None)


def _is_too_low(reassignment: Reassignment) -> bool:
    return reassignment.block is not None and reassignment.block.why is Blocker.THROTTLE_TOO_LOW
