"""One command to its recorded outcome: what is known of its id, the facts it needs, the domain, the size."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from drover.reassignment.decide import decide
from drover.reassignment.decision import Decision, Facts, refuse
from drover.reassignment.mend import partitions_to_see
from drover.reassignment.state import ClusterState
from drover.reassignment.way_out import has_lost_its_start
from drover.shard.fold import IDENTITY_RETENTION_MS, KnownCommand
from drover.shard.page import Page
from events.commands import Alter, AnyCommand, Mend, PartitionTarget
from events.partitions import TopicPartition
from events.records import Outcome, PartitionReference
from events.refusals import RefusalCode
from events.topics import TopicNames

Verdict = Literal["accepted", "refused", "duplicate", "held"]

MAX_DECISION_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where this shard stands and what it serves."""

    shard: int
    shards: int
    clusters: frozenset[str]
    topics: TopicNames

    @property
    def own_topics(self) -> frozenset[str]:
        """Drover's own topics, which are no targets unless a command says so."""
        return frozenset({*self.topics.commands, self.topics.events, self.topics.progress, self.topics.dead_letters})


@dataclass(frozen=True, slots=True)
class Position:
    """Where a command stands: its topic and its offset there."""

    topic: str
    offset: int


class Register:
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
            if name in state.held or self.digest((command.cluster, name)) is None
        )


def must_be_seen(command: AnyCommand, state: ClusterState) -> tuple[TopicPartition, ...]:
    """List the partitions of a command that cannot be decided unseen: those that Drover is not moving."""
    if isinstance(command, Mend):
        return partitions_to_see(command, state)
    moving = state.reassignments
    return tuple(
        target.key
        for target in _new_targets(command)
        if target.key not in moving or has_lost_its_start(moving[target.key])
    )


def worth_a_look(command: AnyCommand, state: ClusterState) -> tuple[TopicPartition, ...]:
    """List the partitions to look at before a command is decided.

    What is moving to another list than the one asked for is among them, since its new brokers must be alive.
    """
    if isinstance(command, Mend):
        return partitions_to_see(command, state)
    moving = state.reassignments
    return tuple(
        target.key
        for target in _new_targets(command)
        if target.key not in moving or moving[target.key].target != target.replicas or moving[target.key].is_cancelled
    )


def _new_targets(command: AnyCommand) -> Iterable[PartitionTarget]:
    if not isinstance(command, Alter) or command.queue:
        return ()
    return (target for target in command.partitions if target.replicas is not None)


def conclude(
    page: Page, command: AnyCommand, position: Position, place: Place, digest: bytes, unavailable: str | None
) -> int:
    """Decide a command now and record its outcome; returns how many bytes that adds to the record."""
    if command.cluster not in place.clusters:
        detail = (
            f"cluster {command.cluster} is not configured: add [clusters.{command.cluster}] and restart the workers"
        )
        decision = refuse(RefusalCode.UNKNOWN_CLUSTER, detail)
    else:
        state = page.ahead.cluster(command.cluster)
        decision = decide(command, state, _facts(page, command, state, place, unavailable))
    outcome = outcome_of(position, command, decision, digest=digest)
    size = len(msgspec.msgpack.encode((outcome, decision.events)))
    if size > MAX_DECISION_BYTES:
        detail = f"the decision takes {size} bytes, at most {MAX_DECISION_BYTES} are allowed: split the command"
        decision = refuse(RefusalCode.TOO_LARGE, detail)
        outcome = outcome_of(position, command, decision, digest=digest)
    page.outcomes.append(outcome)
    page.write_all(decision.events)
    return size


def _facts(page: Page, command: AnyCommand, state: ClusterState, place: Place, unavailable: str | None) -> Facts:
    if not isinstance(command, Alter | Mend):
        return Facts()
    track = page.track(command.cluster)
    keys = must_be_seen(command, state)
    sights = {key: track.fresh(key, page.now.monotonic_ms) for key in keys}
    unseen = [str(key) for key, sight in sights.items() if sight is None]
    if not worth_a_look(command, state):
        unavailable = None
    elif unavailable is None and unseen:
        unavailable = f"{len(unseen)} partitions, {unseen[0]} among them, could not be judged in time"
    return Facts(
        partitions={key: sight.facts for key, sight in sights.items() if sight is not None},
        moves=track.moves,
        live_brokers=track.live,
        min_isr=track.min_isr,
        unavailable=unavailable,
        own_topics=place.own_topics,
    )


def outcome_of(
    position: Position,
    command: AnyCommand,
    decision: Decision,
    *,
    verdict: Verdict | None = None,
    digest: bytes = b"",
    first_offset: int | None = None,
) -> Outcome:
    """Write down what became of a command."""
    judged: Verdict = verdict or ("refused" if decision.refused else "accepted")
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
    )
