"""From arrivals to decisions: id, size and shard first, then the decision; every command gets a recorded outcome."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from drover.decide.commands import looks_for
from drover.decide.decision import NO_LOOKS, Decision, Looks, refuse
from drover.events.codec import Malformed, command_digest
from drover.events.commands import TYPES_BY_TOPIC, AnyCommand
from drover.events.fields import ClusterName, Identifier
from drover.events.partitions import TopicPartition
from drover.events.records import Cursor, Outcome
from drover.events.refusals import RefusalCode
from drover.events.topics import shard_of
from drover.reconcile.batch import BatchBuilder
from drover.shard.deciding import CommandIndex, Position, conclude, outcome_of
from drover.shard.managed import ManagedClusters
from drover.shard.messages import Arrival
from drover.shard.scope import ShardScope

# Of one batch: each is written by itself.
MOST_DEAD_LETTERS = 1000
# A call begins within a second of its intent and ends within four more; after a takeover it is waited for as long.
MAX_CALL_WAIT_MS = 6000


@dataclass(slots=True)
class Intake:
    """The result of a run of arrivals."""

    taken: list[Arrival] = field(default_factory=list)
    forward: list[tuple[Arrival, int]] = field(default_factory=list)
    dead_letters: list[tuple[Arrival, str]] = field(default_factory=list)


def named_partitions(arrivals: Sequence[Arrival], clusters: ManagedClusters) -> dict[str, set[TopicPartition]]:
    """List per cluster the partitions that must be observed before these arrivals can be decided."""
    scope = clusters.scope
    named: dict[str, set[TopicPartition]] = {}
    for arrival in arrivals:
        command = arrival.command
        if not isinstance(command, Malformed) and command.cluster in scope.clusters and _is_here(command, scope):
            worth = looks_for(command, clusters.of(command.cluster).state).worth
            if worth:
                named.setdefault(command.cluster, set()).update(worth)
    return named


def decide_arrivals(
    batch: BatchBuilder,
    arrivals: Sequence[Arrival],
    clusters: ManagedClusters,
    index: CommandIndex,
    unavailable: Mapping[str, str],
) -> Intake:
    """Decide arrivals in order, each on the state that those before it have made, until the batch is full."""
    scope = clusters.scope
    intake = Intake()
    for arrival in arrivals:
        if batch.is_full or len(intake.dead_letters) >= MOST_DEAD_LETTERS:
            break
        command = _readable(arrival)
        if isinstance(command, Malformed):
            _refuse_malformed(batch, arrival, command, scope, intake)
        elif not _is_here(command, scope):
            _send_on(arrival, command, scope, intake)
        else:
            looks = _looks(command, clusters)
            if any((command.cluster, key) in batch.ended for key in looks.required):
                # What ended in this batch must be observed again first.
                break
            if _is_called(batch, command, looks, arrival, clusters):
                break
            position = Position(scope.topics.commands[arrival.topic_index], arrival.offset, arrival.timestamp_ms)
            _decide_one(batch, command, position, clusters, index, unavailable, looks)
        intake.taken.append(arrival)
    return intake


def refuse_too_large(
    batch: BatchBuilder, arrivals: Sequence[Arrival], clusters: ManagedClusters, detail: str
) -> Intake:
    """Take arrivals without deciding them: those that belong here are refused for what deciding them would write."""
    intake = Intake()
    for arrival in arrivals:
        command = _readable(arrival)
        if isinstance(command, Malformed):
            _refuse_malformed(batch, arrival, command, clusters.scope, intake)
        elif not _is_here(command, clusters.scope):
            _send_on(arrival, command, clusters.scope, intake)
        else:
            position = Position(
                clusters.scope.topics.commands[arrival.topic_index], arrival.offset, arrival.timestamp_ms
            )
            refused = refuse(RefusalCode.TOO_LARGE, detail)
            batch.add_outcome(outcome_of(position, command, refused, digest=command_digest(command)))
        intake.taken.append(arrival)
    return intake


def following(cursors: Sequence[Cursor], taken: Iterable[Arrival]) -> tuple[Cursor, ...]:
    """Move the cursors past the arrivals that a batch decides (R4); offsets that are skipped were proven empty."""
    offsets = [cursor.next_offset for cursor in cursors]
    for arrival in taken:
        offsets[arrival.topic_index] = arrival.offset + 1
    return tuple(Cursor(cursor.topic_id, offset) for cursor, offset in zip(cursors, offsets, strict=True))


def _is_called(
    batch: BatchBuilder, command: AnyCommand, looks: Looks, arrival: Arrival, clusters: ManagedClusters
) -> bool:
    """Whether a call is open about a partition to look at, a reorder's or an election's: no look counts before its end.

    A command waits a few seconds for that, and what comes after it waits with it; then it is refused.
    """
    if not looks.required or batch.at_ms - arrival.timestamp_ms > MAX_CALL_WAIT_MS:
        return False
    return clusters.of(command.cluster).observed.awaits_end(looks.required, batch.now.monotonic_ms)


def _looks(command: AnyCommand, clusters: ManagedClusters) -> Looks:
    if command.cluster not in clusters.scope.clusters:
        return NO_LOOKS
    return looks_for(command, clusters.of(command.cluster).state)


def _is_here(command: AnyCommand, scope: ShardScope) -> bool:
    return shard_of(command.cluster, scope.shards) == scope.shard


def _readable(arrival: Arrival) -> AnyCommand | Malformed:
    command = arrival.command
    if isinstance(command, Malformed) or type(command) in TYPES_BY_TOPIC[arrival.topic_index]:
        return command
    tag = command.__struct_config__.tag
    detail = f"a command of type {tag} does not belong on this topic"
    return Malformed(detail, id=command.id, cluster=command.cluster, by=command.by, type=str(tag))


def _send_on(arrival: Arrival, command: AnyCommand, scope: ShardScope, intake: Intake) -> None:
    if arrival.forwarded:
        intake.dead_letters.append((arrival, "a forwarded command is in a partition that is not its cluster's"))
    else:
        intake.forward.append((arrival, shard_of(command.cluster, scope.shards)))


def _refuse_malformed(
    batch: BatchBuilder, arrival: Arrival, malformed: Malformed, scope: ShardScope, intake: Intake
) -> None:
    """Dead-letter it; where id and cluster can be read, and the cluster lives here, record a refusal as well."""
    intake.dead_letters.append((arrival, malformed.detail))
    if not _is(malformed.cluster, ClusterName) or not _is(malformed.id, Identifier):
        return
    assert malformed.cluster is not None, "checked against the contract's pattern"
    assert malformed.id is not None, "checked against the contract's pattern"
    if shard_of(malformed.cluster, scope.shards) != scope.shard:
        return
    refused = refuse(RefusalCode.MALFORMED, malformed.detail)
    batch.add_outcome(
        Outcome(
            id=malformed.id,
            cluster=malformed.cluster,
            type=malformed.type or "unknown",
            by=malformed.by or "unknown",
            reason="",
            topic=scope.topics.commands[arrival.topic_index],
            offset=arrival.offset,
            verdict="refused",
            refusals=refused.refusals,
        )
    )


def _is(text: str | None, kind: object) -> bool:
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return False
    return True


def _decide_one(
    batch: BatchBuilder,
    command: AnyCommand,
    position: Position,
    clusters: ManagedClusters,
    index: CommandIndex,
    unavailable: Mapping[str, str],
    looks: Looks,
) -> None:
    """Decide one readable command that belongs here."""
    identity = (command.cluster, command.id)
    digest = command_digest(command)
    earlier = index.earlier(identity)
    first = index.deciding(identity) if earlier is None else earlier.digest
    if first == digest:
        offset = None if earlier is None else earlier.offset
        batch.add_outcome(outcome_of(position, command, Decision(), verdict="duplicate", first_offset=offset))
        return
    if first is not None:
        taken = index.owner(identity)
        detail = f"id {command.id} was used within the last 7 days for another command, {taken}: choose a new one"
        batch.add_outcome(outcome_of(position, command, refuse(RefusalCode.ID_REUSED, detail)))
        return
    conclude(batch, command, position, clusters, digest, unavailable.get(command.cluster), looks)
    index.enter(identity, digest, command.by)
