"""Reorders for the sake of leadership: reassignments of Drover's own that copy nothing."""

from collections.abc import Iterable, Iterator

from drover.decide.order_endings import PLAN_PREFIX, is_reorder
from drover.decide.plan_names import unused_plan_name
from drover.decide.verdict import DROVER, event_name
from drover.events.leadership import LeaderOrderKept
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCompleted, ReassignmentCreated
from drover.events.records import AnyEvent
from drover.facts import PartitionFacts
from drover.fold.plans import Ending
from drover.reconcile.leaders.judgement import Reorder
from drover.state.cluster import ClusterState
from drover.state.plans import PlanStatus


class Reorders:
    """The reorders of one cluster that are under way, and the plan that they belong to.

    `keys` are their partitions. A reorder is an ordinary reassignment: it is called, confirmed, adopted by a successor
    and shown like any other.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.keys: set[TopicPartition] = set()
        self._blocked: set[TopicPartition] = set()
        # Those whose first replica is to be elected afterwards; a successor learns it from a survey.
        self._electing: set[TopicPartition] = set()
        self._plan = ""

    def begin(self) -> None:
        """Find the reorders and the plan of a predecessor."""
        plans = self._state.plans.values()
        ours = [plan.name for plan in plans if plan.by == DROVER and plan.name.startswith(PLAN_PREFIX)]
        self._plan = max((name for name in ours if self._is_open(name)), default="")
        self.keys = {key for key, reassignment in self._state.reassignments.items() if is_reorder(reassignment)}
        self._blocked = {key for key in self.keys if self._state.reassignments[key].block is not None}

    def begin_one(self, key: TopicPartition, seen: PartitionFacts, wanted: Reorder) -> Iterator[AnyEvent]:
        """Keep the canonical order first; then accept the reorder as a reassignment."""
        state = self._state
        name = event_name(state.name, key)
        kept = state.orders.get(key)
        if kept is None or kept.replicas != seen.replicas:
            yield LeaderOrderKept(**name, topic_id=seen.topic_id, canonical=wanted.canonical, replicas=seen.replicas)
        if not self._is_open(self._plan):
            self._plan = unused_plan_name(state, f"{PLAN_PREFIX}{state.next_number}")
            yield PlanOpened(cluster=state.name, plan=self._plan, by=DROVER, reason=self._reason())
        if wanted.elects:
            self._electing.add(key)
        yield ReassignmentCreated(
            **name, topic_id=seen.topic_id, plan=self._plan, original=seen.replicas, target=wanted.replicas
        )

    def created(self, event: ReassignmentCreated) -> None:
        """Note a reassignment that was accepted."""
        if event.plan.startswith(PLAN_PREFIX):
            self.keys.add(event.key)

    def follow(self, partitions: Iterable[TopicPartition]) -> None:
        """Note which reorders are blocked, among partitions that events have changed."""
        for key in partitions if self.keys else ():
            if key in self.keys and (reassignment := self._state.reassignments.get(key)) is not None:
                (self._blocked.add if reassignment.block is not None else self._blocked.discard)(key)

    @property
    def under_way(self) -> int:
        """Count the reorders under way; a blocked one holds up no other."""
        return len(self.keys) - len(self._blocked)

    def ended(self, event: Ending) -> tuple[bool, bool]:
        """Note the end of a reassignment; return whether it was a reorder, and whether to elect its first now."""
        key = event.key
        is_own, elects = key in self.keys, key in self._electing
        self.keys.discard(key)
        self._blocked.discard(key)
        self._electing.discard(key)
        is_there = isinstance(event, ReassignmentCompleted) and event.replicas[0] not in event.out_of_sync
        return is_own, is_own and elects and is_there

    def _is_open(self, name: str) -> bool:
        plan = self._state.plans.get(name)
        return plan is not None and plan.status is PlanStatus.OPEN

    def _reason(self) -> str:
        listed = ", ".join(map(str, self._state.blacklist))
        return f"brokers that should not lead: {listed}" if listed else "canonical orders are restored"
