"""PURE: the throttle ledger of a cluster as rows: what was found, what is wanted, and what is left over."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drover.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class BrokerThrottleRow:
    """One broker in the ledger; rates in bytes per second, None where none is or was set.

    `found_` is what stood there before Drover, and is put back at the end; `wanted_` what Drover last decided to write.
    `says` is what is going on in words; `is_stray` that no move needs it any more and it is not put back yet.
    """

    cluster: str
    broker: int
    found_leader: int | None
    found_follower: int | None
    wanted_leader: int | None
    wanted_follower: int | None
    is_stray: bool
    since_ms: int | None
    says: str

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TopicThrottleRow:
    """One topic in the ledger: the entries `partition:broker` of Drover's in its lists of throttled replicas."""

    cluster: str
    topic: str
    leader_entries: tuple[str, ...]
    follower_entries: tuple[str, ...]
    is_stray: bool
    says: str

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def broker_throttle_rows(state: ClusterState, since_ms: Mapping[int, int]) -> list[BrokerThrottleRow]:
    """Return the brokers in the ledger by id; `since_ms` says when each entered it, as far as that is known."""
    rows = []
    for broker, throttle in sorted(state.broker_throttles.items()):
        is_stray = not state.reassignments
        rows.append(
            BrokerThrottleRow(
                cluster=state.name,
                broker=broker,
                found_leader=throttle.baseline.leader,
                found_follower=throttle.baseline.follower,
                wanted_leader=throttle.intended.leader,
                wanted_follower=throttle.intended.follower,
                is_stray=is_stray,
                since_ms=since_ms.get(broker),
                says=_broker_words(state, broker, is_stray=is_stray),
            )
        )
    return rows


def _broker_words(state: ClusterState, broker: int, *, is_stray: bool) -> str:
    throttle = state.broker_throttles[broker]
    if throttle.release and broker in state.failed_brokers:
        return "left over: the broker has failed; put back once it returns"
    if throttle.release:
        return "being put back" if throttle.pending else "put back"
    if is_stray:
        return "left over: no move needs it; it is put back next"
    return "being set" if throttle.pending else "in force"


def topic_throttle_rows(state: ClusterState) -> list[TopicThrottleRow]:
    """Return the topics in the ledger by name."""
    moving = {key.topic for key in state.reassignments}
    rows = []
    for topic, throttle in sorted(state.topic_throttles.items()):
        if throttle.left:
            says = "left alone: the topic is gone, or throttles every replica by somebody else's *"
        elif throttle.pending:
            says = "entries are being changed"
        else:
            says = "in force"
        rows.append(
            TopicThrottleRow(
                cluster=state.name,
                topic=topic,
                leader_entries=throttle.present.leader,
                follower_entries=throttle.present.follower,
                is_stray=topic not in moving and not throttle.left,
                says=says,
            )
        )
    return rows
