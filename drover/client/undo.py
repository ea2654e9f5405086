"""The inverse of a plan: the previous replica list of each partition that the plan has completed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from drover.client.history import ValidRecord, open_log, read_log
from drover.errors import NothingToUndoError
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentAdopted, ReassignmentCompleted, ReassignmentCreated
from drover.events.records import AnyEvent
from drover.journal.connection import LogConnection
from drover.journal.port import Following
from drover.journal.reader import LogReader


@dataclass(frozen=True, slots=True)
class _Completed:
    """The lists of a partition before and after the plan."""

    original: tuple[int, ...]
    reached: tuple[int, ...]
    topic_id: str


class Undo:
    """PURE: collects the moves that one plan of a cluster has completed; give it the valid batches in log order.

    If the plan moved a partition several times without others in between, the undo goes back to the list before the
    first of these moves. It asserts the topic's id, so that a topic that was created again is not touched.
    """

    def __init__(self, cluster: str, plan: str) -> None:
        self.cluster = cluster
        self.plan = plan
        self._opened = False
        self._running: dict[TopicPartition, tuple[str, tuple[int, ...], tuple[int, ...], str]] = {}
        self._completed: dict[TopicPartition, _Completed] = {}
        self._later: dict[TopicPartition, str] = {}

    def see(self, records: Iterable[ValidRecord]) -> None:
        """Collect the events of batches."""
        for record in records:
            for event in record.batch.events:
                if event.cluster == self.cluster:
                    self._see(event)

    def _see(self, event: AnyEvent) -> None:
        match event:
            case PlanOpened():
                self._opened = self._opened or event.plan == self.plan
            case ReassignmentCreated():
                self._run(event.key, event.plan, event.original, event.target, event.topic_id)
            case ReassignmentAdopted():
                self._run(event.key, event.plan, event.original, event.replicas, event.topic_id)
            case ReassignmentCompleted():
                plan, original, target, topic_id = self._running[event.key]
                if plan == self.plan:
                    # The list may be reordered for brokers that should not lead; its lasting order is the target's.
                    reached = target if set(target) == set(event.replicas) else event.replicas
                    self._complete(event.key, _Completed(original, reached, topic_id))
            case _:
                pass

    def _run(
        self, key: TopicPartition, plan: str, original: tuple[int, ...], target: tuple[int, ...], topic_id: str
    ) -> None:
        self._running[key] = (plan, original, target, topic_id)
        if plan != self.plan and key in self._completed:
            self._later[key] = plan

    def _complete(self, key: TopicPartition, done: _Completed) -> None:
        self._later.pop(key, None)
        earlier = self._completed.get(key)
        if earlier is not None and (earlier.reached, earlier.topic_id) == (done.original, done.topic_id):
            done = replace(done, original=earlier.original)
        self._completed[key] = done

    def later_plans(self) -> dict[str, int]:
        """Return the plans that have moved partitions since, or move them now, with how many; the last ones first.

        The undo of these partitions is refused, unless a later plan has left them as this one did.
        """
        counts: dict[str, int] = {}
        for plan in reversed(self._later.values()):
            counts[plan] = counts.get(plan, 0) + 1
        return counts

    def targets(self) -> tuple[PartitionTarget, ...]:
        """Return the inverse of the plan; each target asserts the list at which the plan has left its partition.

        Raises `NothingToUndoError` if there is no such plan, or if it has completed no move.
        """
        targets = tuple(
            PartitionTarget(
                topic=key.topic,
                partition=key.partition,
                replicas=done.original,
                original_replicas=done.reached,
                topic_id=done.topic_id,
            )
            for key, done in sorted(self._completed.items())
            if done.original != done.reached
        )
        if not self._opened:
            raise NothingToUndoError(
                f"there is no plan {self.plan} in {self.cluster}: `drover plans --since 30d` lists them"
            )
        if not targets:
            raise NothingToUndoError(
                f"plan {self.plan} has completed no move in {self.cluster}: there is nothing to undo"
            )
        return targets

    def command(self, *, id: str, by: str, reason: str) -> Alter:  # noqa: A002 - the field's name
        """Return the inverse as a command; see `targets`.

        An undo can only ask for lists of the past: brokers that were unregistered since are dropped from them.
        """
        targets = self.targets()
        return Alter(id=id, cluster=self.cluster, by=by, reason=reason, partitions=targets, drops_unregistered=True)


async def read_undo(connection: LogConnection, cluster: str, plan: str) -> Undo:
    """Read the completed moves of a plan from the log, up to its current end."""
    async with LogReader(connection) as reader:
        return await undo_in(reader, connection, cluster, plan)


async def undo_in(reader: Following, connection: LogConnection, cluster: str, plan: str) -> Undo:
    """Read the completed moves of a plan with an open reader."""
    undo = Undo(cluster, plan)
    log = await open_log(reader, connection, cluster)
    async for records in read_log(reader, connection, log):
        undo.see(records)
    return undo
