"""From one command to its recorded outcome: its id, the facts it needs, the decision, the size."""

from typing import Literal

import msgspec

from drover.decide.cancel import looked_through
from drover.decide.commands import decide
from drover.decide.decision import Decision, Facts, Looks, refuse
from drover.events.bounds import shortened
from drover.events.commands import AnyCommand, Cancel
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.records import Outcome
from drover.events.references import recorded_size
from drover.events.refusals import Refusal, RefusalCode
from drover.facts import PartitionFacts
from drover.fold.known import IDENTITY_RETENTION_MS, KnownCommand, KnownCommands
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.observations import FRESH_MS
from drover.shard.managed import ManagedCluster, ManagedClusters
from drover.shard.scope import ShardScope

OutcomeVerdict = Literal["accepted", "refused", "duplicate"]

# A record of the log may have 8 MiB: a decision fits, with what a batch has decided before it.
MAX_DECISION_BYTES = 6 * 1024 * 1024


class Position(msgspec.Struct, frozen=True):
    """The position of a command: its topic, its offset there, and when it was written, by the broker's clock."""

    topic: str
    offset: int
    appended_ms: int


class CommandIndex:
    """The known command ids by cluster: those in the log, and those of the batch under way (R5)."""

    def __init__(self, durable: KnownCommands, at_ms: int) -> None:
        self._durable = durable
        self._at_ms = at_ms
        self._deciding: dict[tuple[str, str], tuple[bytes, str]] = {}

    def earlier(self, identity: tuple[str, str]) -> KnownCommand | None:
        """Return what the log knows of an id, unless it is more than 7 days old."""
        earlier = self._durable.get(identity)
        return None if earlier is None or earlier.at_ms <= self._at_ms - IDENTITY_RETENTION_MS else earlier

    def deciding(self, identity: tuple[str, str]) -> bytes | None:
        """Return the digest of the command of the batch under way that has an id; None if none has."""
        digest, _ = self._deciding.get(identity, (None, ""))
        return digest

    def owner(self, identity: tuple[str, str]) -> str:
        """Name whose command has an id already: by whom, and where its outcome is."""
        earlier = self.earlier(identity)
        if earlier is None:
            return f"of {self._deciding[identity][1]}, decided in this record"
        return f"of {earlier.by or 'somebody'}, decided at offset {earlier.offset} of the log"

    def enter(self, identity: tuple[str, str], digest: bytes, by: str) -> None:
        """Remember a command that the batch under way decides."""
        self._deciding[identity] = (digest, by)


def conclude(
    batch: BatchBuilder,
    command: AnyCommand,
    position: Position,
    clusters: ManagedClusters,
    digest: bytes,
    unavailable: str | None,
    looks: Looks,
) -> None:
    """Decide a command now and record its outcome."""
    scope = clusters.scope
    if command.cluster not in scope.clusters:
        detail = (
            f"cluster {command.cluster} is not configured: add [clusters.{command.cluster}] and restart the workers"
        )
        refused = refuse(RefusalCode.UNKNOWN_CLUSTER, detail)
        # Not remembered, since anybody can think of names: a repetition is refused again.
        batch.add_outcome(outcome_of(position, command, refused))
        return
    cluster = clusters.of(command.cluster)
    facts = _facts(batch, cluster, looks, scope, unavailable, position)
    if isinstance(command, Cancel):
        batch.looked_through += looked_through(command, cluster.state)
    decision = decide(command, cluster.state, facts)
    outcome = outcome_of(position, command, decision, digest=digest)
    size = recorded_size(outcome, decision.events)
    if size > MAX_DECISION_BYTES:
        detail = f"the decision takes {size} bytes, at most {MAX_DECISION_BYTES} are allowed: split the command"
        decision = refuse(RefusalCode.TOO_LARGE, detail)
        outcome = outcome_of(position, command, decision, digest=digest)
    batch.add_outcome(outcome)
    batch.emit_all(decision.events)


def _facts(
    batch: BatchBuilder,
    cluster: ManagedCluster,
    looks: Looks,
    scope: ShardScope,
    unavailable: str | None,
    position: Position,
) -> Facts:
    now_ms, observed = batch.now.monotonic_ms, cluster.observed

    def recent(key: TopicPartition) -> PartitionFacts | None:
        # What copies is looked at once in FRESH_MS.
        seen = observed.fresh(key, now_ms, 2 * FRESH_MS)
        return None if seen is None else seen.facts

    found = {key: observed.fresh(key, now_ms) for key in looks.required}
    unseen = [str(key) for key, seen in found.items() if seen is None]
    if not looks.worth:
        unavailable = None
    elif unavailable is None and unseen:
        unavailable = f"{len(unseen)} partitions, {unseen[0]} among them, could not be observed in time"
    return Facts(
        partitions={key: seen.facts for key, seen in found.items() if seen is not None},
        moves=observed.moves,
        live_brokers=observed.live,
        min_isr=observed.min_isr,
        unavailable=unavailable,
        own_topics=scope.own_topics,
        recent=recent,
        appended_ms=position.appended_ms,
        decided_ms=batch.at_ms,
        unreachable=observed.unreachable,
        registered=observed.registered,
        directories=observed.directories,
    )


def outcome_of(
    position: Position,
    command: AnyCommand,
    decision: Decision,
    *,
    verdict: OutcomeVerdict | None = None,
    digest: bytes = b"",
    first_offset: int | None = None,
) -> Outcome:
    """Make the outcome of a command."""
    judged: OutcomeVerdict = verdict or ("refused" if decision.refused else "accepted")
    return Outcome(
        id=command.id,
        cluster=command.cluster,
        type=str(command.__struct_config__.tag),
        by=command.by,
        reason=command.reason,
        topic=position.topic,
        offset=position.offset,
        verdict=judged,
        digest=digest,
        plan=decision.plan,
        accepted=tuple(PartitionReference(*key) for key in decision.accepted),
        unchanged=tuple(PartitionReference(*key) for key in decision.unchanged),
        refusals=tuple(map(_bounded, decision.refusals)),
        first_offset=first_offset,
        held_off=decision.held_off,
        remarks=decision.remarks,
    )


def _bounded(refusal: Refusal) -> Refusal:
    """Cut the words of a refusal, which may quote the command, to what is kept for ever."""
    detail = shortened(refusal.detail)
    return refusal if detail == refusal.detail else msgspec.structs.replace(refusal, detail=detail)
