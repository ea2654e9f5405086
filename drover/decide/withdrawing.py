"""Which deferred commands a cancel withdraws: alters that name what is in its scope, as a whole or in part."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from drover.events.commands import Alter, AnyCommand, Cancel
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.waiting import CommandNarrowed
from drover.state.scheduling import SchedulingState


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The ids of the deferred commands that end, and those that lose some of their partitions.

    `keys` are the partitions that were found for a scope of partitions or topics.
    """

    ids: tuple[str, ...] = ()
    narrowed: tuple[CommandNarrowed, ...] = ()
    keys: tuple[TopicPartition, ...] = ()


def withdrawal(command: Cancel, state: SchedulingState, deferred: Mapping[str, AnyCommand]) -> Withdrawal:
    """Find what of the deferred commands is in the scope of a cancel."""
    if command.deferred is not None:
        return Withdrawal((command.deferred,) if command.deferred in state.deferred else ())
    named = {partition.key for partition in command.partitions or ()}
    topics = set(command.topics or ())
    ids: list[str] = []
    narrowed: list[CommandNarrowed] = []
    keys: dict[TopicPartition, None] = {}
    for id_, held in state.deferred.items():
        alter = deferred[id_]
        if not isinstance(alter, Alter):
            continue
        if command.all or (command.plan is not None and command.plan == alter.plan_name) or command.queued == id_:
            ids.append(id_)
            continue
        left = {target.key for target in alter.partitions}.difference(held.withdrawn)
        lost = {key for key in left if key in named or key.topic in topics}
        keys |= dict.fromkeys(sorted(lost))
        if lost == left:
            ids.append(id_)
        elif lost:
            narrowed.append(
                CommandNarrowed(
                    cluster=state.name, id=id_, partitions=tuple(PartitionReference(*key) for key in sorted(lost))
                )
            )
    return Withdrawal(tuple(ids), tuple(narrowed), tuple(keys))


def without(command: AnyCommand, withdrawn: frozenset[TopicPartition]) -> AnyCommand:
    """Return an alter without the partitions that were withdrawn; any other command as it is."""
    if not withdrawn or not isinstance(command, Alter):
        return command
    return replace(command, partitions=tuple(target for target in command.partitions if target.key not in withdrawn))
