"""The codec: round trips in both encodings, an independent codec in both directions, and what is refused."""

import json
from typing import Any

import msgpack
import msgspec
import pytest

from drover.events.codec import (
    MAX_COMMAND_BYTES,
    Malformed,
    UndecodableError,
    clusters_of,
    command_digest,
    decode_command,
    decode_progress,
    decode_record,
    encode_command,
    encode_progress,
    encode_record,
    record_headers,
)
from drover.events.commands import Alter, AnyCommand, PartitionTarget
from drover.events.plans import Priority, Stepping
from drover.events.records import SCHEMA_VERSION, Record
from tests.events.command_samples import COMMANDS
from tests.events.kinds import COMMAND_TYPES, with_independent_codec
from tests.events.progress_samples import PROGRESS
from tests.events.samples import EVENTS, RECORDS, TOKEN, batch_of

COMMAND_VALUES = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
RECORD_VALUES = pytest.mark.parametrize(
    "record", [*RECORDS.values(), *(batch_of(event) for event in EVENTS.values())], ids=[*RECORDS, *EVENTS]
)
FREEZE: dict[str, Any] = {"type": "freeze", "id": "f-1", "cluster": "local", "by": "ann", "reason": "incident 7"}
ALTER: dict[str, Any] = {
    **FREEZE,
    "type": "alter",
    "id": "a-1",
    "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}],
}
CANCEL: dict[str, Any] = {**FREEZE, "type": "cancel", "mode": "rollback"}


def packed(content: dict[str, Any]) -> bytes:
    """Encode with the independent codec."""
    encoded: bytes = msgpack.packb(content)
    return encoded


def refused(content: dict[str, Any]) -> Malformed:
    """Decode what must be refused, in both encodings; both must say whose it was."""
    from_msgpack = decode_command(packed(content))
    from_json = decode_command(json.dumps(content).encode())
    assert isinstance(from_msgpack, Malformed)
    assert isinstance(from_json, Malformed)
    assert (from_json.id, from_json.cluster, from_json.type) == (
        from_msgpack.id,
        from_msgpack.cluster,
        from_msgpack.type,
    )
    return from_msgpack


@COMMAND_VALUES
@pytest.mark.parametrize("as_json", [False, True], ids=["msgpack", "json"])
def test_a_command_survives_the_way_there_and_back(command: AnyCommand, *, as_json: bool) -> None:
    assert decode_command(encode_command(command, as_json=as_json)) == command


@RECORD_VALUES
def test_a_record_survives_the_way_there_and_back(record: Record) -> None:
    assert decode_record(encode_record(record)) == record


def test_a_byte_sample_survives_the_way_there_and_back() -> None:
    for sample in PROGRESS.values():
        assert decode_progress(encode_progress(sample)) == sample


@COMMAND_VALUES
def test_the_independent_codec_reads_the_commands_that_drover_writes(command: AnyCommand) -> None:
    assert msgpack.unpackb(encode_command(command)) == with_independent_codec(command)
    assert json.loads(encode_command(command, as_json=True)) == with_independent_codec(command)


@COMMAND_VALUES
def test_drover_reads_the_commands_that_the_independent_codec_writes(command: AnyCommand) -> None:
    content = with_independent_codec(command)
    assert decode_command(packed(content)) == command
    assert decode_command(json.dumps(content, indent=2).encode()) == command


@RECORD_VALUES
def test_both_codecs_read_each_others_records(record: Record) -> None:
    content = with_independent_codec(record)
    assert decode_record(packed(content)) == record
    for event in content.get("events", ()):
        # What its command's outcome says is left out.
        if "command" in event:
            del event["by"], event["reason"]
    assert msgpack.unpackb(encode_record(record)) == content
    assert decode_record(packed(content)) == record


@COMMAND_VALUES
def test_the_digest_does_not_depend_on_the_encoding_or_the_order_of_fields(command: AnyCommand) -> None:
    backwards = dict(reversed(with_independent_codec(command).items()))
    for payload in (encode_command(command, as_json=True), packed(backwards)):
        decoded = decode_command(payload)
        assert not isinstance(decoded, Malformed)
        assert command_digest(decoded) == command_digest(command)


def test_the_digest_covers_defaults_given_or_not() -> None:
    short = decode_command(packed(ALTER))
    long = decode_command(packed({**ALTER, "version": 1, "queue": False, "plan": None, "more": False}))
    assert isinstance(short, Alter)
    assert isinstance(long, Alter)
    assert command_digest(short) == command_digest(long)


