"""PURE: estimates when plans will end: the rest of each plan, waits included, at the measured rate.

Running copies are measured. A waiting partition counts with the mean size of the plan's partitions that were copied or
are being copied. Blocked partitions do not count, because they may wait for any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.reconcile.gates import plan_waits
from drover.state.cluster import ClusterState
from drover.state.plans import Copied, Plan


@dataclass(slots=True)
class Tally:
    """Counts of reassignments by kind, and the bytes and estimated end of their copies.

    `moving` proceed, `blocked` cannot proceed, `returning` were cancelled, `waiting` have no slot; `stalled` counts
    those of `moving` that copy nothing for no known reason. The bytes and the `rate` (bytes per second) are those of
    the `sampled` reassignments. `rest_bytes` estimates the bytes of the others, by their mean size; None if unknown.
    All of it ends between `soonest_ms` and `latest_ms` from now (`drover.client.views.plan_end`).
    """

    moving: int = 0
    blocked: int = 0
    returning: int = 0
    waiting: int = 0
    stalled: int = 0
    sampled: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    rate: float = 0.0
    soonest_ms: int | None = None
    latest_ms: int | None = None
    rest_bytes: int | None = 0
    shown: list[TopicPartition] = field(default_factory=list)

    @property
    def under_way(self) -> int:
        """The number of reassignments that have not ended."""
        return self.moving + self.blocked + self.returning + self.waiting


def bound_ends(state: ClusterState, plans: Mapping[str, Tally], total: Tally) -> None:
    """Set the unmeasured rest and the estimated end of each plan, and of all together."""
    for name, tally in plans.items():
        plan = state.plans[name]
        tally.rest_bytes = _rest(state, plan, tally)
        _bound(tally)
    rests = [tally.rest_bytes for tally in plans.values()]
    total.rest_bytes = None if None in rests else sum(rest for rest in rests if rest is not None)
    ends = [tally.soonest_ms for tally in plans.values() if tally.soonest_ms is not None]
    _bound(total, max(ends, default=0))


def _rest(state: ClusterState, plan: Plan, tally: Tally) -> int | None:
    """Return the bytes that unmeasured partitions of a plan will copy; None if unknown, or if they may not start."""
    count = tally.waiting + plan.waiting + max(0, tally.moving - tally.sampled)
    if not count:
        return 0
    copied = state.copied.get(plan.name, Copied())
    measured = copied.partitions + tally.sampled
    if not measured or plan_waits(state, plan.name) is not None:
        return None
    return round(count * (copied.bytes + tally.bytes_total) / measured)


def _unfinished(tally: Tally) -> int:
    return max(0, tally.bytes_total - tally.bytes_done)


def _bound(tally: Tally, least_ms: int = 0) -> None:
    """Set the soonest and the latest end; before, `latest_ms` is the end of the measured copies, each at its own rate.

    At the soonest, everything is copied at the total rate; at the latest, the unmeasured rest is copied at that rate
    after the slowest copy has ended.
    """
    copies_ms, rest = tally.latest_ms, tally.rest_bytes
    tally.latest_ms = None
    if copies_ms is None or rest is None or tally.rate <= 0:
        return
    soonest_ms = round((_unfinished(tally) + rest) / tally.rate * 1000)
    latest_ms = copies_ms + round(rest / tally.rate * 1000)
    tally.latest_ms = max(latest_ms, least_ms)
    tally.soonest_ms = max(min(soonest_ms, latest_ms), least_ms)
