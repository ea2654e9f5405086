"""Commands to decisions: identity, size and place first, then the domain; every command gets its recorded outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from drover.reassignment.decide import decide
from drover.reassignment.decision import Decision, Facts, refuse
from drover.reassignment.mend import partitions_to_see
from drover.reassignment.state import ClusterState
from drover.shard.fold import IDENTITY_RETENTION_MS, KnownCommand, ShardState
from drover.shard.messages import Arrival
from drover.shard.page import Page
from events.codec import Malformed, command_digest
from events.commands import TYPES_BY_TOPIC, Alter, AnyCommand, ClusterName, Identifier, Mend
from events.partitions import TopicPartition
from events.records import Outcome, PartitionReference
from events.refusals import RefusalCode
from events.topics import TopicNames, shard_of

Verdict = Literal["accepted", "refused", "duplicate"]

MAX_DECISION_BYTES = 4 * 1024 * 1024
CLOSE_BYTES = 1024 * 1024


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


@dataclass(slots=True)
class Intake:
    """What came of a run of arrivals."""

    taken: list[Arrival] = field(default_factory=list)
    forward: list[tuple[Arrival, int]] = field(default_factory=list)
    dead_letters: list[tuple[Arrival, str]] = field(default_factory=list)


def named_partitions(
    arrivals: Sequence[Arrival], place: Place, ahead: ShardState
) -> dict[str, frozenset[TopicPartition]]:
    """List per cluster the partitions that must be seen before these arrivals can be decided.

    What Drover is moving already needs no look: the answer follows from the state.
    """
    named: dict[str, set[TopicPartition]] = {}
    for arrival in arrivals:
        command = arrival.command
        if isinstance(command, Alter | Mend) and command.cluster in place.clusters and _is_here(command, place):
            named.setdefault(command.cluster, set()).update(_to_see(command, ahead.cluster(command.cluster)))
    return {cluster: frozenset(keys) for cluster, keys in named.items() if keys}


def _to_see(command: AnyCommand, state: ClusterState) -> tuple[TopicPartition, ...]:
    """List the partitions that a command is decided by; what Drover is moving follows from the state."""
    match command:
        case Alter():
            return tuple(target.key for target in command.partitions if target.key not in state.reassignments)
        case Mend():
            return partitions_to_see(command, state)
        case _:
            return ()


def decide_arrivals(
    page: Page,
    arrivals: Sequence[Arrival],
    place: Place,
    known: Mapping[tuple[str, str], KnownCommand],
    unavailable: Mapping[str, str],
) -> Intake:
    """Decide arrivals in order, each on the state that those before it have made, until about 1 MiB is full."""
    intake = Intake()
    deciding: dict[tuple[str, str], bytes] = {}
    size = 0
    for arrival in arrivals:
        if size >= CLOSE_BYTES or _names_what_has_just_ended(page, arrival):
            break
        intake.taken.append(arrival)
        command = _readable(arrival)
        if isinstance(command, Malformed):
            _refuse_malformed(page, arrival, command, place, intake)
        elif not _is_here(command, place):
            _send_on(arrival, command, place, intake)
        else:
            size += _decide_one(page, arrival, command, place, (known, deciding), unavailable)
    return intake


def _names_what_has_just_ended(page: Page, arrival: Arrival) -> bool:
    """Whether a partition's reassignment ended in this very record, so that the cluster must be seen again first."""
    command = arrival.command
    if not isinstance(command, Alter) or not page.ended:
        return False
    ended = [target.key for target in command.partitions if (command.cluster, target.key) in page.ended]
    # Only of a cluster that lives here: to ask for the state of another one would make it live here too.
    return any(key not in page.ahead.cluster(command.cluster).reassignments for key in ended)


def _is_here(command: AnyCommand, place: Place) -> bool:
    return shard_of(command.cluster, place.shards) == place.shard


def _readable(arrival: Arrival) -> AnyCommand | Malformed:
    command = arrival.command
    if isinstance(command, Malformed) or type(command) in TYPES_BY_TOPIC[arrival.topic_index]:
        return command
    tag = command.__struct_config__.tag
    detail = f"a command of type {tag} does not belong on this topic"
    return Malformed(detail, id=command.id, cluster=command.cluster, by=command.by, type=str(tag))


def _send_on(arrival: Arrival, command: AnyCommand, place: Place, intake: Intake) -> None:
    if arrival.forwarded:
        intake.dead_letters.append((arrival, "a forwarded command stands in a partition that is not its cluster's"))
    else:
        intake.forward.append((arrival, shard_of(command.cluster, place.shards)))


