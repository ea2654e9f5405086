"""The recorded form of the events of commands: content that many partitions share is written once.

An event that a command caused refers to the command's outcome, in the same record, which has the author and the reason.
The events of a cancel of many partitions are one entry of the record (`CancelledPartitions`). In memory every event is
complete: `shortened_batch` and `whole_batch` are each other's inverse, and the codec calls them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypedDict, cast

import msgspec
from msgspec.structs import replace

from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.queue_entries import QueueEntryRemoved, QueueExit
from drover.events.reassignments import (
    CancelMode,
    CancelWithdrawn,
    ReassignmentRolledBack,
    ReassignmentStopped,
    ReplacementWithdrawn,
    RollbackRequested,
    StopRequested,
)
from drover.events.records import AnyEvent, Batch, Cancelled, CancelledPartitions, Outcome

# Fewer are written as they are, since people read the record of a small cancel, too.
FEWEST_GATHERED = 10
_REFERRING = (RollbackRequested, StopRequested, CancelWithdrawn, ReplacementWithdrawn)
_REFERRING_TYPES = frozenset(_REFERRING)
_CANCELLING_TYPES = frozenset({RollbackRequested, StopRequested, QueueEntryRemoved})
# An author and a reason.
_Origin = tuple[str, str]
_Command = tuple[str, str]
# The first outcome of each command, and the partitions that it accepts.
_Accepted = dict[_Command, tuple[Outcome, frozenset[TopicPartition]]]


class _Name(TypedDict):
    cluster: str
    topic: str
    partition: int


class DanglingReferenceError(Exception):
    """A record refers to something that it does not hold."""


def as_recorded(event: AnyEvent) -> AnyEvent:
    """Return an event as its record holds it; the outcome of the command that it names is in the same record."""
    # By type, because this runs for every event and `isinstance` takes ten times as long with structs.
    if type(event) not in _REFERRING_TYPES:
        return event
    assert isinstance(event, _REFERRING)
    return event if event.command is None else replace(event, by="", reason="")


def recorded_size(outcome: Outcome, events: Sequence[AnyEvent]) -> int:
    """Return the bytes that a decision takes in its record."""
    (outcome,), events, cancelled = _shortened((outcome,), events)
    return len(msgspec.msgpack.encode((outcome, events, cancelled)))


def shortened_batch(batch: Batch) -> Batch:
    """Return a batch in its recorded form; the inverse of `whole_batch`."""
    if _CANCELLING_TYPES.isdisjoint(map(type, batch.events)) and not _refers(batch.events):
        return batch
    outcomes, events, cancelled = _shortened(batch.outcomes, batch.events)
    return replace(batch, outcomes=outcomes, events=events, cancelled=cancelled)


def whole_batch(batch: Batch) -> Batch:
    """Return a recorded batch with every event complete.

    Raises `DanglingReferenceError` where an event refers to a command that has no outcome in the record.
    """
    if not batch.cancelled and not _refers(batch.events):
        return batch
    events = tuple(_with_cancelled(batch)) if batch.cancelled else batch.events
    origins = _origins_of(batch.outcomes)
    return replace(
        batch,
        outcomes=_with_accepted(batch) if batch.cancelled else batch.outcomes,
        events=tuple(_whole(event, origins) for event in events),
        cancelled=(),
    )


def _refers(events: Sequence[AnyEvent]) -> bool:
    # By type, because this looks at every event of a log, and few are such events.
    return not _REFERRING_TYPES.isdisjoint(map(type, events))


def _origins_of(outcomes: Iterable[Outcome]) -> dict[_Command, _Origin]:
    """Return author and reason by the first outcome of each command; a later one is of a repetition."""
    origins: dict[_Command, _Origin] = {}
    for outcome in outcomes:
        origins.setdefault((outcome.cluster, outcome.id), (outcome.by, outcome.reason))
    return origins


def _without_origin(event: AnyEvent, origins: dict[_Command, _Origin]) -> AnyEvent:
    if not isinstance(event, _REFERRING) or event.command is None:
        return event
    if origins.get((event.cluster, event.command)) != (event.by, event.reason):
        return event
    return replace(event, by="", reason="")


def _whole(event: AnyEvent, origins: dict[_Command, _Origin]) -> AnyEvent:
    if not isinstance(event, _REFERRING) or event.command is None or event.by:
        return event
    origin = origins.get((event.cluster, event.command))
    if origin is None:
        raise DanglingReferenceError(
            f"{event.key} refers to command {event.command}, which has no outcome in the record"
        )
    by, reason = origin
    return replace(event, by=by, reason=reason)


# -- the partitions of a cancel


class _Group:
    """Consecutive events of cancelled partitions that differ only in the partition and its list."""

    def __init__(self, cluster: str, command: str | None, mode: CancelMode | None, effect: Cancelled) -> None:
        self.name = (cluster, command, mode, effect)
        self.events: list[AnyEvent] = []
        self.topics: dict[str, int] = {}
        self.partitions: list[tuple[int, int]] = []
        self.replicas: list[tuple[int, ...]] = []

    def add(self, first: "_First", end: "_Ending | None") -> None:
        self.events.append(first)
        self.partitions.append((self.topics.setdefault(first.topic, len(self.topics)), first.partition))
        if end is not None:
            self.events.append(end)
            self.replicas.append(end.replicas)

    def entry(self, before: int) -> CancelledPartitions:
        cluster, command, mode, effect = self.name
        return CancelledPartitions(
            before=before,
            cluster=cluster,
            effect=effect,
            command=command,
            mode=mode,
            topics=tuple(self.topics),
            partitions=tuple(self.partitions),
            replicas=tuple(self.replicas),
        )


_First = RollbackRequested | StopRequested | QueueEntryRemoved
_Ending = ReassignmentRolledBack | ReassignmentStopped
_ENDINGS: Mapping[type, type] = {RollbackRequested: ReassignmentRolledBack, StopRequested: ReassignmentStopped}
_MODES = {RollbackRequested: CancelMode.ROLLBACK, StopRequested: CancelMode.STOP}


def _shortened(
    outcomes: Sequence[Outcome], events: Sequence[AnyEvent]
) -> tuple[tuple[Outcome, ...], tuple[AnyEvent, ...], tuple[CancelledPartitions, ...]]:
    origins, accepted = _origins_of(outcomes), _accepted_of(outcomes)
    left: list[AnyEvent] = []
    cancelled: list[CancelledPartitions] = []
    for group in _grouped(events, accepted):
        if isinstance(group, _Group) and len(group.partitions) >= FEWEST_GATHERED:
            cancelled.append(group.entry(len(left)))
        else:
            left += (
                _without_origin(event, origins) for event in (group.events if isinstance(group, _Group) else (group,))
            )
    return _without_accepted(outcomes, cancelled), tuple(left), tuple(cancelled)


def _accepted_of(outcomes: Iterable[Outcome]) -> _Accepted:
    """Return the partitions that cancels accept, if they are in order, so that a reader can restore them."""
    accepted: _Accepted = {}
    for outcome in outcomes:
        keys = [partition.key for partition in outcome.accepted]
        is_in_order = all(first < second for first, second in pairwise(keys))
        gathered = frozenset(keys) if len(keys) >= FEWEST_GATHERED and is_in_order else frozenset()
        accepted.setdefault((outcome.cluster, outcome.id), (outcome, gathered))
    return accepted


def _grouped(events: Sequence[AnyEvent], accepted: _Accepted) -> Iterator[AnyEvent | _Group]:
    """Yield the events in order, and consecutive ones of cancelled partitions as groups."""
    group: _Group | None = None
    place = 0
    while place < len(events):
        first, following = events[place], events[place + 1] if place + 1 < len(events) else None
        name, end = _group_of(first, following, accepted)
        if group is not None and group.name != name:
            yield group
            group = None
        if name is None:
            yield first
        else:
            group = group or _Group(*name)
            group.add(cast("_First", first), end)
        place += 1 if end is None else 2
    if group is not None:
        yield group


def _group_of(
    event: AnyEvent, following: AnyEvent | None, accepted: _Accepted
) -> tuple[tuple[str, str | None, CancelMode | None, Cancelled] | None, _Ending | None]:
    """Return the name of an event's group, None if it stands alone, and the end that follows it."""
    if type(event) is QueueEntryRemoved:
        is_plain = event.why is QueueExit.WITHDRAWN and not event.detail
        return ((event.cluster, None, None, Cancelled.UNQUEUED) if is_plain else None), None
    # By type: `isinstance` takes ten times as long with structs, and there may be 200,000 of them.
    if not (type(event) is RollbackRequested or type(event) is StopRequested):
        return None, None
    outcome, keys = accepted.get((event.cluster, event.command or ""), (None, frozenset()))
    place = event.topic, event.partition
    is_said = outcome is not None and (outcome.by, outcome.reason) == (event.by, event.reason) and place in keys
    if not is_said or event.again or not event.until_withdrawn:
        return None, None
    end: _Ending | None = None
    if type(following) is ReassignmentRolledBack or type(following) is ReassignmentStopped:
        end = following if (following.topic, following.partition) == place else None
    if end is not None and (type(end) is not _ENDINGS[type(event)] or end.started or end.missing):
        return None, None
    effect = Cancelled.REQUESTED if end is None else Cancelled.ENDED
    return (event.cluster, event.command, _MODES[type(event)], effect), end


