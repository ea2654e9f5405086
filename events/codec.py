"""Messages from bytes and to bytes; all encoding and decoding of the contract is here.

Commands come from any client. Their size is bounded before decoding, and so is their depth: the decoder builds only the
types of the contract, and skips nested values only up to Python's recursion limit. Records come from Drover alone: an
unreadable one was written by a newer Drover, or is damaged.
"""

import hashlib
from dataclasses import dataclass

import msgspec

from drover.events.bounds import fault_of, shortened, shortened_name
from drover.events.cancelled_partitions import DanglingReferenceError, shortened_batch, whole_batch
from drover.events.commands import TYPES_BY_TOPIC, AnyCommand, Command
from drover.events.progress import Sample
from drover.events.records import SCHEMA_VERSION, Acquire, Batch, Genesis, Record
from drover.events.undecodable import UNDECODABLE
from drover.events.words import fault_of_json, mark_of, said_of

MAX_COMMAND_BYTES = 1024 * 1024
# The first byte of a map in msgpack whose number of entries takes two bytes.
_MAP_16 = 0xDE
CONTENT_TYPE_HEADER = "content-type"
JSON_CONTENT_TYPE = "application/json"
MSGPACK_CONTENT_TYPE = "application/msgpack"

_records_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_record_encoder = msgspec.msgpack.Encoder()
_command_from_msgpack: msgspec.msgpack.Decoder[AnyCommand] = msgspec.msgpack.Decoder(AnyCommand)
_command_from_json: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)
_progress_decoder: msgspec.msgpack.Decoder[Sample] = msgspec.msgpack.Decoder(Sample)


class UndecodableError(Exception):
    """A record that this reader does not understand; the message says why."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A payload that is no command, with its readable fields, cut to their bounds.

    `type` is a type of the contract, or None.
    """

    detail: str
    id: str | None = None
    cluster: str | None = None
    by: str | None = None
    type: str | None = None


class _Glimpse(msgspec.Struct, frozen=True):
    """The fields to read from a malformed command; each may be of any type."""

    id: object = None
    cluster: object = None
    by: object = None
    type: object = None


# Types that may become a label of a metric, or part of the log, even for a malformed command.
_KNOWN_TYPES = frozenset(str(kind.__struct_config__.tag) for kinds in TYPES_BY_TOPIC for kind in kinds)
_glimpse_from_msgpack = msgspec.msgpack.Decoder(_Glimpse)
_glimpse_from_json = msgspec.json.Decoder(_Glimpse)


def encode_record(record: Record) -> bytes:
    """Encode a record of the event log as msgpack, in its recorded form (`cancelled_partitions`)."""
    return _record_encoder.encode(shortened_batch(record) if isinstance(record, Batch) else record)


def decode_record(payload: bytes) -> Record:
    """Decode a record of the event log.

    Raises `UndecodableError` for a newer schema version, an unknown tag, damaged bytes, and an event that refers to a
    missing command, so that no reader guesses.
    """
    try:
        record = _records_decoder.decode(payload)
    except UNDECODABLE as error:
        raise UndecodableError(f"record not understood: {error}") from error
    if record.schema > SCHEMA_VERSION:
        raise UndecodableError(
            f"record has schema version {record.schema}, this reader knows up to {SCHEMA_VERSION}: upgrade Drover"
        )
    try:
        # By type, because this runs for every record and `isinstance` takes ten times as long with structs.
        return whole_batch(record) if type(record) is Batch else record
    except DanglingReferenceError as error:
        raise UndecodableError(f"record not understood: {error}") from error


def encode_progress(sample: Sample) -> bytes:
    """Encode a sample as msgpack."""
    return msgspec.msgpack.encode(sample)


def decode_progress(payload: bytes) -> Sample | None:
    """Decode a sample; None for anything else, since samples are telemetry and a newer one may be skipped."""
    try:
        return _progress_decoder.decode(payload)
    except UNDECODABLE:
        return None


def encode_command(command: Command, *, as_json: bool = False) -> bytes:
    """Encode a command; fields that are at their default are left out."""
    return msgspec.json.encode(command) if as_json else msgspec.msgpack.encode(command)


