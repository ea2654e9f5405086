"""PURE: the sentences of `kafka-reassign-partitions`, and what Drover's state means in them.

The sentences are those of the class `ReassignPartitionsCommand` of Kafka 4.3.1, on which scripts rely. A move that
Drover has accepted counts as active until it has ended, whether or not Kafka has been asked for its next step yet.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from drover.events.commands import PartitionTarget
from drover.events.partitions import TopicPartition
from drover.facts import Move
from drover.state.cluster import ClusterState

EXISTING_ASSIGNMENT = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
NO_ACTIVE_REASSIGNMENT = "None of the specified partition reassignments are active."
# The stock tool ends this sentence without a new line.
NO_ACTIVE_MOVE = "None of the specified partition moves are active."

Lists = Mapping[TopicPartition, tuple[int, ...]]


def named(key: TopicPartition) -> str:
    """Name a partition as Kafka's own tools do: `orders-0`."""
    return f"{key.topic}-{key.partition}"


def listed(brokers: Iterable[int]) -> str:
    """Join broker ids as the stock tool does."""
    return ",".join(map(str, brokers))


def active_moves(moves: Mapping[TopicPartition, Move], lists: Lists, state: ClusterState) -> dict[TopicPartition, Move]:
    """Return every active move: those that Kafka lists, and those that Drover has accepted and will still begin.

    `lists` are the partitions' current replica lists. A move that waits is shown as Kafka would list it once the whole
    of it had begun.
    """
    waiting = {key: entry.target for key, entry in state.queue.items()}
    waiting |= {key: move.original if move.is_cancelled else move.target for key, move in state.reassignments.items()}
    accepted = {key: _move_to(target, lists.get(key, ())) for key, target in waiting.items()}
    return accepted | dict(moves)


def _move_to(target: tuple[int, ...], current: tuple[int, ...]) -> Move:
    adding = tuple(sorted(set(target) - set(current)))
    removing = tuple(sorted(set(current) - set(target)))
    return Move((*target, *(broker for broker in current if broker not in target)), adding, removing)


def list_lines(active: Mapping[TopicPartition, Move]) -> list[str]:
    """Say what `--list` says of active moves."""
    if not active:
        return ["No partition reassignments found."]
    return ["Current partition reassignments:", *(_listed_move(key, active[key]) for key in sorted(active))]


def _listed_move(key: TopicPartition, move: Move) -> str:
    adding = f" adding: {listed(move.adding)}." if move.adding else ""
    removing = f" removing: {listed(move.removing)}." if move.removing else ""
    return f"{named(key)}: replicas: {listed(move.replicas)}.{adding}{removing}"


def verify_lines(targets: Sequence[PartitionTarget], active: Collection[TopicPartition], lists: Lists) -> list[str]:
    """Say what `--verify` says of each partition of a file; `lists` are the current ones of those that exist."""
    wanted = {target.key: target.replicas or () for target in targets}
    return [
        "Status of partition reassignment:",
        *(_verified(key, wanted[key], lists.get(key, ()), moves=key in active) for key in sorted(wanted)),
    ]


def _verified(key: TopicPartition, wanted: tuple[int, ...], current: tuple[int, ...], *, moves: bool) -> str:
    if moves:
        return f"Reassignment of partition {named(key)} is still in progress."
    if wanted == current:
        return f"Reassignment of partition {named(key)} is completed."
    return (
        f"There is no active reassignment of partition {named(key)}, but replica set is {listed(current)} rather than "
        f"{listed(wanted)}."
    )


def assignment_json(lists: Lists) -> str:
    """Format replica lists as the stock tool prints them, on one line."""
    partitions = [
        {"topic": key.topic, "partition": key.partition, "replicas": lists[key], "log_dirs": ["any"] * len(lists[key])}
        for key in sorted(lists)
    ]
    return msgspec.json.encode({"version": 1, "partitions": partitions}).decode()


def rollback_lines(lists: Lists) -> list[str]:
    """Print the current lists before they change, as `--execute` does, so that they can be restored."""
    return [
        "Current partition replica assignment",
        "",
        assignment_json(lists),
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
    ]


def generated_lines(current: Lists, proposed: Lists) -> list[str]:
    """Print a proposal as `--generate` does."""
    return [
        "Current partition replica assignment",
        assignment_json(current),
        "",
        "Proposed partition reassignment configuration",
        assignment_json(proposed),
    ]


def started_line(keys: Collection[TopicPartition]) -> str:
    """Say that reassignments have begun."""
    plural = "" if len(keys) == 1 else "s"
    return f"Successfully started partition reassignment{plural} for {_all_named(keys)}"


def cancelled_line(keys: Collection[TopicPartition]) -> str:
    """Say that reassignments were cancelled."""
    plural = "" if len(keys) == 1 else "s"
    return f"Successfully cancelled partition reassignment{plural} for: {_all_named(keys)}"


def error_lines(doing: str, details: Mapping[TopicPartition, str]) -> list[str]:
    """List what was refused, after the sentence that the stock tool begins with."""
    return [doing, *(f"{named(key)}: {details[key]}" for key in sorted(details))]


def clearing_lines(brokers: Collection[int], topics: Collection[str]) -> list[str]:
    """Say whose throttles are being cleared."""
    return [
        f"Clearing broker-level throttles on broker{_s(brokers)} {listed(sorted(brokers))}",
        f"Clearing topic-level throttles on topic{_s(topics)} {','.join(sorted(topics))}",
    ]


def plans_moving(targets: Sequence[PartitionTarget], state: ClusterState) -> Iterator[str]:
    """Yield the plans that already take partitions of a file to the lists that it names."""
    for target in targets:
        move = state.reassignments.get(target.key)
        if move is not None and move.target == target.replicas and not move.is_cancelled:
            yield move.plan


def _all_named(keys: Iterable[TopicPartition]) -> str:
    return ",".join(map(named, sorted(keys)))


def _s(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"