@pytest.mark.parametrize("field", Alter.__struct_fields__)
def test_the_digest_changes_with_every_field(field: str) -> None:
    other: dict[str, Any] = {
        "id": "b-1",
        "cluster": "other",
        "by": "bob",
        "reason": "why not",
        "partitions": (PartitionTarget(topic="orders", partition=0, replicas=(2, 1)),),
        "plan": "friday",
        "more": True,
        "throttle_bytes_per_second": 1,
        "throttle_may_rise_to": 10**12,
        "stepping": Stepping.SWAP,
        "priority": Priority.HIGH,
        "windows": "22:00-05:00",
        "queue": True,
        "allow_replication_factor_change": False,
        "allow_drover_topics": True,
        "only_when_idle": True,
        "empties": (3,),
        "fills": (7,),
        "allow_emptied_brokers": True,
        "drops_unregistered": True,
    }
    command = msgspec.convert({**ALTER, "throttle_bytes_per_second": 2}, Alter)
    if field == "version":
        assert "version" not in other, "there is one version only: another is refused"
        assert isinstance(decode_command(packed({**ALTER, "version": 2})), Malformed)
        return
    assert command_digest(msgspec.structs.replace(command, **{field: other[field]})) != command_digest(command)


@pytest.mark.parametrize("required", ["id", "cluster", "by", "reason"])
@pytest.mark.parametrize("kind", [FREEZE, ALTER, {**CANCEL, "all": True}], ids=["freeze", "alter", "cancel"])
def test_what_every_command_needs_must_be_there_and_not_be_empty(required: str, kind: dict[str, Any]) -> None:
    assert not isinstance(decode_command(packed(kind)), Malformed)
    without = {name: value for name, value in kind.items() if name != required}
    assert required in refused(without).detail
    refused({**kind, required: ""})
    refused({**kind, required: None})
    refused({**kind, required: 7})


@pytest.mark.parametrize("kind", COMMAND_TYPES)
def test_an_unknown_field_is_never_silently_ignored(kind: type[msgspec.Struct]) -> None:
    command = next(value for value in COMMANDS.values() if type(value) is kind)
    refused({**with_independent_codec(command), "throtle": 1})


def test_a_command_that_names_another_one_in_after_is_told_to_wait_for_its_outcome() -> None:
    assert "wait for the outcome of the other command" in refused({**FREEZE, "after": ["a"]}).detail


def test_an_unknown_field_inside_a_partition_is_refused_too() -> None:
    refused({**ALTER, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["any"]}]})
    refused({**CANCEL, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]})


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({**FREEZE, "type": "thaw"}, id="unknown type"),
        pytest.param({key: value for key, value in FREEZE.items() if key != "type"}, id="no type"),
        pytest.param({**FREEZE, "version": 2}, id="version 2"),
        pytest.param({**FREEZE, "cluster": "Local"}, id="cluster in capitals"),
        pytest.param({**FREEZE, "cluster": "a" * 65}, id="cluster too long"),
        pytest.param({**FREEZE, "cluster": "local\n"}, id="cluster with a newline"),
        pytest.param({**FREEZE, "id": "a/b"}, id="id with a slash"),
        pytest.param({**FREEZE, "id": "-a"}, id="id with a dash in front"),
        pytest.param({**FREEZE, "id": "a" * 129}, id="id too long"),
        pytest.param({**ALTER, "plan": ".."}, id="plan of dots"),
        pytest.param({**ALTER, "partitions": []}, id="no partitions"),
        pytest.param({**ALTER, "partitions": ALTER["partitions"] * 2}, id="a partition twice"),
        pytest.param({**ALTER, "partitions": [{"topic": "orders", "partition": 0}]}, id="replicas missing"),
        pytest.param({**ALTER, "partitions": [{"topic": "t", "partition": -1, "replicas": [1]}]}, id="partition -1"),
        pytest.param({**ALTER, "partitions": [{"topic": "t", "partition": 0, "replicas": "12"}]}, id="replicas a text"),
        pytest.param({**ALTER, "partitions": [{"topic": "t", "partition": 0, "replicas": [2**31]}]}, id="broker 2^31"),
        pytest.param({**ALTER, "partitions": [{"topic": "", "partition": 0, "replicas": [1]}]}, id="topic empty"),
        pytest.param({**ALTER, "throttle_bytes_per_second": 0}, id="throttle 0"),
        pytest.param({**ALTER, "queue": 1}, id="queue a number"),
        pytest.param(CANCEL, id="no scope"),
        pytest.param({**CANCEL, "all": False}, id="all false is no scope"),
        pytest.param({**CANCEL, "topics": []}, id="scope empty"),
        pytest.param({**CANCEL, "partitions": []}, id="no partitions to cancel"),
        pytest.param({**CANCEL, "all": True, "plan": "friday"}, id="two scopes"),
        pytest.param({**CANCEL, "all": True, "mode": "pause"}, id="unknown mode"),
        pytest.param({**FREEZE, "type": "blacklist"}, id="no list"),
        pytest.param({**FREEZE, "type": "blacklist", "brokers": [-1]}, id="broker -1"),
        pytest.param({**FREEZE, "type": "broker-failed", "broker": 1}, id="no time"),
        pytest.param({**FREEZE, "type": "broker-failed", "broker": 1, "at_ms": -1}, id="time before 1970"),
        pytest.param({**FREEZE, "type": "broker-returned", "broker": 1.5, "at_ms": 1}, id="half a broker"),
    ],
)
def test_what_the_contract_does_not_allow_is_refused_in_both_encodings(content: dict[str, Any]) -> None:
    assert refused(content).detail