def _with_cancelled(batch: Batch) -> Iterator[AnyEvent]:
    entries = iter(batch.cancelled)
    entry = next(entries, None)
    for place in range(len(batch.events) + 1):
        while entry is not None and entry.before == place:
            yield from _events_of(entry)
            entry = next(entries, None)
        if place < len(batch.events):
            yield batch.events[place]
    if entry is not None:
        raise DanglingReferenceError(f"cancelled partitions stand before event {entry.before}, which is not there")


def _events_of(entry: CancelledPartitions) -> Iterator[AnyEvent]:
    if not all(0 <= topic_index < len(entry.topics) for topic_index, _ in entry.partitions):
        raise DanglingReferenceError(f"cancelled partitions before event {entry.before} name a topic that is not there")
    if entry.effect is Cancelled.ENDED and len(entry.replicas) != len(entry.partitions):
        raise DanglingReferenceError(f"cancelled partitions before event {entry.before} lack their lists")
    is_stop = entry.mode is CancelMode.STOP
    for number, (topic_index, partition) in enumerate(entry.partitions):
        name: _Name = {"cluster": entry.cluster, "topic": entry.topics[topic_index], "partition": partition}
        if entry.effect is Cancelled.UNQUEUED:
            yield QueueEntryRemoved(**name, why=QueueExit.WITHDRAWN)
            continue
        requested = StopRequested if is_stop else RollbackRequested
        yield requested(**name, command=entry.command, until_withdrawn=True)
        if entry.effect is Cancelled.ENDED:
            ended = ReassignmentStopped if is_stop else ReassignmentRolledBack
            yield ended(**name, replicas=entry.replicas[number], started=False)