def command_digest(command: Command) -> bytes:
    """Return 16 bytes that identify a command's whole content, however it was encoded (R5).

    A field at its default counts as left out. A field that is added to the contract later changes no digest, so that a
    retry across an upgrade is still recognised.
    """
    return hashlib.blake2b(
        _with_narrow_header(msgspec.msgpack.encode(command, order="deterministic")), digest_size=16
    ).digest()


def _with_narrow_header(packed: bytes) -> bytes:
    """Return a msgpack map with the narrowest header that its entries allow.

    msgspec chooses the width by the number of fields of the type, even those that are left out: a sixteenth field would
    change the digests of commands that do not use it.
    """
    entries = int.from_bytes(packed[1:3], "big")
    return bytes([0x80 | entries]) + packed[3:] if packed[0] == _MAP_16 and entries < 16 else packed


def chain_hash(payload: bytes) -> bytes:
    """Hash one valid batch record; its successor carries this as `previous_hash`. 16 bytes."""
    return hashlib.blake2b(payload, digest_size=16).digest()


def decode_command(payload: bytes, content_type: str | None = None) -> AnyCommand | Malformed:
    """Decode a command in msgpack or JSON; an unreadable one is returned as `Malformed`, with the reason.

    `content_type` is the record's header, if any; where it names neither, JSON is recognised by its first character.
    """
    if len(payload) > MAX_COMMAND_BYTES:
        return Malformed(f"the command has {len(payload)} bytes, at most {MAX_COMMAND_BYTES} are read: split it")
    mark = mark_of(payload)
    if mark is not None:
        return Malformed(mark)
    is_json = _is_json(payload, content_type)
    decoder = _command_from_json if is_json else _command_from_msgpack
    try:
        command = decoder.decode(payload)
    except UNDECODABLE as error:
        return _malformed(payload, (fault_of_json(payload) if is_json else None) or said_of(error), is_json=is_json)
    fault = (fault_of_json(payload) if is_json else None) or fault_of(command)
    return command if fault is None else _malformed(payload, fault, is_json=is_json)


def clusters_of(batch: Batch) -> tuple[str, ...]:
    """Return the names of all clusters in a batch, sorted, for the record's headers."""
    names = {event.cluster for event in batch.events} | {outcome.cluster for outcome in batch.outcomes}
    return tuple(sorted(names))


def record_headers(record: Record) -> tuple[tuple[str, bytes], ...]:
    """Return the Kafka headers by which readers filter: kind, schema, token, epoch and each cluster."""
    schema = ("schema", str(record.schema).encode())
    match record:
        case Genesis():
            return (("kind", b"genesis"), schema)
        case Acquire():
            return (("kind", b"acquire"), schema, ("token", record.token), ("epoch", str(record.epoch).encode()))
        case Batch():
            touched = (("cluster", name.encode()) for name in clusters_of(record))
            epoch = str(record.epoch).encode()
            return (("kind", b"batch"), schema, ("token", record.token), ("epoch", epoch), *touched)


def _is_json(payload: bytes, content_type: str | None) -> bool:
    said = (content_type or "").lower()
    if "json" in said or "msgpack" in said:
        return "json" in said
    # Many libraries write a header of their own, such as `text/plain`, whatever they send.
    return payload.lstrip()[:1] == b"{"


def _malformed(payload: bytes, detail: str, *, is_json: bool) -> Malformed:
    # The decoder's words may quote the payload.
    detail = shortened(detail)
    try:
        seen = (_glimpse_from_json if is_json else _glimpse_from_msgpack).decode(payload)
    except UNDECODABLE:
        return Malformed(detail)
    type_ = seen.type if isinstance(seen.type, str) and seen.type in _KNOWN_TYPES else None
    return Malformed(detail, id=_text(seen.id), cluster=_text(seen.cluster), by=_text(seen.by), type=type_)


def _text(value: object) -> str | None:
    return shortened_name(value) if isinstance(value, str) and value else None
