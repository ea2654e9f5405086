"""PURE: every throttle that is set in a cluster, and its owner: Drover, others, or a tool that left it behind."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from drover.client.views.throttle_rows import BrokerThrottleRow, broker_throttle_rows, topic_throttle_rows
from drover.events.partitions import TopicPartition
from drover.facts import EVERY_REPLICA, BrokerRates, Move, ThrottledReplicas
from drover.state.cluster import ClusterState
from drover.state.throttles import TopicThrottle


class Whose(StrEnum):
    """The owner of a throttle; a leftover throttle was not set by Drover, and no reassignment needs it."""

    OURS = "ours"
    THEIRS = "theirs"
    LEFTOVER = "leftover"


@dataclass(frozen=True, slots=True)
class FoundRates:
    """The dynamic rates in a broker's config, in bytes per second; None if a rate is not set."""

    broker: int
    leader: int | None
    follower: int | None
    whose: Whose
    says: str

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """The entries `partition:broker` of one owner in a topic's lists of throttled replicas."""

    topic: str
    leader: tuple[str, ...]
    follower: tuple[str, ...]
    whose: Whose
    says: str

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def found_rates(
    state: ClusterState, rates: Mapping[int, BrokerRates], moves: Mapping[TopicPartition, Move]
) -> list[FoundRates]:
    """Return the brokers that have a rate or are in Drover's ledger, by id; `moves` are those that Kafka lists.

    A broker of the ledger that is not in `rates` could not be read; its row holds the rates that Drover wrote last.
    """
    ours = {row.broker: row for row in broker_throttle_rows(state, {})}
    used = _brokers_that_move(moves)
    rows = []
    for broker in sorted({*ours, *rates}):
        current = rates.get(broker)
        row = ours.get(broker)
        if row is not None:
            rows.append(_ours(row, current))
        elif current is not None and (current.leader_bytes_per_second, current.follower_bytes_per_second) != (
            None,
            None,
        ):
            whose = Whose.THEIRS if broker in used else Whose.LEFTOVER
            says = "moves of others use the broker" if broker in used else "left over: no move needs it"
            leader, follower = current.leader_bytes_per_second, current.follower_bytes_per_second
            rows.append(FoundRates(broker, leader, follower, whose, says))
    return rows


def _brokers_that_move(moves: Mapping[TopicPartition, Move]) -> set[int]:
    return {broker for move in moves.values() for broker in (*move.replicas, *move.adding)}


def _ours(row: BrokerThrottleRow, current: BrokerRates | None) -> FoundRates:
    whose = Whose.OURS if None in {row.theirs_leader, row.theirs_follower} else Whose.THEIRS
    if current is None:
        says = f"{row.says}; the broker does not answer"
        return FoundRates(row.broker, row.wanted_leader, row.wanted_follower, whose, says)
    return FoundRates(row.broker, current.leader_bytes_per_second, current.follower_bytes_per_second, whose, row.says)


def found_entries(
    state: ClusterState, lists: Mapping[str, ThrottledReplicas], moves: Mapping[TopicPartition, Move]
) -> list[FoundEntries]:
    """Return the throttled replicas of topics by owner; `moves` are the reassignments that Kafka lists."""
    texts = {row.topic: row.says for row in topic_throttle_rows(state)}
    rows = []
    for topic, throttled in sorted(lists.items()):
        ledger = state.topic_throttles.get(topic, TopicThrottle())
        own = [{*ledger.present.leader, *ledger.add.leader}, {*ledger.present.follower, *ledger.add.follower}]
        parts = [(entry, side, _whose(topic, entry, own[side], moves)) for side, entry in _entries(throttled)]
        for whose, says in (
            (Whose.OURS, texts.get(topic, "")),
            (Whose.THEIRS, "every replica, or partitions that others move"),
            (Whose.LEFTOVER, "left over: their partitions are not moving"),
        ):
            leader, follower = (
                tuple(entry for entry, at, owner in parts if at == side and owner is whose) for side in (0, 1)
            )
            if leader or follower:
                rows.append(FoundEntries(topic, leader, follower, whose, says))
    return rows


def _entries(throttled: ThrottledReplicas) -> list[tuple[int, str]]:
    return [*((0, entry) for entry in throttled.leader), *((1, entry) for entry in throttled.follower)]


def _whose(topic: str, entry: str, own: set[str], moves: Mapping[TopicPartition, Move]) -> Whose:
    if entry in own:
        return Whose.OURS
    partition = entry.partition(":")[0]
    if entry == EVERY_REPLICA or not partition.isdecimal():
        return Whose.THEIRS
    return Whose.THEIRS if TopicPartition(topic, int(partition)) in moves else Whose.LEFTOVER