def test_a_negative_broker_in_a_replica_list_is_not_malformed_but_the_partitions_own_fault() -> None:
    command = decode_command(packed({**ALTER, "partitions": [{"topic": "t", "partition": 0, "replicas": [-1]}]}))
    assert isinstance(command, Alter)


def test_a_refusal_still_says_whose_it_is_where_that_can_be_read() -> None:
    found = refused({**FREEZE, "typo": True})
    assert (found.id, found.cluster, found.by, found.type) == ("f-1", "local", "ann", "freeze")
    assert decode_command(b"\xc1").__class__ is Malformed
    assert refused({**FREEZE, "id": ["a"], "reason": 7}).id is None


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/octet-stream"])
def test_a_content_type_that_names_neither_is_as_none(content_type: str) -> None:
    text = json.dumps(FREEZE).encode()
    assert decode_command(text, content_type) == decode_command(packed(FREEZE), content_type) == decode_command(text)
    assert not isinstance(decode_command(text), Malformed)


def test_the_content_type_decides_how_a_command_is_read() -> None:
    text = json.dumps(FREEZE).encode()
    assert decode_command(text, "application/json; charset=utf-8") == decode_command(text)
    assert isinstance(decode_command(text, "application/msgpack"), Malformed)
    assert isinstance(decode_command(packed(FREEZE), "application/json"), Malformed)
    assert decode_command(b" \n\t" + text) == decode_command(text)


def test_a_command_of_one_mebibyte_is_read_and_a_byte_more_is_refused() -> None:
    text = json.dumps(FREEZE).encode()
    fits = text + b" " * (MAX_COMMAND_BYTES - len(text))
    assert len(fits) == MAX_COMMAND_BYTES
    assert not isinstance(decode_command(fits), Malformed)
    over = decode_command(fits + b" ")
    assert isinstance(over, Malformed)
    assert str(MAX_COMMAND_BYTES) in over.detail


@pytest.mark.parametrize("kind", ["genesis", "acquire", "batch"])
def test_readers_stop_at_a_newer_schema(kind: str) -> None:
    content = {**with_independent_codec(RECORDS[kind]), "schema": SCHEMA_VERSION + 1}
    with pytest.raises(UndecodableError, match="upgrade"):
        decode_record(packed(content))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({**with_independent_codec(RECORDS["batch"]), "kind": "snapshot"}, id="unknown kind"),
        pytest.param(
            {**with_independent_codec(RECORDS["batch"]), "events": [{"type": "shrugged", "cluster": "local"}]},
            id="unknown event",
        ),
        pytest.param({"schema": 1}, id="no kind"),
        pytest.param({**with_independent_codec(RECORDS["batch"]), "token": "text"}, id="wrong type"),
    ],
)
def test_readers_stop_at_what_they_do_not_know(content: dict[str, Any]) -> None:
    with pytest.raises(UndecodableError):
        decode_record(packed(content))


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_readers_stop_at_damaged_bytes(cut: int) -> None:
    with pytest.raises(UndecodableError):
        decode_record(encode_record(RECORDS["batch-with-everything"])[:cut])


def test_a_field_that_a_later_version_added_to_an_event_is_passed_over() -> None:
    content = with_independent_codec(batch_of(EVENTS["plan-opened"]))
    content["events"][0]["colour"] = "blue"
    assert decode_record(packed(content)) == batch_of(EVENTS["plan-opened"])


def test_a_byte_sample_that_cannot_be_read_is_passed_over() -> None:
    assert decode_progress(b"nonsense") is None
    assert decode_progress(packed({**with_independent_codec(PROGRESS["progress"]), "kind": "newer"})) is None


@pytest.mark.parametrize(
    ("name", "field", "number"),
    [
        ("progress", "bytes_done", 2**63),
        ("progress", "partition", 2**31),
        ("projection", "lag_events", 2**63),
        ("projection", "lag_ms", -1),
        ("projection", "at_ms", 2**53),
        ("worker", "at_ms", -(2**63)),
        ("worker", "shards", [{"shard": 0, "epoch": 2**63}]),
    ],
)
def test_a_sample_with_a_number_that_stands_for_nothing_is_passed_over(name: str, field: str, number: object) -> None:
    content = with_independent_codec(PROGRESS[name])
    assert decode_progress(packed(content)) == PROGRESS[name]
    assert decode_progress(packed({**content, field: number})) is None


def test_the_headers_repeat_what_readers_filter_by() -> None:
    assert record_headers(RECORDS["genesis"]) == (("kind", b"genesis"), ("schema", b"1"))
    assert record_headers(RECORDS["acquire"]) == (
        ("kind", b"acquire"),
        ("schema", b"1"),
        ("token", TOKEN),
        ("epoch", b"3"),
    )
    batch = batch_of(EVENTS["plan-opened"], msgspec.structs.replace(EVENTS["cluster-frozen"], cluster="east"))
    assert clusters_of(batch) == ("east", "local")
    assert [value for name, value in record_headers(batch) if name == "cluster"] == [b"east", b"local"]