def _accepted_by(cancelled: Iterable[CancelledPartitions]) -> dict[_Command, set[tuple[str, int]]]:
    """Return by command the partitions that the entries name."""
    named: dict[_Command, set[tuple[str, int]]] = {}
    for entry in cancelled:
        if entry.command is not None:
            keys = named.setdefault((entry.cluster, entry.command), set())
            keys.update((entry.topics[topic_index], partition) for topic_index, partition in entry.partitions)
    return named


def _without_accepted(outcomes: Sequence[Outcome], cancelled: Sequence[CancelledPartitions]) -> tuple[Outcome, ...]:
    """Drop from the first outcome of each cancel the partitions that the entries name."""
    named = _accepted_by(cancelled)

    def shortened(outcome: Outcome) -> Outcome:
        keys = named.pop((outcome.cluster, outcome.id), None)
        if keys is None:
            return outcome
        return replace(
            outcome, accepted=tuple(partition for partition in outcome.accepted if partition.key not in keys)
        )

    return tuple(map(shortened, outcomes))


def _with_accepted(batch: Batch) -> tuple[Outcome, ...]:
    named = _accepted_by(batch.cancelled)

    def whole(outcome: Outcome) -> Outcome:
        keys = named.pop((outcome.cluster, outcome.id), None)
        if keys is None:
            return outcome
        every = sorted((*keys, *(partition.key for partition in outcome.accepted)))
        return replace(outcome, accepted=tuple(PartitionReference(*key) for key in every))

    return tuple(map(whole, batch.outcomes))
