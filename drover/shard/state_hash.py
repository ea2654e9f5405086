"""The hash of what events have made of a shard: equal states have equal hashes, in any process and for ever.

There are two forms. Logs of the first Drover hold hashes of the first form, which lists every field that states had
then. The second form leaves out what is at its default, so that a field added later changes no recorded hash. msgspec
leaves a field out if its value *is* the default, the same object: a struct may have `omit_defaults` only if its
defaults exist once (None, False, 0, an empty tuple, a member of an enumeration), which a test holds it to.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from drover.reassignment.state import ClusterState, Freeze, Reassignment

CURRENT_FORM = 2

_FIRST_LIMITS = ("max_partitions_in_flight", "max_moves_per_broker", "max_replicas_per_step")
_FIRST_PLAN = (
    *("name", "by", "reason", "opened_ms", "status", "more", "extended_ms", "throttle_bytes_per_second"),
    *("active", "completed", "rolled_back", "failed"),
)
_FIRST_TOPIC_THROTTLE = ("present", "add", "remove", "pending", "left")


def state_hash(clusters: Mapping[str, ClusterState], form: int = CURRENT_FORM) -> bytes:
    """Hash the clusters of one shard in the given form; 16 bytes. Indexes are no part of it."""
    content = _first_form if form == 1 else _second_form
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(clusters):
        digest.update(msgspec.msgpack.encode(content(clusters[name])))
    return digest.digest()


def _second_form(state: ClusterState) -> dict[str, object]:
    content: dict[str, object] = {
        "name": state.name,
        "kafka_cluster_id": state.kafka_cluster_id,
        "mismatched_kafka_cluster_id": state.mismatched_kafka_cluster_id,
        "freeze": state.freeze,
        "limits": _not_default(state.limits),
        "blacklist": state.blacklist,
        "failed_brokers": sorted(state.failed_brokers.items()),
        "broker_throttles": sorted(state.broker_throttles.items()),
        "topic_throttles": [(topic, _not_default(entry)) for topic, entry in sorted(state.topic_throttles.items())],
        "plans": [state.plans[name] for name in sorted(state.plans)],
        # In the order of acceptance, which is part of the state: it is the order in which slots are given.
        "reassignments": list(state.reassignments.values()),
        "next_number": state.next_number,
        "queue": list(state.queue.items()),
        "held": list(state.held.items()),
        "foreign": sorted(state.foreign.items()),
        "given_up": sorted(state.given_up.items()),
    }
    return {name: value for name, value in content.items() if value}


def _first_form(state: ClusterState) -> tuple[object, ...]:
    return (
        state.name,
        state.kafka_cluster_id,
        state.mismatched_kafka_cluster_id,
        None if state.freeze is None else _fields(state.freeze, Freeze.__struct_fields__),
        _fields(state.limits, _FIRST_LIMITS),
        state.blacklist,
        sorted(state.failed_brokers.items()),
        [(broker, _all_fields(entry)) for broker, entry in sorted(state.broker_throttles.items())],
        [(topic, _fields(entry, _FIRST_TOPIC_THROTTLE)) for topic, entry in sorted(state.topic_throttles.items())],
        [_fields(state.plans[name], _FIRST_PLAN) for name in sorted(state.plans)],
        [_first_reassignment(reassignment) for reassignment in state.reassignments.values()],
        state.next_number,
    )


def _first_reassignment(known: Reassignment) -> dict[str, object]:
    return {
        "key": known.key,
        "topic_id": known.topic_id,
        "plan": known.plan,
        "number": known.number,
        "original": known.original,
        "target": known.target,
        "queued_ms": known.queued_ms,
        "phase": known.phase,
        "since_ms": known.since_ms,
        "current": known.current,
        "step": known.step,
        "rollback_requested": known.is_cancelled,
        "unsure": known.unsure,
        "attempts": known.attempts,
        "bytes_copied": known.bytes_copied,
        "block": known.block,
    }


def _not_default(value: msgspec.Struct) -> dict[str, object]:
    known = msgspec.structs.fields(value)
    return {field.name: found for field in known if (found := getattr(value, field.name)) != field.default}


def _all_fields(value: msgspec.Struct) -> dict[str, object]:
    return _fields(value, value.__struct_fields__)


def _fields(value: msgspec.Struct, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(value, name) for name in names}
