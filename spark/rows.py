"""The flat row: every record of the log and every byte sample, event by event, in columns that tables are made from.

Pure: bytes in, rows out. `COLUMNS` is the schema, in the words of Spark; one record of the log gives one row for itself
and one for each of its outcomes, refusals and events; what cannot be read gives one row that says so, never a fault.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from events.base import Event
from events.codec import UndecodableError, decode_record
from events.leadership import LeadersCounted
from events.progress import Progress, ProjectionSample, Sample, WorkerSample
from events.records import Acquire, AnyEvent, Batch, Genesis, Outcome, Record
from events.throttles import BrokerThrottleChanged, BrokerThrottleIntended, BrokerThrottleLeft
from events.waiting import CommandAdvanced, CommandBegun, CommandHeld

# What a row stands for.
GENESIS, ACQUIRE, BATCH = "genesis", "acquire", "batch"
OUTCOME, REFUSAL, EVENT = "outcome", "refusal", "event"
SAMPLE, PROJECTION, UNDECODABLE = "sample", "projection", "undecodable"
# The verdict of a further part of an outcome: the first one says what became of the command.
PART = "part"
# Where a record stands.
LOG, SAMPLES = "log", "samples"
OF_A_BATCH = (BATCH, OUTCOME, REFUSAL, EVENT)

ERROR_LENGTH = 300


class Column(NamedTuple):
    """One column of the flat row: its Spark type, and what it means, with the unit."""

    name: str
    type: str
    meaning: str


COLUMNS = (
    Column("source", "string", "log or samples: the topic the record stands in"),
    Column("entry", "string", "what the row stands for: genesis, acquire, batch, outcome, refusal, event, sample, ..."),
    Column("shard", "int", "partition of the Kafka topic the record stands in"),
    Column("offset", "bigint", "offset of the record there"),
    Column("index", "int", "place of the outcome, refusal or event among those of its record, from 0"),
    Column("appended_ms", "bigint", "when Kafka appended the record, ms since epoch"),
    Column("record_bytes", "int", "size of the record's value, bytes; on the record's own row only"),
    Column("token", "binary", "of the ownership it was written under, 16 bytes"),
    Column("epoch", "bigint", "of the ownership, counts from 1"),
    Column("sequence", "bigint", "of the batch, counts valid batches from 1"),
    Column("at_ms", "bigint", "the writer's wall clock, ms since epoch"),
    Column("owner", "string", "of an acquire: the worker's name"),
    Column("tag", "string", "the event's type; of an outcome the command's type; of a refusal its code"),
    Column("cluster", "string", "the cluster, by the operator's name for it"),
    Column("topic", "string", "the topic of the partition it is about"),
    Column("partition", "int", "the partition's number"),
    Column("plan", "string", "the plan's name"),
    Column("id", "string", "the command's id"),
    Column("by", "string", "who asked"),
    Column("reason", "string", "why, in the words of who asked"),
    Column(
        "verdict",
        "string",
        "of an outcome: accepted, refused, duplicate, held, or part: a further part of one that has several; of an "
        "election: what became of it",
    ),
    Column("why", "string", "the kind of cause, of a block, a failure, a skip, a withdrawal"),
    Column("detail", "string", "what happened or what to do, for a person"),
    Column("call", "string", "what a call is for: step, cancel or restore"),
    Column("code", "int", "Kafka's error code of a rejected call"),
    Column("step", "int", "the step's number, from 1"),
    Column("final", "boolean", "whether the step is the last"),
    Column("leader", "int", "broker id of who led when the step was planned, or when the sample was taken"),
    Column("broker", "int", "broker id"),
    Column("original", "array<int>", "broker ids when the reassignment was accepted, in order"),
    Column("target", "array<int>", "broker ids asked for, in order"),
    Column("expected", "array<int>", "broker ids before the call, in order"),
    Column("replicas", "array<int>", "broker ids that were sent, reached or seen, in order"),
    Column("accepted", "array<struct<topic:string,partition:int>>", "of an outcome: the partitions accepted"),
    Column("unchanged", "array<struct<topic:string,partition:int>>", "of an outcome: partitions already as asked"),
    Column("bytes_done", "bigint", "bytes on the added replicas, by the last sample"),
    Column("bytes_unknown", "boolean", "true: more may have been copied than bytes_done; no size was ever sampled"),
    Column("bytes_total", "bigint", "bytes the added replicas will have"),
    Column("adding", "array<struct<broker:int,bytes:bigint>>", "of a sample: bytes on each added replica"),
    Column("bytes_per_second", "bigint", "of a plan's throttle, bytes/s per broker"),
    Column("leader_rate", "bigint", "of a broker's throttle, bytes/s sent; null for none"),
    Column("follower_rate", "bigint", "of a broker's throttle, bytes/s received; null for none"),
    Column("release", "boolean", "whether the throttle goes back to what stood there before Drover"),
    Column("started", "boolean", "of an end: false if nothing had ever been sent"),
    Column("error", "string", "of what is undecodable: why"),
)
PLACE = {column.name: number for number, column in enumerate(COLUMNS)}
DDL = ", ".join(f"`{column.name}` {column.type}" for column in COLUMNS)

Row = list[Any]
_WIDTH = len(COLUMNS)

# Fields that stand under another name in the row, because they mean what another message calls that.
_RENAMED: Mapping[str, str] = {
    "bytes_copied": "bytes_done",
    "isr": "replicas",
    "sent": "expected",
    "message": "detail",
    "original_replicas": "original",
    "brokers": "target",
    "previous_brokers": "original",
    "canonical": "original",
    "command": "id",
    "outcome": "verdict",
}
# These mean something else in the message than in the row, or have another shape.
_SKIPPED = frozenset({"adding", "offset"})

_sample_decoder: msgspec.msgpack.Decoder[Sample] = msgspec.msgpack.Decoder(Sample)


class Source(NamedTuple):
    """Where a record stands: in which topic, partition and offset, and when Kafka appended it."""

    source: str
    shard: int
    offset: int
    appended_ms: int


def rows_of(source: Source, payload: bytes | None) -> Iterator[Row]:
    """Yield the rows of one record; an undecodable one gives one row and no fault."""
    return (_sample_rows if source.source == SAMPLES else _log_rows)(source, payload)


def _log_rows(source: Source, payload: bytes | None) -> Iterator[Row]:
    if payload is None:
        yield _undecodable(source, "the record has no value")
        return
    try:
        record = decode_record(payload)
    except UndecodableError as error:
        yield _undecodable(source, str(error))
        return
    yield from _record_rows(source, record, len(payload))


def _sample_rows(source: Source, payload: bytes | None) -> Iterator[Row]:
    if payload is None:
        yield _undecodable(source, "the sample has no value")
        return
    try:
        sample = _sample_decoder.decode(payload)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        yield _undecodable(source, f"sample not understood: {error}")
        return
    if isinstance(sample, WorkerSample):
        # That a worker runs is in no table.
        return
    row = _row(SAMPLE if isinstance(sample, Progress) else PROJECTION, source, 0)
    _put(row, "record_bytes", len(payload))
    if isinstance(sample, ProjectionSample):
        # How far a projector is says nothing about a move; it is in no table.
        _put(row, "cluster", sample.cluster)
        _put(row, "at_ms", sample.at_ms)
        yield row
        return
    _copy(row, sample)
    _put(row, "adding", [(replica.broker, replica.bytes) for replica in sample.adding])
    yield row


def _record_rows(source: Source, record: Record, size_bytes: int) -> Iterator[Row]:
    entry = {Genesis: GENESIS, Acquire: ACQUIRE, Batch: BATCH}[type(record)]
    own = _row(entry, source, 0)
    _put(own, "record_bytes", size_bytes)
    match record:
        case Genesis():
            yield own
        case Acquire():
            _put(own, "token", record.token)
            _put(own, "epoch", record.epoch)
            _put(own, "owner", record.owner)
            yield own
        case Batch():
            _stamp(own, record)
            yield own
            yield from _outcome_rows(source, record)
            for index, event in enumerate(record.events):
                yield _event_row(source, record, index, event)


def _outcome_rows(source: Source, batch: Batch) -> Iterator[Row]:
    # The next part of a command comes before whatever is decided with it.
    further = {(event.cluster, event.id) for event in batch.events if isinstance(event, CommandAdvanced)}
    for index, outcome in enumerate(batch.outcomes):
        row = _stamped(OUTCOME, source, batch, index)
        _name(row, outcome)
        _put(row, "tag", outcome.type)
        _put(row, "verdict", PART if (outcome.cluster, outcome.id) in further else outcome.verdict)
        further.discard((outcome.cluster, outcome.id))
        _put(row, "accepted", [(one.topic, one.partition) for one in outcome.accepted])
        _put(row, "unchanged", [(one.topic, one.partition) for one in outcome.unchanged])
        yield row
    refusals = ((outcome, refusal) for outcome in batch.outcomes for refusal in outcome.refusals)
    for index, (outcome, refusal) in enumerate(refusals):
        row = _stamped(REFUSAL, source, batch, index)
        _name(row, outcome)
        _put(row, "tag", str(refusal.code))
        _put(row, "detail", refusal.detail)
        _put(row, "topic", refusal.topic)
        _put(row, "partition", refusal.partition)
        yield row


def _name(row: Row, outcome: Outcome) -> None:
    """Say of a command which one it was, and who asked; the topic it stood on is not one that is moved."""
    for field in ("cluster", "plan", "id", "by", "reason"):
        _put(row, field, getattr(outcome, field))


def _event_row(source: Source, batch: Batch, index: int, event: AnyEvent) -> Row:
    row = _stamped(EVENT, source, batch, index)
    _put(row, "tag", event.__struct_config__.tag)
    _copy(row, event)
    if isinstance(event, BrokerThrottleIntended | BrokerThrottleLeft | BrokerThrottleChanged):
        rates = event.rates if isinstance(event, BrokerThrottleIntended) else event.found
        _put(row, "leader_rate", rates.leader)
        _put(row, "follower_rate", rates.follower)
    return row


_OTHER_SHAPES = {(CommandHeld, "topic"), (CommandBegun, "topic"), (LeadersCounted, "brokers")}


def _copies(kind: type[msgspec.Struct]) -> tuple[tuple[str, int], ...]:
    """Pair each field of a message that has a column of its meaning with that column's place."""
    return tuple(
        (field, PLACE[column])
        for field in kind.__struct_fields__
        if field not in _SKIPPED and (column := _RENAMED.get(field, field)) in PLACE
        # Where a held command stood is no partition that is moved, and counts of leaders are no list of brokers.
        if (kind, field) not in _OTHER_SHAPES
    )


