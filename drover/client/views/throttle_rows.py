"""PURE: the throttle ledger of a cluster as rows: previous, wanted and leftover throttles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from drover.events.throttles import NO_ENTRIES, NO_RATES
from drover.reconcile.throttles.refusals import REFUSED_RETRY_MS, refusals_of_broker, refusals_of_topic
from drover.state.cluster import ClusterState

_SHOWN_TOPICS = 5


@dataclass(frozen=True, slots=True)
class BrokerThrottleRow:
    """A broker in the ledger; rates are in bytes per second, None if none is or was set.

    `found_` rates were set before Drover's, and are put back at the end; `wanted_` rates are those that Drover last
    decided to write or to leave; `theirs_` are rates that somebody else has set over Drover's. `times_deleted` counts
    how often somebody deleted Drover's rates; `changed_ms` (log time) is the last change by others. `says` describes
    the current situation; `is_leftover` means that no move needs the throttle, but it has not been put back yet.
    """

    cluster: str
    broker: int
    found_leader: int | None
    found_follower: int | None
    wanted_leader: int | None
    wanted_follower: int | None
    is_leftover: bool
    since_ms: int | None
    says: str
    theirs_leader: int | None = None
    theirs_follower: int | None = None
    times_deleted: int = 0
    changed_ms: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TopicThrottleRow:
    """A topic in the ledger: Drover's entries `partition:broker` in its lists of throttled replicas.

    `times_deleted` counts how often somebody deleted some of them; the last time was at `changed_ms` (log time).
    """

    cluster: str
    topic: str
    leader_entries: tuple[str, ...]
    follower_entries: tuple[str, ...]
    is_leftover: bool
    says: str
    times_deleted: int = 0
    changed_ms: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def broker_throttle_rows(state: ClusterState, since_ms: Mapping[int, int]) -> list[BrokerThrottleRow]:
    """Return the brokers in the ledger by id; `since_ms` holds the known times at which they entered it."""
    rows = []
    for broker, throttle in sorted(state.broker_throttles.items()):
        is_leftover = not state.reassignments
        rows.append(
            BrokerThrottleRow(
                cluster=state.name,
                broker=broker,
                found_leader=throttle.baseline.leader,
                found_follower=throttle.baseline.follower,
                wanted_leader=throttle.intended.leader,
                wanted_follower=throttle.intended.follower,
                is_leftover=is_leftover,
                since_ms=since_ms.get(broker),
                says=_broker_words(state, broker, is_leftover=is_leftover),
                theirs_leader=throttle.theirs.leader,
                theirs_follower=throttle.theirs.follower,
                times_deleted=0 if throttle.others is None else throttle.others.times_deleted,
                changed_ms=None if throttle.others is None else throttle.others.at_ms,
            )
        )
    return rows


def _broker_words(state: ClusterState, broker: int, *, is_leftover: bool) -> str:
    throttle = state.broker_throttles[broker]
    if (refused := next(refusals_of_broker(state, broker), None)) is not None:
        return f"{refused}; tried again every {REFUSED_RETRY_MS // 1000} s"
    if throttle.release and state.failed_since_ms(broker) is not None:
        return "left over: the broker has failed; put back once it returns"
    if throttle.release:
        return "being put back" if throttle.pending else "put back"
    if is_leftover:
        return "left over: no move needs it; it is put back next"
    if throttle.theirs != NO_RATES:
        sides = "rates" if None not in (throttle.theirs.leader, throttle.theirs.follower) else "rate"
        return f"somebody else has set the {sides}: theirs until they delete it"
    times = 0 if throttle.others is None else throttle.others.times_deleted
    return f"being {_set(times)}" if throttle.pending else f"in force{_deleted(times)}"


def _set(times_deleted: int) -> str:
    return "put back: somebody else has deleted it" if times_deleted else "set"


def _deleted(times: int) -> str:
    often = {1: "once", 2: "twice"}.get(times, f"{times} times")
    return f"; somebody else has deleted it {often}, and it was put back" if times else ""


def topic_throttle_rows(state: ClusterState) -> list[TopicThrottleRow]:
    """Return the topics in the ledger by name."""
    moving = {key.topic for key in state.reassignments}
    rows = []
    for topic, throttle in sorted(state.topic_throttles.items()):
        if (refused := next(refusals_of_topic(state, topic), None)) is not None:
            says = f"{refused}; tried again every {REFUSED_RETRY_MS // 1000} s"
        elif throttle.left and throttle.present != NO_ENTRIES:
            says = "in force, but Kafka refuses to add more entries: copies without an entry run unthrottled"
        elif throttle.left:
            says = "left alone: the topic is gone, has a * from somebody else, or Kafka refuses its lists"
        elif throttle.pending:
            says = "entries are being changed"
        else:
            says = f"in force{_deleted(throttle.times_deleted)}"
        rows.append(
            TopicThrottleRow(
                cluster=state.name,
                topic=topic,
                leader_entries=throttle.present.leader,
                follower_entries=throttle.present.follower,
                is_leftover=topic not in moving and not throttle.left,
                says=says,
                times_deleted=throttle.times_deleted,
                changed_ms=throttle.deleted_ms or None,
            )
        )
    return rows


def notices_of_unthrottled(state: ClusterState) -> Iterator[str]:
    """Yield a line for topics with copies that may run without the requested throttle."""
    topics = [topic for topic, throttle in sorted(state.topic_throttles.items()) if throttle.left]
    if topics and state.reassignments:
        yield (
            f"{state.name}: Drover cannot throttle all copies of topic {_named(topics)}: Kafka refuses its lists, or "
            "they hold a * from somebody else (`drover throttle show`)"
        )


def notices_of_throttles(state: ClusterState) -> Iterator[str]:
    """Yield notices about throttles: refusals, changes by others, and unthrottled copies."""
    yield from notices_of_refusals(state)
    yield from notices_of_others(state)
    yield from notices_of_unthrottled(state)


def notices_of_refusals(state: ClusterState) -> Iterator[str]:
    """Yield a line for throttles that Kafka refuses: the first refusal, and the number of others."""
    refused = [line for broker in sorted(state.broker_throttles) for line in refusals_of_broker(state, broker)]
    refused += [line for topic in sorted(state.topic_throttles) for line in refusals_of_topic(state, topic)]
    if refused:
        more = f", and {len(refused) - 1:,} more" if len(refused) > 1 else ""
        yield f"{state.name}: {refused[0]}{more} (`drover throttle show`): `drover acls` prints the rights needed"


def notices_of_others(state: ClusterState) -> Iterator[str]:
    """Yield lines about changes by others to throttles that moves need."""
    changed = {
        it: throttle.others for it, throttle in sorted(state.broker_throttles.items()) if throttle.others is not None
    }
    theirs = [str(broker) for broker, others in changed.items() if others.theirs != NO_RATES]
    if theirs:
        yield (
            f"{state.name}: somebody else has set the throttle of broker {', '.join(theirs)}: it stays until they "
            "delete it (`drover throttle show`)"
        )
    deleted = [str(broker) for broker, others in changed.items() if others.times_deleted]
    if deleted:
        yield (
            f"{state.name}: somebody else has deleted the throttle of broker {', '.join(deleted)} while moves need it: "
            "Drover puts it back (`drover throttle show`)"
        )
    topics = [topic for topic, throttle in sorted(state.topic_throttles.items()) if throttle.times_deleted]
    if topics:
        yield (
            f"{state.name}: somebody else has deleted throttled replicas of topic {_named(topics)}: "
            "Drover puts them back"
        )


def _named(topics: Sequence[str]) -> str:
    more = len(topics) - _SHOWN_TOPICS
    return ", ".join(topics[:_SHOWN_TOPICS]) + (f" and {more:,} more" if more > 0 else "")