def _refuse_malformed(page: Page, arrival: Arrival, malformed: Malformed, place: Place, intake: Intake) -> None:
    """Dead-letter it; where id and cluster can be read, and the cluster lives here, record a refusal as well."""
    intake.dead_letters.append((arrival, malformed.detail))
    if not _is(malformed.cluster, ClusterName) or not _is(malformed.id, Identifier):
        return
    assert malformed.cluster is not None, "checked against the contract's pattern"
    assert malformed.id is not None, "checked against the contract's pattern"
    if shard_of(malformed.cluster, place.shards) != place.shard:
        return
    refused = refuse(RefusalCode.MALFORMED, malformed.detail)
    page.outcomes.append(
        Outcome(
            id=malformed.id,
            cluster=malformed.cluster,
            type=malformed.type or "unknown",
            by=malformed.by or "unknown",
            reason="",
            topic=place.topics.commands[arrival.topic_index],
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
    page: Page,
    arrival: Arrival,
    command: AnyCommand,
    place: Place,
    known: tuple[Mapping[tuple[str, str], KnownCommand], dict[tuple[str, str], bytes]],
    unavailable: Mapping[str, str],
) -> int:
    """Decide one readable command that belongs here; returns how many bytes it adds to the record."""
    durable, deciding = known
    identity = (command.cluster, command.id)
    digest = command_digest(command)
    earlier = durable.get(identity)
    if earlier is not None and earlier.at_ms <= page.at_ms - IDENTITY_RETENTION_MS:
        earlier = None
    first = earlier.digest if earlier is not None else deciding.get(identity)
    if first == digest:
        offset = None if earlier is None else earlier.offset
        page.outcomes.append(_outcome(arrival, command, place, Decision(), verdict="duplicate", first_offset=offset))
        return 0
    if first is not None:
        detail = f"id {command.id} was used for another command within the last 7 days: choose a new one"
        reused = refuse(RefusalCode.ID_REUSED, detail)
        page.outcomes.append(_outcome(arrival, command, place, reused, verdict="refused"))
        return 0
    deciding[identity] = digest
    if command.cluster not in place.clusters:
        detail = (
            f"cluster {command.cluster} is not configured: add [clusters.{command.cluster}] and restart the workers"
        )
        decision = refuse(RefusalCode.UNKNOWN_CLUSTER, detail)
    else:
        facts = _facts(page, command, place, unavailable.get(command.cluster))
        decision = decide(command, page.ahead.cluster(command.cluster), facts)
    outcome = _outcome(arrival, command, place, decision, digest=digest)
    size = len(msgspec.msgpack.encode((outcome, decision.events)))
    if size > MAX_DECISION_BYTES:
        detail = f"the decision takes {size} bytes, at most {MAX_DECISION_BYTES} are allowed: split the command"
        decision = refuse(RefusalCode.TOO_LARGE, detail)
        outcome = _outcome(arrival, command, place, decision, digest=digest)
    page.outcomes.append(outcome)
    page.write_all(decision.events)
    return size


def _facts(page: Page, command: AnyCommand, place: Place, unavailable: str | None) -> Facts:
    if not isinstance(command, Alter | Mend):
        return Facts()
    track = page.track(command.cluster)
    keys = _to_see(command, page.ahead.cluster(command.cluster))
    sights = {key: track.fresh(key, page.now.monotonic_ms) for key in keys}
    unseen = [str(key) for key, sight in sights.items() if sight is None]
    if unavailable is None and unseen:
        unavailable = f"{len(unseen)} partitions, {unseen[0]} among them, could not be judged in time"
    return Facts(
        partitions={key: sight.facts for key, sight in sights.items() if sight is not None},
        moves=track.moves,
        live_brokers=track.live,
        min_isr=track.min_isr,
        unavailable=unavailable,
        own_topics=place.own_topics,
    )


def _outcome(
    arrival: Arrival,
    command: AnyCommand,
    place: Place,
    decision: Decision,
    *,
    verdict: Verdict | None = None,
    digest: bytes = b"",
    first_offset: int | None = None,
) -> Outcome:
    judged: Verdict = verdict or ("refused" if decision.refused else "accepted")
    return Outcome(
        id=command.id,
        cluster=command.cluster,
        type=str(command.__struct_config__.tag),
        by=command.by,
        reason=command.reason,
        topic=place.topics.commands[arrival.topic_index],
        offset=arrival.offset,
        verdict=judged,
        digest=digest,
        plan=decision.plan,
        accepted=tuple(PartitionReference(*key) for key in decision.accepted),
        unchanged=tuple(PartitionReference(*key) for key in decision.unchanged),
        refusals=decision.refusals,
        first_offset=first_offset,
    )
