"""What a plan is likely to take: recorded once its reassignments are accepted and their sizes are known."""

from dataclasses import dataclass, field

from drover.decide.replica_sets import adding
from drover.decide.verdict import DROVER
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanCancelled, PlanEstimated, PlanFinished
from drover.events.reassignments import ReassignmentQueued
from drover.events.records import AnyEvent
from drover.fold.plans import is_ending
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Reconciler
from drover.reconcile.messages import BytesSampled, Input, Moment
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.observations import ObservationCache
from drover.reconcile.starts.estimate import Accepted, Around
from drover.reconcile.starts.plan_figures import PlanFigures
from drover.state.cluster import ClusterState
from drover.state.plans import PlanStatus
from drover.state.reassignment import Reassignment

# What lacks is waited for no longer than this: sizes, and further commands or queue entries of the plan.
PATIENCE_MS = 60_000


# By type: `isinstance` takes ten times as long with structs, and this is asked of every event.
_PLAN_ENDS = frozenset({PlanFinished, PlanCancelled})


@dataclass(eq=False, slots=True)
class _Gathered:
    """A plan whose estimate is not recorded: the partitions without a size yet, and the figures of the others."""

    since_ms: int
    unsized: dict[TopicPartition, Reassignment] = field(default_factory=dict)
    figures: PlanFigures = field(default_factory=PlanFigures)
    through: int = 0


class EstimatesReconciler(Reconciler):
    """Records one estimate of each plan that somebody asked for and that copies; a plan that grows later has another.

    It costs what is accepted and what is sampled, and decides nothing. What ends before anybody knows its size counts
    as a partition of unknown size.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, sizes: CopySizes) -> None:
        super().__init__(state, observed)
        self._sizes = sizes
        self._gathered: dict[str, _Gathered] = {}
        self._plan_of: dict[TopicPartition, str] = {}
        self._is_due = False

    def begin(self, now: Moment) -> None:
        """Gather what no estimate covers; what has ended under a predecessor is not in it."""
        del now
        for entry in self.state.reassignments.values():
            known = self.state.estimates.get(entry.plan)
            if known is None or entry.number > known.through:
                self._gather(entry)

    def handle(self, entry: Input, batch: BatchBuilder) -> None:
        """Take over the sizes that were waited for."""
        del batch
        if isinstance(entry, BytesSampled) and self._gathered:
            self._is_due = True
            for key in entry.sizes:
                if key in self._plan_of:
                    self._add(key)

    def applied(self, event: AnyEvent) -> None:
        """Gather what is accepted, and drop what needs no estimate any more."""
        if type(event) is ReassignmentQueued:
            self._gather(self.state.reassignments[event.key])
        elif type(event) in _PLAN_ENDS:
            assert isinstance(event, PlanFinished | PlanCancelled)
            gathered = self._gathered.pop(event.plan, None)
            for key in () if gathered is None else gathered.unsized:
                del self._plan_of[key]
        elif is_ending(event) and event.key in self._plan_of:
            self._add(event.key)

    def _gather(self, entry: Reassignment) -> None:
        plan = self.state.plans[entry.plan]
        if plan.by == DROVER or plan.status is not PlanStatus.OPEN or entry.is_adopted:
            return
        gathered = self._gathered.get(entry.plan)
        if gathered is None:
            gathered = self._gathered[entry.plan] = _Gathered(entry.queued_ms)
        gathered.through = max(gathered.through, entry.number)
        gathered.unsized[entry.key] = entry
        self._plan_of[entry.key] = entry.plan
        if self._sizes.copy_bytes(entry.key) is not None or not adding(entry.original, entry.target):
            self._add(entry.key)

    def _add(self, key: TopicPartition) -> None:
        """Count a partition with the size that is known by now."""
        self._is_due = True
        gathered = self._gathered[self._plan_of.pop(key)]
        entry = gathered.unsized.pop(key)
        seen = self.observed.partitions.get(key)
        leader = None if seen is None or seen.facts is None else seen.facts.leader
        source = leader if leader in entry.original else entry.original[0]
        gathered.figures.add(Accepted(key, entry.original, entry.target, source, self._sizes.copy_bytes(key)))

    def reconcile(self, batch: BatchBuilder) -> None:
        """Record the estimates that are complete; a plan of which no size is known has none."""
        if not self._is_due:
            return
        self._is_due = False
        for plan, gathered in tuple(self._gathered.items()):
            if gathered.figures.known_sizes and self._is_complete(plan, gathered, batch.at_ms):
                self._record(plan, gathered, batch)

    def _is_complete(self, name: str, gathered: _Gathered, at_ms: int) -> bool:
        plan = self.state.plans[name]
        if at_ms - gathered.since_ms >= PATIENCE_MS:
            return True
        return not (gathered.unsized or plan.more or plan.waiting)

    def _record(self, plan: str, gathered: _Gathered, batch: BatchBuilder) -> None:
        state, observed = self.state, self.observed
        for key in tuple(gathered.unsized):
            self._add(key)
        del self._gathered[plan]
        stepping = state.steppings.get(plan, state.limits.stepping)
        around = Around(state, state.limits, observed.live, observed.min_isr, observed.racks)
        figures = gathered.figures.estimate(stepping, state.rate_of(plan), around)
        batch.emit(PlanEstimated(cluster=state.name, plan=plan, through=gathered.through, estimate=figures))
