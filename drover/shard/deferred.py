"""Deferred commands: kept in the log, so that cursors pass them, until the commands they name are decided."""

from functools import partial

from drover.decide.commands import looks_for
from drover.decide.decision import Decision, Looks, refuse, refuse_partition
from drover.decide.deferral import MAX_DEFERRAL_MS, Released
from drover.decide.withdrawing import without
from drover.events.codec import command_digest
from drover.events.commands import AnyCommand
from drover.events.partitions import TopicPartition
from drover.events.refusals import RefusalCode
from drover.events.waiting import CommandHeld, CommandReleased
from drover.reconcile.batch import BatchBuilder
from drover.shard import partly
from drover.shard.deciding import CommandIndex, Position, conclude, outcome_of
from drover.shard.managed import ManagedCluster, ManagedClusters
from drover.shard.messages import Arrival
from drover.state.scheduling import DeferredCommand

# Deferred commands are part of the state: a client that names commands that never come must not fill it.
MAX_DEFERRED = 1000
MAX_DEFERRED_BYTES = 8 * 1024 * 1024


def defer(
    batch: BatchBuilder,
    command: AnyCommand,
    arrival: Arrival,
    position: Position,
    digest: bytes,
    cluster: ManagedCluster,
    undecided: tuple[str, ...],
) -> None:
    """Defer a command, with the outcome `held` for now; it is kept as its client sent it."""
    kept = DeferredCommand(arrival.payload, position.topic, position.offset, batch.at_ms, headers=arrival.headers)
    full = _why_full(cluster, kept.size)
    if full is not None:
        detail = f"{full} wait for others in {command.cluster} already: send it again under a new id"
        refused = refuse(RefusalCode.AFTER_UNDECIDED, detail)
        batch.add_outcome(outcome_of(position, command, refused, digest=digest))
        cluster.deferral.decided(command.id)
        return
    batch.add_outcome(outcome_of(position, command, Decision(), verdict="held", digest=digest))
    batch.emit(
        CommandHeld(
            cluster=command.cluster,
            id=command.id,
            payload=kept.payload,
            topic=kept.topic,
            offset=kept.offset,
            headers=kept.headers,
        )
    )
    cluster.deferral.defer(command, kept.size, undecided)


def _why_full(cluster: ManagedCluster, size: int) -> str | None:
    if len(cluster.state.deferred) >= MAX_DEFERRED:
        return f"{MAX_DEFERRED} commands"
    if cluster.deferral.bytes + size > MAX_DEFERRED_BYTES:
        return f"commands of {cluster.deferral.bytes} bytes, of {MAX_DEFERRED_BYTES} in all,"
    return None


def release(
    batch: BatchBuilder,
    cluster: ManagedCluster,
    clusters: ManagedClusters,
    index: CommandIndex,
    looked_for: frozenset[tuple[str, str]],
    unavailable: str | None,
) -> None:
    """Decide each deferred command of a cluster whose turn has come, oldest first; refuse what has waited too long.

    When the batch is full, the others wait for the next one. `looked_for` are the commands, by cluster and id, for
    which the cluster was observed before this batch began. One that needs an observation and is not among them waits
    for the next batch.
    """
    if not cluster.state.deferred or cluster.state.partly_decided:
        return
    cluster.deferral.count(partial(index.undecided, state=cluster.state))
    for released in cluster.deferral.ready():
        if batch.is_full or cluster.state.partly_decided:
            return
        _decide(batch, released, cluster, clusters, looked_for, unavailable)
    for released, undecided in cluster.deferral.expired(batch.at_ms):
        if batch.is_full or cluster.state.partly_decided:
            return
        _refuse(batch, released, cluster, undecided)


def _decide(
    batch: BatchBuilder,
    released: Released,
    cluster: ManagedCluster,
    clusters: ManagedClusters,
    looked_for: frozenset[tuple[str, str]],
    unavailable: str | None,
) -> None:
    withdrawn = released.deferred.withdrawn
    command = without(released.command, frozenset(withdrawn))
    looks = looks_for(command, cluster.state)
    if not _may_be_decided(batch, command, looks, clusters, looked_for):
        return
    _release(batch, released, cluster)
    digest = command_digest(released.command)
    position = _position(released)
    lost = tuple(refuse_partition(key, RefusalCode.WITHDRAWN, f"{key} was withdrawn by a cancel") for key in withdrawn)
    conclude(batch, command, position, clusters, digest, unavailable, looks, lost)
    cluster.deferral.decided(command.id)


def _may_be_decided(
    batch: BatchBuilder,
    command: AnyCommand,
    looks: Looks,
    clusters: ManagedClusters,
    looked_for: frozenset[tuple[str, str]],
) -> bool:
    if command.cluster not in clusters.scope.clusters or not looks.worth:
        return True
    if (command.cluster, command.id) not in looked_for:
        return False
    # What has ended in this batch must be observed again, and what a call is open about once it has ended.
    if any((command.cluster, key) in batch.ended for key in looks.required):
        return False
    return not clusters.of(command.cluster).observed.awaits_end(looks.required, batch.now.monotonic_ms)


def _refuse(batch: BatchBuilder, released: Released, cluster: ManagedCluster, undecided: tuple[str, ...]) -> None:
    command = released.command
    detail = (
        f"{', '.join(undecided)} in `after` was not decided within {MAX_DEFERRAL_MS // 1000} s: send it first, then "
        "this command again under a new id"
    )
    _release(batch, released, cluster)
    refused = refuse(RefusalCode.AFTER_UNDECIDED, detail)
    batch.add_outcome(outcome_of(_position(released), command, refused, digest=command_digest(command)))
    cluster.deferral.decided(command.id)


def _release(batch: BatchBuilder, released: Released, cluster: ManagedCluster) -> None:
    command = released.command
    batch.emit(CommandReleased(cluster=command.cluster, id=command.id))
    cluster.deferral.released(command.id, released.deferred.size)


def _position(released: Released) -> Position:
    # When it was deferred is close to when it was written, and never far before that.
    return Position(released.deferred.topic, released.deferred.offset, released.deferred.since_ms)


def due(clusters: ManagedClusters, index: CommandIndex) -> dict[tuple[str, str], tuple[TopicPartition, ...]]:
    """List the deferred commands whose turn has come, with the partitions to observe for each, by cluster and id.

    While a command is decided in several records, its next part is what comes next.
    """
    found: dict[tuple[str, str], tuple[TopicPartition, ...]] = {}
    for name in clusters.with_unfinished():
        cluster = clusters.of(name)
        if name not in clusters.scope.clusters:
            continue
        needed = partly.looks_needed(cluster)
        if needed is not None:
            found[name, needed[0]] = needed[1].worth
        if not cluster.state.deferred or cluster.state.partly_decided:
            continue
        cluster.deferral.count(partial(index.undecided, state=cluster.state))
        for released in cluster.deferral.due():
            looks = looks_for(released.command, cluster.state)
            if looks.worth:
                found[name, released.command.id] = looks.worth
    return found
