"""PURE: detect in the log that a plan has ended, and how the moves of a command have ended."""

from collections.abc import Iterable, Sequence

from drover.client.answers import Answer
from drover.client.history import ValidRecord
from drover.client.time_travel import Ended
from drover.errors import DroverError
from drover.events.base import PartitionEvent
from drover.events.partitions import TopicPartition
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved
from drover.events.reassignments import ReassignmentAdopted, ReassignmentCreated, ReplacementWithdrawn, TargetReplaced
from drover.events.records import AnyEvent, Batch
from drover.fold.plans import is_ending
from drover.state.cluster import ClusterState
from drover.state.plans import Plan

# An accepted plan appears in the log within this time, even if a broker of the log lags.
APPEARS_WITHIN_S = 10.0


# The ends of targets that never become moves.
_WITHOUT_A_MOVE = (QueueEntryRemoved, ReplacementWithdrawn)


class NotEndedError(DroverError):
    """A plan, or moves, have not ended in time; they go on.

    `plan` is the plan as the log has it now, `ended` the moves that have ended.
    """

    def __init__(self, message: str, plan: Plan | None = None, ended: Sequence[Ended] = ()) -> None:
        super().__init__(message)
        self.plan = plan
        self.ended = tuple(ended)


class PlanEnd:
    """Detects in successive states that a plan has ended, in one cluster or in all that have it.

    `last` holds the latest version of the plan, one per cluster, and `names` the plans that there are. The state only
    forgets plans that have ended, so a plan that has not appeared by `deadline_s`, a monotonic time, ended long ago, or
    never was.
    """

    def __init__(self, plan: str, deadline_s: float) -> None:
        self.last: list[Plan] = []
        self.names: frozenset[str] = frozenset()
        self._plan = plan
        self._deadline_s = deadline_s

    def see(self, states: Iterable[ClusterState], now_s: float) -> bool:
        """Whether the plan has ended by these states; `now_s` is a monotonic time."""
        present = [state.plans for state in states]
        self.names = frozenset().union(*present)
        plans = [plans[self._plan] for plans in present if self._plan in plans]
        if not plans:
            return bool(self.last) or now_s >= self._deadline_s
        self.last = plans
        return all(plan.is_idle and not plan.more for plan in plans)


class MoveEnds:
    """Detects the end of each partition that a command has accepted.

    Give it the valid records of the command's cluster from that of the answer on, each with the state right after it.
    The moves of an alter are those of its plan; a cancel ends when the moves that it cancels have ended. A target that
    never becomes a move, such as a withdrawn entry of the queue, ends with the event that says so.
    """

    def __init__(self, answer: Answer) -> None:
        self._cluster = answer.outcome.cluster
        self._plan = answer.outcome.plan
        self._keys = tuple(reference.key for reference in answer.outcome.accepted)
        self._open = set(self._keys)
        self._is_begun = False
        # The open partitions with a target of the plan. The command ends moves of any plan for the others.
        self._targets: set[TopicPartition] = set()
        # The number of the reassignment that the command ends, by partition.
        self._cancelled: dict[TopicPartition, int] = {}
        self._plans: dict[TopicPartition, str] = {}
        self._ended: dict[TopicPartition, Ended] = {}

    @property
    def is_over(self) -> bool:
        """Whether every partition has ended."""
        return not self._open

    def ended(self) -> tuple[Ended, ...]:
        """Return the ends so far, in the order in which the outcome names the partitions.

        A partition for which nothing was left to do has none.
        """
        return tuple(self._ended[key] for key in self._keys if key not in self._open and key in self._ended)

    def see(self, record: ValidRecord, state: ClusterState) -> None:
        """Take in a record, and the state after it."""
        is_first = not self._is_begun
        if is_first:
            self._begin(record.batch, state)
        touched = {key for event in record.batch.events if (key := self._take(event, record)) is not None}
        looked_at = self._open if is_first else touched
        self._open -= {key for key in looked_at if self._has_ended(key, state)}

    def _begin(self, batch: Batch, state: ClusterState) -> None:
        self._is_begun = True
        self._targets = {
            event.key
            for event in batch.events
            if isinstance(event, ReassignmentCreated | TargetReplaced | QueueEntryAdded)
            and event.cluster == self._cluster
            and event.key in self._open
            and event.plan == self._plan
        }
        self._cancelled = {
            key: moving.number
            for key in self._open - self._targets
            if (moving := state.reassignments.get(key)) is not None
        }

    def _take(self, event: AnyEvent, record: ValidRecord) -> TopicPartition | None:
        """Note what an event says about an open partition, and return the partition."""
        if event.cluster != self._cluster or not isinstance(event, PartitionEvent) or event.key not in self._open:
            return None
        key = event.key
        if isinstance(event, ReassignmentCreated | ReassignmentAdopted):
            self._plans[key] = event.plan
        if is_ending(event):
            # The end of an earlier move makes room for the plan's own.
            is_last_word = key not in self._targets or self._plans.get(key) == self._plan
        else:
            # The end of a move counts, not what the same record says beside it.
            is_new = key not in self._ended or self._ended[key].offset < record.offset
            is_last_word = isinstance(event, _WITHOUT_A_MOVE) and is_new
        if is_last_word:
            tag = str(event.__struct_config__.tag)
            self._ended[key] = Ended(event.cluster, key, tag, record.offset, record.batch.at_ms)
        return key

    def _has_ended(self, key: TopicPartition, state: ClusterState) -> bool:
        moving, entry = state.reassignments.get(key), state.queue.get(key)
        if key not in self._targets:
            return moving is None or moving.number != self._cancelled.get(key)
        replacement = None if moving is None else moving.replacement
        plans = {
            None if moving is None else moving.plan,
            None if replacement is None else replacement.plan,
            None if entry is None else entry.plan,
        }
        return self._plan not in plans
