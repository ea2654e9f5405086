"""PURE: Kafka's throttle settings as text: names, parsing, and operations that leave others' entries alone.

Both drivers use this module, so that the real and the simulated cluster answer alike.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from drover.cluster.port import AddThrottledReplicas, RemoveThrottledReplicas, SetBrokerRates, ThrottleChange
from drover.facts import EVERY_REPLICA, NO_REPLICAS, BrokerRates, CallResult, ThrottledReplicas

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
MAX_VALUE_BYTES = 32_767  # a broker closes the connection on a longer string (measured on 4.3.1)
INVALID_CONFIG = 40  # Kafka's own code for a value that it rejects

_ENTRY = re.compile(r"\d+:\d+")


class OperationKind(IntEnum):
    """The operations of IncrementalAlterConfigs; the numbers are Kafka's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigOperation:
    """An operation on a config key; only DELETE has no `value`."""

    key: str
    kind: OperationKind
    value: str | None = None


def parse_entries(value: str | None) -> tuple[str, ...]:
    """Parse a throttled replica list in Kafka's format; a missing or empty value has no entries."""
    return tuple(entry.strip() for entry in (value or "").split(",") if entry.strip())


def parse_throttled(configs: Mapping[str, str]) -> ThrottledReplicas:
    """Parse both lists from the configs that are set on a topic itself."""
    return ThrottledReplicas(
        leader=parse_entries(configs.get(LEADER_REPLICAS)), follower=parse_entries(configs.get(FOLLOWER_REPLICAS))
    )


def parse_rates(configs: Mapping[str, str]) -> BrokerRates:
    """Parse both rates from the configs that are set on a broker itself."""
    leader, follower = configs.get(LEADER_RATE), configs.get(FOLLOWER_RATE)
    return BrokerRates(
        leader_bytes_per_second=None if leader is None else int(leader),
        follower_bytes_per_second=None if follower is None else int(follower),
    )


def well_formed(value: str) -> bool:
    """Whether Kafka accepts this list: `*` alone, or entries `partition:broker`."""
    entries = parse_entries(value)
    return entries == (EVERY_REPLICA,) or all(_ENTRY.fullmatch(entry) for entry in entries)


def resource_of(change: ThrottleChange) -> tuple[str, str]:
    """Return the config resource of a change; Kafka accepts each resource at most once per request."""
    if isinstance(change, SetBrokerRates):
        return "broker", str(change.broker)
    return "topic", change.topic


def waves(changes: Sequence[ThrottleChange]) -> list[list[ThrottleChange]]:
    """Split changes into waves that name each resource at most once and keep the order of its changes."""
    split: list[list[ThrottleChange]] = []
    times_seen: dict[tuple[str, str], int] = {}
    for change in dict.fromkeys(changes):
        place = times_seen.get(resource_of(change), 0)
        times_seen[resource_of(change)] = place + 1
        if place == len(split):
            split.append([])
        split[place].append(change)
    return split


def left_out(
    wave: Sequence[ThrottleChange], before: Mapping[ThrottleChange, CallResult]
) -> dict[ThrottleChange, CallResult]:
    """Return the changes to skip because an earlier change of their resource was refused, with that refusal."""
    refused = {resource_of(change): answer for change, answer in before.items() if not answer.accepted}
    return {change: refused[resource_of(change)] for change in wave if resource_of(change) in refused}


def has_taken_effect(operations: Sequence[ConfigOperation], configs: Mapping[str, str]) -> bool:
    """Whether the configs show the effect of the operations."""
    for operation in operations:
        there, given = set(parse_entries(configs.get(operation.key))), set(parse_entries(operation.value))
        if operation.kind is OperationKind.APPEND and not given <= there:
            return False
        if operation.kind is OperationKind.SUBTRACT and given & there:
            return False
        if operation.kind is OperationKind.DELETE and operation.key in configs:
            return False
    return True


def rate_operations(rates: BrokerRates) -> tuple[ConfigOperation, ...]:
    """Return an operation per key: set the value, or delete the key if there is none."""
    pairs = ((LEADER_RATE, rates.leader_bytes_per_second), (FOLLOWER_RATE, rates.follower_bytes_per_second))
    return tuple(
        ConfigOperation(key, OperationKind.DELETE)
        if rate is None
        else ConfigOperation(key, OperationKind.SET, str(rate))
        for key, rate in pairs
    )


def list_operations(
    change: AddThrottledReplicas | RemoveThrottledReplicas, current: ThrottledReplicas
) -> tuple[ConfigOperation, ...] | CallResult:
    """Return the operations, possibly none, for a list change on the current lists, or a refusal.

    Entries are appended and subtracted, never overwritten, so that other operators' entries stay. An append to `*` and
    a list that is too long, which Kafka cannot handle, are refused here with Kafka's own INVALID_CONFIG.
    """
    staying_entries = change.kept if isinstance(change, RemoveThrottledReplicas) else NO_REPLICAS
    sides = (
        (LEADER_REPLICAS, current.leader, change.entries.leader, staying_entries.leader),
        (FOLLOWER_REPLICAS, current.follower, change.entries.follower, staying_entries.follower),
    )
    operations: list[ConfigOperation] = []
    for key, present, entries, staying in sides:
        wrong = next((entry for entry in entries if not _ENTRY.fullmatch(entry)), None)
        if wrong is not None:
            return CallResult(
                INVALID_CONFIG, f"{wrong!r} is not a `partition:broker` entry for {key} of {change.topic}"
            )
        if isinstance(change, RemoveThrottledReplicas):
            operations += _subtract(key, present, entries, staying)
        elif entries and EVERY_REPLICA in present:
            return CallResult(
                INVALID_CONFIG,
                f"{key} of topic {change.topic} is `*` (somebody throttles every replica); entries cannot be added"
                " to it: delete that value first",
            )
        else:
            operations += _append(key, entries)
            length = len(",".join(dict.fromkeys(present + entries)))
            if length > MAX_VALUE_BYTES:
                return CallResult(
                    INVALID_CONFIG,
                    f"{key} of topic {change.topic} would be {length} bytes long, Kafka takes {MAX_VALUE_BYTES}:"
                    " throttle fewer partitions of this topic at a time",
                )
    return tuple(operations)


def _append(key: str, entries: tuple[str, ...]) -> list[ConfigOperation]:
    """Append all entries, because the list may come from a broker that is behind; Kafka ignores duplicates."""
    return [ConfigOperation(key, OperationKind.APPEND, ",".join(dict.fromkeys(entries)))] if entries else []


def _subtract(
    key: str, present: tuple[str, ...], entries: tuple[str, ...], staying: tuple[str, ...]
) -> list[ConfigOperation]:
    """Subtract the entries that are present, and delete a list that becomes empty, since Kafka would keep it.

    A list with `staying` entries is never deleted, even if a broker that is behind does not show them.
    """
    gone = [entry for entry in dict.fromkeys(entries) if entry in present]
    if not gone:
        return []
    if set(gone) == set(present) and not staying:
        return [ConfigOperation(key, OperationKind.DELETE)]
    return [ConfigOperation(key, OperationKind.SUBTRACT, ",".join(gone))]
