"""Logs with one thing wrong in them, made from a log that the simulation wrote; and what an inspection must say."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgpack

from drover.events.codec import chain_hash, decode_record
from drover.events.records import Batch
from drover.fold.log import RecordVerdict, Rule, ShardFold
from tests.simulation import golden

SHARD = 0
HASH_EVERY = 5
# Where a damaged batch stands among the valid ones, counted from 0: it has events, and hashes before and after it.
DAMAGED = 12
# A batch without events follows that one, so that a wrong time is in no state.
QUIET = 13

Fields = dict[str, Any]
Findings = list[tuple[int, Rule]]


class Damage(StrEnum):
    """What can be wrong with a record."""

    EPOCH = "a wrong epoch"
    TIME = "a time before that of its predecessor"
    CURSOR = "a cursor that goes back"
    CHAIN = "a wrong hash of its predecessor"
    ALTERED = "a record that was altered after it was written"
    MISSING = "a record that is not there any more"
    REPEATED = "a record that stands there twice"
    NEWER_SCHEMA = "a newer schema version"
    UNKNOWN_EVENT = "an event of a kind that nobody knows"
    UNREADABLE = "bytes that are no record"
    EMPTY = "a record without a value"
    STATE_HASH = "a wrong hash of the state"
    IMPOSSIBLE_EVENT = "an event that no decision could have written"


def sound() -> list[bytes]:
    """Return a log of one shard with takeovers and fenced batches, a recorded state hash every few batches."""
    (shard,) = golden.read(golden.FOLDER / "seed-233.msgpack.zlib").shards
    return _rewritten(list(shard.records), _with_a_quiet_batch)


def valid_offsets(payloads: list[bytes]) -> list[int]:
    """Return where the batches stand that count."""
    fold = ShardFold(SHARD, 1)
    folded = [fold.fold(offset, payload) for offset, payload in enumerate(payloads)]
    return [one.offset for one in folded if one is not None and one.verdict is RecordVerdict.VALID]


def changed(payload: bytes, **fields: Any) -> bytes:
    """Give a record other fields, whatever they say."""
    packed: bytes = msgpack.packb(msgpack.unpackb(payload) | fields)
    return packed


def damaged(damage: Damage) -> tuple[list[bytes], Findings]:
    """Return a log with one such damage, and the findings: offset and rule, in the order of the log."""
    payloads = sound()
    places = valid_offsets(payloads)
    at, after = places[DAMAGED], places[DAMAGED + 1]
    match damage:
        case Damage.MISSING:
            del payloads[at]
            return payloads, [(after - 1, Rule.SEQUENCE), (after - 1, Rule.CHAIN)]
        case Damage.REPEATED:
            payloads.insert(at + 1, payloads[at])
            return payloads, [(at + 1, Rule.SEQUENCE), (at + 1, Rule.CHAIN)]
        case Damage.UNREADABLE | Damage.EMPTY:
            payloads[at] = b"\xc1 no record" if damage is Damage.UNREADABLE else b""
            # R9: it carries no token, so it is void; that the owner's own record is gone shows in the next one.
            return payloads, [(after, Rule.SEQUENCE), (after, Rule.CHAIN)]
        case Damage.ALTERED:
            payloads[at] = changed(payloads[at], events=[*msgpack.unpackb(payloads[at])["events"], _FREEZE])
            next_hash = next(place for place in places if place > after and _record(payloads[place]).state_hash)
            return payloads, [(after, Rule.CHAIN), (next_hash, Rule.STATE_HASH)]
        case _:
            return _with_one_field(payloads, places, damage)


def _with_one_field(payloads: list[bytes], places: list[int], damage: Damage) -> tuple[list[bytes], Findings]:
    """Damage one field; what follows is linked to the damaged record, so that nothing else is wrong."""
    hashed = next(place for place in places[DAMAGED:] if _record(payloads[place]).state_hash)
    undamaged = msgpack.unpackb(payloads[places[DAMAGED]])
    events = undamaged.get("events", [])
    earlier = [cursor | {"next_offset": -1} for cursor in undamaged["cursors"]]
    kinds: dict[Damage, tuple[int, Rule, Fields]] = {
        Damage.EPOCH: (places[DAMAGED], Rule.EPOCH, {"epoch": 99}),
        Damage.TIME: (places[QUIET], Rule.TIME, {"at_ms": 1}),
        Damage.CURSOR: (places[DAMAGED], Rule.CURSOR, {"cursors": earlier}),
        Damage.CHAIN: (places[DAMAGED], Rule.CHAIN, {"previous_hash": b"wrong"}),
        Damage.NEWER_SCHEMA: (places[DAMAGED], Rule.SCHEMA, {"schema": 2}),
        Damage.UNKNOWN_EVENT: (places[DAMAGED], Rule.SCHEMA, {"events": [*events, {"type": "invented-later"}]}),
        Damage.STATE_HASH: (hashed, Rule.STATE_HASH, {"state_hash": b"wrong"}),
        Damage.IMPOSSIBLE_EVENT: (places[DAMAGED], Rule.EVENTS, {"events": [*events, _NOBODYS]}),
    }
    at, rule, fields = kinds[damage]
    linked, old = dict[bytes, bytes](), payloads[at]
    payloads[at] = changed(old, **fields)
    linked[chain_hash(old)] = chain_hash(payloads[at])
    for place in (place for place in places if place > at):
        before = payloads[place]
        payloads[place] = changed(before, previous_hash=linked[_record(before).previous_hash])
        linked[chain_hash(before)] = chain_hash(payloads[place])
    return payloads, [(at, rule)]


_FREEZE = {"type": "cluster-frozen", "cluster": "invented", "by": "nobody", "reason": "none"}
_NOBODYS = {"type": "reassignment-unblocked", "cluster": "invented", "topic": "none", "partition": 0}


def _record(payload: bytes) -> Batch:
    record = decode_record(payload)
    assert isinstance(record, Batch)
    return record


def _with_a_quiet_batch(number: int, fields: Fields) -> list[Fields]:
    return [fields, fields | {"events": [], "outcomes": []}] if number == DAMAGED else [fields]


def _rewritten(payloads: list[bytes], change: Callable[[int, Fields], list[Fields]]) -> list[bytes]:
    """Write a log again, each valid batch as the batches that `change` makes of it, all properly linked."""
    old, new, result, number = ShardFold(SHARD, 1), ShardFold(SHARD, 1), list[bytes](), 0
    for offset, payload in enumerate(payloads):
        folded = old.fold(offset, payload)
        assert folded is not None
        written = [payload]
        if folded.verdict is RecordVerdict.VALID:
            written, number = [], number + 1
            for fields in change(number - 1, msgpack.unpackb(payload)):
                fields |= {"sequence": new.sequence + 1, "previous_hash": new.chain}
                if new.sequence % HASH_EVERY == 0:
                    fields |= {"state_hash": new.state.hash()}
                packed = msgpack.packb(fields)
                new.fold(len(result), packed)
                result.append(packed)
        else:
            for kept in written:
                new.fold(len(result), kept)
                result.append(kept)
    return result