_COPIES: dict[type[msgspec.Struct], tuple[tuple[str, int], ...]] = {}


def _copy(row: Row, message: Event | Progress) -> None:
    """Copy every field that has a column."""
    kind = type(message)
    copies = _COPIES.get(kind)
    if copies is None:
        copies = _COPIES[kind] = _copies(kind)
    for field, place in copies:
        value = getattr(message, field)
        row[place] = list(value) if type(value) is tuple else value


def _stamped(entry: str, source: Source, batch: Batch, index: int) -> Row:
    row = _row(entry, source, index)
    _stamp(row, batch)
    return row


def _stamp(row: Row, batch: Batch) -> None:
    row[_TOKEN], row[_EPOCH], row[_SEQUENCE], row[_AT_MS] = batch.token, batch.epoch, batch.sequence, batch.at_ms


def _undecodable(source: Source, error: str) -> Row:
    row = _row(UNDECODABLE, source, 0)
    _put(row, "error", error[:ERROR_LENGTH])
    return row


def _row(entry: str, source: Source, index: int) -> Row:
    row: Row = [None] * _WIDTH
    row[0], row[1], row[2], row[3] = source.source, entry, source.shard, source.offset
    row[4], row[5] = index, source.appended_ms
    return row


def _put(row: Row, column: str, value: object) -> None:
    row[PLACE[column]] = value


_TOKEN, _EPOCH, _SEQUENCE, _AT_MS = (PLACE[name] for name in ("token", "epoch", "sequence", "at_ms"))


def as_documents(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Name the columns of rows, leaving out what is null: for tests and for the eye."""
    return [{name: row[place] for name, place in PLACE.items() if row[place] is not None} for row in rows]
