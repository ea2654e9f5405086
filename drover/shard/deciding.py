"""One command to its recorded outcome: what is known of its id, the facts it needs, the domain, the size."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from drover.capability.batch import BatchBuilder
from drover.capability.decision import Decision, Facts, refuse
from drover.capability.observations import FRESH_MS, ObservationCache
from drover.facts import PartitionFacts
from drover.reassignment.cancellation import has_lost_its_start
from drover.shard.decide import decide
from drover.shard.fold import IDENTITY_RETENTION_MS, KnownCommand
from drover.shard.managed import ManagedClusters
from drover.shard.scope import ShardScope
from drover.state.cluster import ClusterState
from drover.unmanaged.repair import partitions_to_see
from events.commands import Alter, AnyCommand, Mend
from events.partitions import TopicPartition
from events.records import Outcome, PartitionReference
from events.refusals import RefusalCode

OutcomeVerdict = Literal["accepted", "refused", "duplicate", "held"]

MAX_DECISION_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Position:
    """Where a command stands: its topic and its offset there."""

    topic: str
    offset: int


class CommandIndex:
    """What is known of ids, by cluster: from the log, and from the record being written (R5)."""

    def __init__(self, durable: Mapping[tuple[str, str], KnownCommand], at_ms: int) -> None:
        self._durable = durable
        self._at_ms = at_ms
        self._deciding: dict[tuple[str, str], bytes] = {}

    def earlier(self, identity: tuple[str, str]) -> KnownCommand | None:
        """Return what the log knows of an id, unless that is too old to count."""
        earlier = self._durable.get(identity)
        return None if earlier is None or earlier.at_ms <= self._at_ms - IDENTITY_RETENTION_MS else earlier

    def digest(self, identity: tuple[str, str]) -> bytes | None:
        """Return the digest of the command that has an id already; None if the id is free."""
        earlier = self.earlier(identity)
        return self._deciding.get(identity) if earlier is None else earlier.digest

    def enter(self, identity: tuple[str, str], digest: bytes) -> None:
        """Remember a command that the record being written decides or holds."""
        self._deciding[identity] = digest

    def undecided(self, command: AnyCommand, state: ClusterState) -> tuple[str, ...]:
        """List what a command names in `after` and that has not been decided: unknown, or held itself."""
        return tuple(
            name
            for name in dict.fromkeys(command.after)
            if name in state.deferred or self.digest((command.cluster, name)) is None
        )


@dataclass(frozen=True, slots=True)
class Looks:
    """Which partitions to look at before a command is decided, as the state is now.

    `worth` are worth a look: what is moving to another list than the one asked for is among them, since its new brokers
    must be alive. `required` are those of them that cannot be decided unseen: Drover is not moving them.
    """

    worth: tuple[TopicPartition, ...] = ()
    required: tuple[TopicPartition, ...] = ()


NO_LOOKS = Looks()


def looks_for(command: AnyCommand, state: ClusterState) -> Looks:
    """Say which partitions a command needs looked at."""
    if isinstance(command, Mend):
        keys = partitions_to_see(command, state)
        return Looks(keys, keys)
    if not isinstance(command, Alter) or command.queue:
        return NO_LOOKS
    worth: list[TopicPartition] = []
    required: list[TopicPartition] = []
    for target in command.partitions:
        if target.replicas is None:
            continue
        key = target.key
        moving = state.reassignments.get(key)
        if moving is None:
            worth.append(key)
            required.append(key)
            continue
        if has_lost_its_start(moving):
            required.append(key)
        if moving.target != target.replicas or moving.is_cancelled:
            worth.append(key)
    return Looks(tuple(worth), tuple(required))


def conclude(
    batch: BatchBuilder,
    command: AnyCommand,
    position: Position,
    clusters: ManagedClusters,
    digest: bytes,
    unavailable: str | None,
    looks: Looks,
) -> int:
    """Decide a command now and record its outcome; returns how many bytes that adds to the batch."""
    scope = clusters.scope
    if command.cluster not in scope.clusters:
        detail = (
            f"cluster {command.cluster} is not configured: add [clusters.{command.cluster}] and restart the workers"
        )
        decision = refuse(RefusalCode.UNKNOWN_CLUSTER, detail)
    else:
        cluster = clusters.of(command.cluster)
        decision = decide(command, cluster.state, _facts(batch, cluster.observed, looks, scope, unavailable))
    outcome = outcome_of(position, command, decision, digest=digest)
    size = len(msgspec.msgpack.encode((outcome, decision.events)))
    if size > MAX_DECISION_BYTES:
        detail = f"the decision takes {size} bytes, at most {MAX_DECISION_BYTES} are allowed: split the command"
        decision = refuse(RefusalCode.TOO_LARGE, detail)
        outcome = outcome_of(position, command, decision, digest=digest)
    batch.outcomes.append(outcome)
    batch.emit_all(decision.events)
    return size


def _facts(
    batch: BatchBuilder, observed: ObservationCache, looks: Looks, scope: ShardScope, unavailable: str | None
) -> Facts:
    now_ms = batch.now.monotonic_ms

    def recent(key: TopicPartition) -> PartitionFacts | None:
        # What copies is looked at once in FRESH_MS.
        seen = observed.fresh(key, now_ms, 2 * FRESH_MS)
        return None if seen is None else seen.facts

    found = {key: observed.fresh(key, now_ms) for key in looks.required}
    unseen = [str(key) for key, seen in found.items() if seen is None]
    if not looks.worth:
        unavailable = None
    elif unavailable is None and unseen:
        unavailable = f"{len(unseen)} partitions, {unseen[0]} among them, could not be judged in time"
    return Facts(
        partitions={key: seen.facts for key, seen in found.items() if seen is not None},
        moves=observed.moves,
        live_brokers=observed.live,
        min_isr=observed.min_isr,
        unavailable=unavailable,
        own_topics=scope.own_topics,
        recent=recent,
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
    """Write down what became of a command."""
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
        refusals=decision.refusals,
        first_offset=first_offset,
        held_off=decision.held_off,
    )
