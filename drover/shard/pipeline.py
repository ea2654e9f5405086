"""The path of every command: each arrival becomes exactly one result, and `_record` alone records it.

A new command of this shard is decided by the capability that owns its type, on the state that earlier commands made.
One whose partitions must be observed first, or that waits for the end of a call, ends the run and is tried again with
the next batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from drover.decide.cancel import looked_through
from drover.decide.commands import decide, observations_needed
from drover.decide.decision import Decision, Facts, NeededObservations, refuse
from drover.events.bounds import shortened
from drover.events.cancelled_partitions import recorded_size
from drover.events.codec import Malformed, command_digest
from drover.events.commands import TYPES_BY_TOPIC, AnyCommand, Cancel
from drover.events.fields import ClusterName, Identifier
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.records import AnyEvent, Outcome
from drover.events.refusals import Refusal, RefusalCode
from drover.events.topics import shard_of
from drover.facts import PartitionFacts
from drover.fold.decided_commands import IDENTITY_RETENTION_MS, DecidedCommand, DecidedCommands
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.observations import FRESH_MS
from drover.shard.managed import ManagedCluster, ManagedClusters
from drover.shard.messages import Arrival
from drover.shard.scope import ShardScope

# A record of the log may have 8 MiB: a decision fits together with the earlier ones of its batch.
MAX_DECISION_BYTES = 6 * 1024 * 1024
# Per batch, since each is written by itself.
MOST_DEAD_LETTERS = 1000
# A call begins within a second of its intent and ends within four more, also that of a previous owner.
MAX_CALL_WAIT_MS = 6000


@dataclass(frozen=True, slots=True)
class Decided:
    """The capability that owns the command has decided it: accepted, at least in part, or refused."""

    outcome: Outcome
    events: tuple[AnyEvent, ...]
    # In bytes, as recorded.
    size: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The same command was decided before, in the record at `first_offset`, or in this one (None)."""

    command: AnyCommand
    first_offset: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The command was refused before any capability saw it; `takes_id` says whether its id is used up."""

    command: AnyCommand
    code: RefusalCode
    detail: str
    takes_id: bool = False


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The command belongs to another shard."""

    shard: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The record is no command that can be decided; `malformed` holds its readable fields, if any."""

    reason: str
    malformed: Malformed | None = None


Result = Decided | Duplicate | Refused | Forwarded | DeadLetter


@dataclass(slots=True)
class Taken:
    """The arrivals that a run has taken, and those of them to be forwarded or written as dead letters."""

    arrivals: list[Arrival] = field(default_factory=list)
    forward: list[tuple[Arrival, int]] = field(default_factory=list)
    dead_letters: list[tuple[Arrival, str]] = field(default_factory=list)


class CommandIndex:
    """The ids of decided commands by cluster: those in the log, and those of the batch under way (R5)."""

    def __init__(self, durable: DecidedCommands, at_ms: int) -> None:
        self._durable = durable
        self._at_ms = at_ms
        self._deciding: dict[tuple[str, str], tuple[bytes, str]] = {}

    def earlier(self, identity: tuple[str, str]) -> DecidedCommand | None:
        """Return the command in the log with this id, unless it is more than 7 days old."""
        earlier = self._durable.get(identity)
        return None if earlier is None or earlier.at_ms <= self._at_ms - IDENTITY_RETENTION_MS else earlier

    def deciding(self, identity: tuple[str, str]) -> bytes | None:
        """Return the digest of the command with this id in the batch under way; None without one."""
        digest, _ = self._deciding.get(identity, (None, ""))
        return digest

    def owner(self, identity: tuple[str, str]) -> str:
        """Describe the command that has an id already: its author, and where its outcome is."""
        earlier = self.earlier(identity)
        if earlier is None:
            return f"of {self._deciding[identity][1]}, decided in this record"
        return f"of {earlier.by or 'somebody'}, decided at offset {earlier.offset} of the log"

    def enter(self, identity: tuple[str, str], digest: bytes, by: str) -> None:
        """Remember a command that the batch under way decides."""
        self._deciding[identity] = (digest, by)


def partitions_to_observe(arrivals: Sequence[Arrival], clusters: ManagedClusters) -> dict[str, set[TopicPartition]]:
    """List per cluster the partitions that must be observed before these arrivals can be decided."""
    scope = clusters.scope
    named: dict[str, set[TopicPartition]] = {}
    for arrival in arrivals:
        command = arrival.command
        if isinstance(command, Malformed) or command.cluster not in scope.clusters:
            continue
        if shard_of(command.cluster, scope.shards) == scope.shard:
            worth = observations_needed(command, clusters.of(command.cluster).state).worth
            if worth:
                named.setdefault(command.cluster, set()).update(worth)
    return named


class Pipeline:
    """Takes a run of arrivals into one batch.

    `unavailable` says why a cluster could not be observed. With `refusal` every command of this shard is refused for
    that reason.
    """

    def __init__(
        self,
        batch: BatchBuilder,
        clusters: ManagedClusters,
        decided: DecidedCommands,
        unavailable: Mapping[str, str],
        refusal: str | None = None,
    ) -> None:
        self._batch = batch
        self._clusters = clusters
        self._scope: ShardScope = clusters.scope
        self._index = CommandIndex(decided, batch.at_ms)
        self._unavailable = unavailable
        self._refusal = refusal
        self._taken = Taken()

    def run(self, arrivals: Sequence[Arrival]) -> Taken:
        """Take arrivals in their order, until the batch is full or one must wait; returns those that were taken."""
        for arrival in arrivals:
            if self._batch.is_full or len(self._taken.dead_letters) >= MOST_DEAD_LETTERS:
                break
            result = self._result(arrival)
            if result is None:
                break
            self._record(arrival, result)
        return self._taken

    # -- the result of an arrival

    def _result(self, arrival: Arrival) -> Result | None:
        command, scope = arrival.command, self._scope
        if isinstance(command, Malformed):
            return DeadLetter(command.detail, command)
        if type(command) not in TYPES_BY_TOPIC[arrival.topic_index]:
            tag = str(command.__struct_config__.tag)
            detail = f"a command of type {tag} does not belong on this topic"
            return DeadLetter(detail, Malformed(detail, command.id, command.cluster, command.by, tag))
        shard = shard_of(command.cluster, scope.shards)
        if shard != scope.shard:
            if arrival.forwarded:
                return DeadLetter("a forwarded command is in a partition that is not its cluster's")
            return Forwarded(shard)
        if self._refusal is not None:
            return Refused(command, RefusalCode.TOO_LARGE, self._refusal, takes_id=True)
        return self._repeated(command) or self._decided(command, arrival)

    def _repeated(self, command: AnyCommand) -> Duplicate | Refused | None:
        """Return the result for a command with a used id or an unknown cluster; None for any other."""
        identity = (command.cluster, command.id)
        earlier = self._index.earlier(identity)
        first = self._index.deciding(identity) if earlier is None else earlier.digest
        if first is not None and first == command_digest(command):
            return Duplicate(command, None if earlier is None else earlier.offset)
        if first is not None:
            owner = self._index.owner(identity)
            detail = f"id {command.id} was used within the last 7 days for another command, {owner}: choose a new one"
            return Refused(command, RefusalCode.ID_REUSED, detail)
        if command.cluster not in self._scope.clusters:
            name = command.cluster
            detail = f"cluster {name} is not configured: add [clusters.{name}] and restart the workers"
            # Its id is not remembered, since names of clusters can be invented without end.
            return Refused(command, RefusalCode.UNKNOWN_CLUSTER, detail)
        return None

    def _decided(self, command: AnyCommand, arrival: Arrival) -> Decided | Refused | None:
        cluster = self._clusters.of(command.cluster)
        needed = observations_needed(command, cluster.state)
        if self._must_wait(command, needed, arrival, cluster):
            return None
        if isinstance(command, Cancel):
            self._batch.looked_through += looked_through(command, cluster.state)
        decision = decide(command, cluster.state, self._facts(cluster, needed, arrival))
        outcome = _outcome_of(command, self._topic(arrival), arrival.offset, decision, digest=command_digest(command))
        size = recorded_size(outcome, decision.events)
        if size <= MAX_DECISION_BYTES:
            return Decided(outcome, decision.events, size)
        detail = f"the decision takes {size} bytes, at most {MAX_DECISION_BYTES} are allowed: split the command"
        return Refused(command, RefusalCode.TOO_LARGE, detail, takes_id=True)

    def _must_wait(
        self, command: AnyCommand, needed: NeededObservations, arrival: Arrival, cluster: ManagedCluster
    ) -> bool:
        """Whether the command must wait for observations of its partitions.

        A partition whose move has ended in this batch must be observed again. While a reorder or an election of a
        partition is under way, no observation of it counts: the command waits a few seconds for the end, and is refused
        after that.
        """
        if not needed.required:
            return False
        if any((command.cluster, key) in self._batch.ended for key in needed.required):
            return True
        if self._batch.at_ms - arrival.timestamp_ms > MAX_CALL_WAIT_MS:
            return False
        return cluster.observed.awaits_end(needed.required, self._batch.now.monotonic_ms)

    def _facts(self, cluster: ManagedCluster, needed: NeededObservations, arrival: Arrival) -> Facts:
        now_ms, observed = self._batch.now.monotonic_ms, cluster.observed

        def recent(key: TopicPartition) -> PartitionFacts | None:
            # Copying partitions are observed once in FRESH_MS.
            seen = observed.fresh(key, now_ms, 2 * FRESH_MS)
            return None if seen is None else seen.facts

        fresh = {key: observed.fresh(key, now_ms) for key in needed.required}
        unseen = [str(key) for key, seen in fresh.items() if seen is None]
        unavailable = self._unavailable.get(cluster.state.name) if needed.worth else None
        if needed.worth and unavailable is None and unseen:
            unavailable = f"{len(unseen)} partitions, {unseen[0]} among them, could not be observed in time"
        return Facts(
            partitions={key: seen.facts for key, seen in fresh.items() if seen is not None},
            moves=observed.moves,
            live_brokers=observed.live,
            min_isr=observed.min_isr,
            unavailable=unavailable,
            own_topics=self._scope.own_topics,
            recent=recent,
            appended_ms=arrival.timestamp_ms,
            decided_ms=self._batch.at_ms,
            unreachable=observed.unreachable,
            registered=observed.registered,
            directories=observed.directories,
        )

    # -- recording the result

    def _record(self, arrival: Arrival, result: Result) -> None:
        """Record the result of one arrival; only this function adds outcomes to a batch."""
        self._taken.arrivals.append(arrival)
        if isinstance(result, Forwarded):
            self._taken.forward.append((arrival, result.shard))
            return
        if isinstance(result, DeadLetter):
            self._taken.dead_letters.append((arrival, result.reason))
            if not self._is_answered(result):
                return
        outcome = self._outcome(arrival, result)
        if isinstance(result, Decided):
            self._batch.add_decision(outcome, result.events, result.size)
        else:
            self._batch.add_outcome(outcome)
        if outcome.digest:
            self._index.enter((outcome.cluster, outcome.id), outcome.digest, outcome.by)

    def _topic(self, arrival: Arrival) -> str:
        return self._scope.topics.commands[arrival.topic_index]

    def _is_answered(self, letter: DeadLetter) -> bool:
        """Whether a dead letter also has an outcome: its id and its cluster, one of this shard, are readable."""
        malformed = letter.malformed
        if malformed is None or not _is(malformed.cluster, ClusterName) or not _is(malformed.id, Identifier):
            return False
        return shard_of(malformed.cluster or "", self._scope.shards) == self._scope.shard

    def _outcome(self, arrival: Arrival, result: Decided | Duplicate | Refused | DeadLetter) -> Outcome:
        topic = self._topic(arrival)
        match result:
            case Decided(outcome=outcome):
                return outcome
            case Refused(command, code, detail, takes_id):
                digest = command_digest(command) if takes_id else b""
                return _outcome_of(command, topic, arrival.offset, refuse(code, detail), digest=digest)
            case Duplicate(command, first_offset):
                accepted = _outcome_of(command, topic, arrival.offset, Decision())
                return msgspec.structs.replace(accepted, verdict="duplicate", first_offset=first_offset)
            case DeadLetter(_, malformed):
                assert malformed is not None, "only dead letters with an id are answered"
                return _outcome_of_malformed(malformed, topic, arrival.offset)


def _outcome_of(command: AnyCommand, topic: str, offset: int, decision: Decision, digest: bytes = b"") -> Outcome:
    return Outcome(
        id=command.id,
        cluster=command.cluster,
        type=str(command.__struct_config__.tag),
        by=command.by,
        reason=command.reason,
        topic=topic,
        offset=offset,
        verdict="refused" if decision.refused else "accepted",
        digest=digest,
        plan=decision.plan,
        accepted=tuple(PartitionReference(*key) for key in decision.accepted),
        unchanged=tuple(PartitionReference(*key) for key in decision.unchanged),
        refusals=tuple(map(_bounded, decision.refusals)),
        deferred=decision.deferred,
        remarks=decision.remarks,
    )


def _outcome_of_malformed(malformed: Malformed, topic: str, offset: int) -> Outcome:
    return Outcome(
        id=malformed.id or "",
        cluster=malformed.cluster or "",
        type=malformed.type or "unknown",
        by=malformed.by or "unknown",
        reason="",
        topic=topic,
        offset=offset,
        verdict="refused",
        refusals=(Refusal(RefusalCode.MALFORMED, malformed.detail),),
    )


def _bounded(refusal: Refusal) -> Refusal:
    """Shorten the detail of a refusal, which may quote the command and is kept for ever."""
    detail = shortened(refusal.detail)
    return refusal if detail == refusal.detail else msgspec.structs.replace(refusal, detail=detail)


def _is(text: str | None, kind: object) -> bool:
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return False
    return True
