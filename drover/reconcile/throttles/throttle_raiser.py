"""Raises a plan's throttle, within the bound that its operator gave, until copies keep up with producers (L6)."""

from collections.abc import Iterable
from fractions import Fraction
from typing import get_args

from drover.decide.copy_pace import CopyPace, SizeSample, pace, rate_in_words
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanThrottleRaised
from drover.events.reassignments import Blocker, ReassignmentBlocked
from drover.events.records import BrokerThrottleEvent
from drover.events.throttles import BrokerThrottleIntended, Rates
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Changes, Reconciler
from drover.reconcile.messages import Timestamp
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment

# A copy must gain on its leader, and sampled sizes are coarse.
_MARGIN = Fraction(11, 10)
# Kafka averages a throttle over eleven seconds: until then bytes copied under the rate before affect a copy.
_AVERAGED_MS = 11_000
_RATE_CHANGES = frozenset(get_args(BrokerThrottleEvent)) - {BrokerThrottleIntended}


def risen_rate(rate: int, bound: int, behind: Iterable[CopyPace]) -> int:
    """Return the least rate, at most `bound`, at which the copies that fall behind gain on their leaders.

    The copies of a broker share its rate in proportion, so the rate must rise by the factor that a copy lacks. For a
    copy that got nothing the factor is unknown: the rate doubles.
    """
    needed = rate * _MARGIN
    for copy_pace in behind:
        share = Fraction(copy_pace.leader_rate, copy_pace.copy_rate) if copy_pace.copy_rate > 0 else Fraction(2)
        needed = max(needed, rate * share * _MARGIN)
    return min(bound, int(needed))


class ThrottleRaiser(Reconciler):
    """Raises the throttle of plans whose copies are blocked because it is too low, as far as their bound allows."""

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp, sizes: CopySizes) -> None:
        super().__init__(state, observed, now)
        self._sizes = sizes
        self._blocked = {key for key in state.moves.in_flight if _is_too_low(state.reassignments[key])}
        # From when on (monotonic) samples count for each broker's present rates, which a predecessor may have changed
        # just now.
        self._counts_from_ms = dict.fromkeys(state.broker_throttles, now.monotonic_ms + _AVERAGED_MS)
        # The brokers whose rates have changed since the last batch.
        self._changed_brokers: set[int] = set()

    def follow(self, changes: Changes) -> None:
        """Note moves that are blocked by their throttle, and brokers whose rates Drover or others have changed."""
        for event in changes.events:
            if type(event) is ReassignmentBlocked and event.why is Blocker.THROTTLE_TOO_LOW:
                self._blocked.add(event.key)
            elif type(event) in _RATE_CHANGES:
                assert isinstance(event, BrokerThrottleEvent)
                self._changed_brokers.add(event.broker)

    def reconcile(self, batch: BatchBuilder) -> None:
        """Raise each throttle that is too low and may rise, once sizes were sampled under the present rate."""
        self._note_changes(batch.now.monotonic_ms)
        if not self._blocked:
            return
        reassignments = self.state.reassignments
        self._blocked = {key for key in self._blocked if key in reassignments and _is_too_low(reassignments[key])}
        for plan in sorted({reassignments[key].plan for key in self._blocked}):
            self._raise(plan, batch)

    def _note_changes(self, now_ms: int) -> None:
        """Note from when on samples count; forget brokers without a rate of Drover's."""
        for broker in self._changed_brokers:
            if broker not in self.state.broker_throttles:
                self._counts_from_ms.pop(broker, None)
            else:
                # Under its first rate samples count at once: no earlier rate affects them.
                self._counts_from_ms[broker] = now_ms + (_AVERAGED_MS if broker in self._counts_from_ms else 0)
        self._changed_brokers.clear()

    def _raise(self, plan: str, batch: BatchBuilder) -> None:
        state = self.state
        bound, rate = state.throttle_bounds.get(plan), state.plans[plan].throttle_bytes_per_second
        if bound is None or rate is None or rate >= bound:
            return
        keys = sorted(key for key in self._blocked if state.reassignments[key].plan == plan)
        behind = {key: paces for key in keys if (paces := self._behind(key, rate))}
        if not behind:
            return
        risen = risen_rate(rate, bound, (copy_pace for paces in behind.values() for copy_pace in paces))
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

    def _behind(self, key: TopicPartition, rate: int) -> list[CopyPace]:
        """List the copies that fall behind under this rate, not under that of another plan or client."""
        step = self.state.reassignments[key].step
        if step is None or step.leader is None:
            return []
        samples = self._sizes.of_step(key)
        paces = [
            pace(self._measured_under(rate, samples, (step.leader, broker)), step.leader, broker)
            for broker in step.adding
        ]
        return [copy_pace for copy_pace in paces if copy_pace is not None and copy_pace.falls_behind]

    def _measured_under(
        self, rate: int, samples: Iterable[SizeSample], brokers: tuple[int, int]
    ) -> tuple[SizeSample, ...]:
        """Return the samples taken while both brokers had their present rates; none unless one has this rate."""
        throttles = self.state.broker_throttles
        entries = {broker: throttles[broker] for broker in brokers if broker in throttles}
        if any(entry.pending for entry in entries.values()):
            return ()
        if all(entry.intended != Rates(rate, rate) for entry in entries.values()):
            return ()
        from_ms = max(self._counts_from_ms.get(broker, 0) for broker in entries)
        return tuple(sample for sample in samples if sample.taken_ms >= from_ms)


def _is_too_low(reassignment: Reassignment) -> bool:
    return reassignment.block is not None and reassignment.block.why is Blocker.THROTTLE_TOO_LOW
