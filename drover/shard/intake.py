"""Commands to decisions: identity, size and place first, then the domain; every command gets its recorded outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from drover.reassignment.decision import Decision, refuse
from drover.shard.deciding import Place, Position, Register, conclude, must_be_seen, outcome_of, worth_a_look
from drover.shard.fold import ShardState
from drover.shard.holding import hold
from drover.shard.messages import Arrival
from drover.shard.page import Page
from events.codec import Malformed, command_digest
from events.commands import TYPES_BY_TOPIC, AnyCommand, ClusterName, Identifier
from events.partitions import TopicPartition
from events.records import Outcome
from events.refusals import RefusalCode
from events.topics import shard_of

CLOSE_BYTES = 1024 * 1024


@dataclass(slots=True)
class Intake:
    """What came of a run of arrivals."""

    taken: list[Arrival] = field(default_factory=list)
    forward: list[tuple[Arrival, int]] = field(default_factory=list)
    dead_letters: list[tuple[Arrival, str]] = field(default_factory=list)


def named_partitions(
    arrivals: Sequence[Arrival], place: Place, ahead: ShardState
) -> dict[str, frozenset[TopicPartition]]:
    """List per cluster the partitions that must be looked at before these arrivals can be decided."""
    named: dict[str, set[TopicPartition]] = {}
    for arrival in arrivals:
        command = arrival.command
        if not isinstance(command, Malformed) and command.cluster in place.clusters and _is_here(command, place):
            named.setdefault(command.cluster, set()).update(worth_a_look(command, ahead.cluster(command.cluster)))
    return {cluster: frozenset(keys) for cluster, keys in named.items() if keys}


def decide_arrivals(
    page: Page, arrivals: Sequence[Arrival], place: Place, register: Register, unavailable: Mapping[str, str]
) -> Intake:
    """Decide arrivals in order, each on the state that those before it have made, until about 1 MiB is full."""
    intake = Intake()
    size = 0
    for arrival in arrivals:
        if size >= CLOSE_BYTES or _names_what_has_just_ended(page, arrival, place):
            break
        intake.taken.append(arrival)
        command = _readable(arrival)
        if isinstance(command, Malformed):
            _refuse_malformed(page, arrival, command, place, intake)
        elif not _is_here(command, place):
            _send_on(arrival, command, place, intake)
        else:
            position = Position(place.topics.commands[arrival.topic_index], arrival.offset)
            size += _decide_one(page, command, position, place, register, unavailable)
    return intake


def _names_what_has_just_ended(page: Page, arrival: Arrival, place: Place) -> bool:
    """Whether a partition's reassignment ended in this very record, so that the cluster must be seen again first."""
    command = arrival.command
    if isinstance(command, Malformed) or not page.ended or command.cluster not in place.clusters:
        return False
    # Only of a cluster that lives here: to ask for the state of another one would make it live here too.
    if not _is_here(command, place):
        return False
    unseen = must_be_seen(command, page.ahead.cluster(command.cluster))
    return any((command.cluster, key) in page.ended for key in unseen)


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
    command: AnyCommand,
    position: Position,
    place: Place,
    register: Register,
    unavailable: Mapping[str, str],
) -> int:
    """Decide one readable command that belongs here, or hold it; returns how many bytes it adds to the record."""
    identity = (command.cluster, command.id)
    digest = command_digest(command)
    earlier, first = register.earlier(identity), register.digest(identity)
    if first == digest:
        offset = None if earlier is None else earlier.offset
        page.outcomes.append(outcome_of(position, command, Decision(), verdict="duplicate", first_offset=offset))
        return 0
    if first is not None:
        detail = f"id {command.id} was used for another command within the last 7 days: choose a new one"
        page.outcomes.append(outcome_of(position, command, refuse(RefusalCode.ID_REUSED, detail)))
        return 0
    is_known = command.cluster in place.clusters
    if is_known and command.after and register.undecided(command, page.ahead.cluster(command.cluster)):
        size = hold(page, command, position, digest)
    else:
        size = conclude(page, command, position, place, digest, unavailable.get(command.cluster))
    register.enter(identity, digest)
    return size
