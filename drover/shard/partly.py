"""Commands that are too large for one record: decided in as many as it takes, in their order, by whoever is the owner.

The first record names the partitions that are left, so that cursors pass the command and a successor goes on with it.
Until the last part no other command of the cluster is decided: it would be decided on half of this one.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from msgspec.structs import replace

from drover.decide.commands import decide_part, looks_for, narrowed
from drover.decide.decision import Decision, Facts, Looks
from drover.events.codec import decode_begun, encode_command
from drover.events.commands import Alter, AnyCommand, Cancel
from drover.events.partitions import TopicPartition
from drover.events.waiting import CommandAdvanced, CommandBegun, PartitionRun
from drover.reconcile.batch import BatchBuilder
from drover.shard.managed import ManagedCluster
from drover.state.cluster import ClusterState
from drover.state.scheduling import PartlyDecided

# What one part is meant to take in its record.
PART_BYTES = 512 * 1024
MOST_AT_ONCE = 5000


class Part:
    """The next part of a command that is decided in several records."""

    def __init__(self, state: ClusterState) -> None:
        ((self.id, self._begun),) = state.partly_decided.items()
        self.command: AnyCommand = decode_begun(self._begun.payload)
        end = self._begun.decided + self._begun.part
        self.keys = tuple(_some(self._begun, self._begun.decided, end))
        self.decided = self._begun.decided + len(self.keys)
        self.is_last = self.decided >= self._begun.count
        self.looks = looks_for(narrowed(self.command, self.keys, is_last=self.is_last), state)

    @property
    def place(self) -> tuple[str, int]:
        """The topic and the offset of the command."""
        return self._begun.topic, self._begun.offset

    @property
    def advanced(self) -> CommandAdvanced:
        """The event that says that this part is decided."""
        return CommandAdvanced(cluster=self.command.cluster, id=self.id, decided=self.decided)

    @property
    def ended(self) -> CommandAdvanced:
        """The event that says that all the rest is decided."""
        return CommandAdvanced(cluster=self.command.cluster, id=self.id, decided=self._begun.count)

    def decide(self, state: ClusterState, facts: Facts) -> Decision:
        """Decide it."""
        return decide_part(self.command, self.keys, state, facts, is_last=self.is_last)


def may_be_divided(command: AnyCommand, decision: Decision) -> bool:
    """Whether a decision that is too large can be made in parts."""
    return isinstance(command, Alter | Cancel) and len(_keys(decision)) > 1


def begin(
    batch: BatchBuilder,
    command: AnyCommand,
    place: tuple[str, int],
    whole: Decision,
    size: int,
    cluster: ManagedCluster,
    facts: Facts,
) -> Decision:
    """Decide the first part of a command whose `whole` decision takes `size` bytes, and record what is left."""
    keys = _keys(whole)
    part = min(max(1, len(keys) * PART_BYTES // size), MOST_AT_ONCE, len(keys) - 1)
    topic, offset = place
    first = decide_part(command, keys[:part], cluster.state, facts, is_last=False)
    batch.emit(
        CommandBegun(
            cluster=command.cluster,
            id=command.id,
            payload=encode_command(command),
            topic=topic,
            offset=offset,
            left=_runs(keys[part:]),
            part=part,
            withholds=isinstance(command, Cancel),
        )
    )
    # What was refused as a topic, and not as a partition of it, belongs to no later part.
    at_once = tuple(refusal for refusal in whole.refusals if refusal.key is None)
    return replace(first, refusals=(*at_once, *first.refusals))


def next_part(cluster: ManagedCluster) -> Part | None:
    """Return the next part of the command that is being decided in the cluster; None if none is."""
    return Part(cluster.state) if cluster.state.partly_decided else None


def looks_needed(cluster: ManagedCluster) -> tuple[str, Looks] | None:
    """Return the id of such a command, and what must be observed before its next part; None if nothing must be."""
    part = next_part(cluster)
    return (part.id, part.looks) if part is not None and part.looks.worth else None


def _keys(decision: Decision) -> tuple[TopicPartition, ...]:
    """List what is decided in parts: first what is accepted, in the order in which it will start."""
    refused = (refusal.key for refusal in decision.refusals)
    keys = dict.fromkeys((*decision.accepted, *decision.unchanged, *(key for key in refused if key is not None)))
    return tuple(keys)


def _runs(keys: Sequence[TopicPartition]) -> tuple[PartitionRun, ...]:
    runs = groupby(keys, key=itemgetter(0))
    return tuple(PartitionRun(topic, tuple(number for _, number in run)) for topic, run in runs)


def _some(begun: PartlyDecided, start: int, end: int) -> Iterable[TopicPartition]:
    """Yield the partitions from `start` to `end` of those that were left."""
    place = 0
    for run in begun.left:
        if place >= end:
            return
        for number in run.partitions[max(0, start - place) : end - place]:
            yield TopicPartition(run.topic, number)
        place += len(run.partitions)
