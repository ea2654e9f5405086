"""The log's validity rules: what counts, what is ignored, and what stops every reader."""

from typing import Any

import msgspec
import pytest

from drover.errors import CorruptLogError, UnknownSchemaError
from drover.events.clusters import ClusterFrozen, ClusterUnfrozen
from drover.events.codec import chain_hash, encode_record
from drover.events.records import SCHEMA_VERSION, Acquire, Batch, Cursor, Genesis, Outcome
from drover.fold.decided_commands import IDENTITY_RETENTION_MS
from drover.fold.log import RecordVerdict, ShardFold

GENESIS = encode_record(Genesis(schema=SCHEMA_VERSION, shards=6, shard=2))
FROZEN = ClusterFrozen(cluster="local", by="ana", reason="r")


class Log:
    """A shard of the log and its fold, written record by record."""

    def __init__(self) -> None:
        self.fold = ShardFold(2, 6)
        self.payloads: list[bytes] = []
        assert self.append(GENESIS) is RecordVerdict.GENESIS

    def append(self, payload: bytes) -> RecordVerdict:
        folded = self.fold.fold(len(self.payloads), payload)
        self.payloads.append(payload)
        assert folded is not None
        return folded.verdict

    def acquire(self, epoch: int, token: bytes = b"one") -> RecordVerdict:
        record = Acquire(schema=SCHEMA_VERSION, epoch=epoch, token=token, owner="w", group="g", generation=1)
        return self.append(encode_record(record))

    def payload(self, **fields: Any) -> bytes:
        """The batch that would be right now, but for the given fields."""
        values: dict[str, Any] = {
            "schema": SCHEMA_VERSION,
            "token": self.fold.token,
            "epoch": self.fold.epoch,
            "sequence": self.fold.sequence + 1,
            "at_ms": self.fold.at_ms + 1,
            "cursors": cursors(0),
            "previous_hash": self.fold.chain,
        }
        return encode_record(Batch(**(values | fields)))

    def batch(self, **fields: Any) -> RecordVerdict:
        return self.append(self.payload(**fields))


def cursors(*offsets: int) -> tuple[Cursor, ...]:
    return tuple(Cursor(f"id-{place}", offset) for place, offset in enumerate(offsets))


def outcome(command: str, digest: bytes = b"d", verdict: Any = "accepted") -> Outcome:
    return Outcome(
        id=command, cluster="local", type="freeze", by="a", reason="r", topic="t", offset=0, verdict=verdict,
        digest=digest,
    )  # fmt: skip


@pytest.fixture
def log() -> Log:
    made = Log()
    assert made.acquire(1) is RecordVerdict.ACQUIRED
    return made


def test_an_acquire_is_a_compare_and_swap_on_the_epoch(log: Log) -> None:
    """R1."""
    assert log.acquire(1, b"late") is RecordVerdict.STALE_ACQUIRE
    assert log.acquire(3, b"early") is RecordVerdict.STALE_ACQUIRE
    assert log.fold.token == b"one"
    assert log.fold.stale_acquires == 2
    assert log.acquire(2, b"two") is RecordVerdict.ACQUIRED
    assert (log.fold.token, log.fold.epoch) == (b"two", 2)


def test_a_batch_counts_only_under_the_current_token(log: Log) -> None:
    """R2: the batch of a zombie is ignored whole, whatever else is wrong with it."""
    assert log.batch(events=(FROZEN,)) is RecordVerdict.VALID
    log.acquire(2, b"two")
    unfrozen = ClusterUnfrozen(cluster="local", by="ana", reason="r")
    assert log.batch(token=b"one", epoch=1, sequence=77, events=(unfrozen,)) is RecordVerdict.FENCED
    assert log.fold.state.cluster("local").freeze is not None
    assert log.fold.fenced_batches == 1
    assert log.batch() is RecordVerdict.VALID


def test_sequence_and_chain_go_on_over_a_change_of_owner(log: Log) -> None:
    log.batch()
    log.acquire(2, b"two")
    assert log.fold.sequence == 1
    assert log.fold.chain == chain_hash(log.payloads[2])
    assert log.batch(sequence=2) is RecordVerdict.VALID


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sequence": 1}, "sequence 1 instead of 2"),
        ({"sequence": 3}, "sequence 3 instead of 2"),
        ({"epoch": 2}, "epoch 2 instead of 1"),
        ({"previous_hash": b"wrong"}, "chain hash"),
        ({"cursors": cursors(4)}, "a cursor goes back"),
        ({"at_ms": 0}, "its time 0 lies before"),
        ({"state_hash": b"wrong"}, "state hash differs"),
    ],
)
def test_under_the_current_token_anything_out_of_order_is_corruption(
    log: Log, fields: dict[str, Any], words: str
) -> None:
    """R6: it stops every reader and is never skipped."""
    log.batch(cursors=cursors(5), events=(FROZEN,))
    values = {"cursors": cursors(5)} | fields
    with pytest.raises(CorruptLogError, match=words):
        log.batch(**values)


def test_time_never_goes_back(log: Log) -> None:
    log.batch(at_ms=1_800_000_000_000, outcomes=(outcome("a"),))
    assert log.batch(at_ms=1_800_000_000_000, outcomes=(outcome("b"),)) is RecordVerdict.VALID
    with pytest.raises(CorruptLogError, match="lies before"):
        log.batch(at_ms=1_799_999_999_999)


def test_cursors_of_another_topic_incarnation_do_not_regress(log: Log) -> None:
    log.batch(cursors=(Cursor("old", 5),))
    assert log.batch(cursors=(Cursor("new", 0),)) is RecordVerdict.VALID


def test_the_right_state_hash_is_the_one_before_the_batch(log: Log) -> None:
    log.batch(events=(FROZEN,))
    before = log.fold.state.hash()
    assert (
        log.batch(state_hash=before, events=(ClusterUnfrozen(cluster="local", by="a", reason="r"),))
        is RecordVerdict.VALID
    )
    assert log.fold.state.hash() != before


def test_a_genesis_of_another_shape_stops_the_reader() -> None:
    """Shards are fixed for ever."""
    for shards, shard in ((5, 2), (6, 1)):
        record = encode_record(Genesis(schema=SCHEMA_VERSION, shards=shards, shard=shard))
        with pytest.raises(CorruptLogError, match="shards are fixed"):
            ShardFold(2, 6).fold(0, record)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"\x00\x01random",
        b"\x82" + b"\xff" * 1000,
        msgspec.msgpack.encode({"kind": "novelty", "schema": 1}),
        msgspec.msgpack.encode({"kind": "genesis", "schema": SCHEMA_VERSION + 1, "shards": 6, "shard": 2}),
        msgspec.msgpack.encode({"kind": "batch", "schema": SCHEMA_VERSION + 1, "token": b"another"}),
        msgspec.msgpack.encode({"kind": "acquire", "schema": SCHEMA_VERSION + 1, "epoch": 2, "token": b"another"}),
        encode_record(Genesis(schema=SCHEMA_VERSION, shards=5, shard=2)),
    ],
)
def test_what_does_not_carry_the_current_token_is_void_and_need_not_be_understood(log: Log, payload: bytes) -> None:
    """R9: anybody who may write to the topic can write such a record; no reader stops at it."""
    log.batch(events=(FROZEN,))
    before = log.fold.state.hash()
    assert log.append(payload) is RecordVerdict.VOID
    assert log.batch() is RecordVerdict.VALID
    assert (log.fold.state.hash(), log.fold.void_records, log.fold.damage) == (before, 1, None)


@pytest.mark.parametrize(
    "payload",
    [
        b"\x00one\x01random",
        msgspec.msgpack.encode({"kind": "novelty", "schema": 1, "token": b"one"}),
        msgspec.msgpack.encode({"kind": "batch", "schema": SCHEMA_VERSION + 1, "token": b"one"}),
    ],
)
def test_what_cannot_be_read_under_the_current_token_stops_the_reader(log: Log, payload: bytes) -> None:
    """R9: it may be the owner's, of a newer Drover or damaged."""
    log.batch(events=(FROZEN,))
    before = log.fold.state.hash()
    with pytest.raises(UnknownSchemaError):
        log.append(payload)
    assert log.fold.damage is not None
    assert (log.fold.damage.offset, log.fold.state.hash()) == (3, before)


def resumed(log: Log, epoch: int, resumes_after: int) -> RecordVerdict:
    record = Acquire(
        schema=SCHEMA_VERSION, epoch=epoch, token=b"admin", owner="eve", group="", generation=0,
        resumes_after=resumes_after,
    )  # fmt: skip
    return log.append(encode_record(record))


def test_an_acquire_that_names_the_damage_resumes_the_shard_with_the_state_before_it(log: Log) -> None:
    log.batch(events=(FROZEN,))
    before, chain = log.fold.state.hash(), log.fold.chain
    with pytest.raises(CorruptLogError):
        log.batch(sequence=9)
    log.payloads.append(b"")
    unfrozen = ClusterUnfrozen(cluster="local", by="ana", reason="r")
    # Whatever follows is void: the owner has not seen the damage yet, or another worker wants the shard.
    assert log.batch(events=(unfrozen,)) is RecordVerdict.VOID
    assert log.acquire(2, b"two") is RecordVerdict.VOID
    assert log.append(b"\xc1 one") is RecordVerdict.VOID
    assert resumed(log, 2, resumes_after=2) is RecordVerdict.VOID
    assert resumed(log, 3, resumes_after=3) is RecordVerdict.VOID
    assert resumed(log, 2, resumes_after=3) is RecordVerdict.ACQUIRED
    assert (log.fold.state.hash(), log.fold.chain, log.fold.damage) == (before, chain, None)
    assert log.batch(events=(unfrozen,)) is RecordVerdict.VALID
    assert log.acquire(3, b"three") is RecordVerdict.ACQUIRED


def test_an_acquire_that_names_damage_where_there_is_none_is_stale(log: Log) -> None:
    log.batch()
    assert resumed(log, 2, resumes_after=2) is RecordVerdict.STALE_ACQUIRE
    assert log.fold.token == b"one"


def test_an_event_with_an_unknown_tag_stops_the_reader(log: Log) -> None:
    content = msgspec.msgpack.decode(log.payload(events=(FROZEN,)))
    content["events"][0]["type"] = "cluster-melted"
    with pytest.raises(UnknownSchemaError):
        log.append(msgspec.msgpack.encode(content))


def test_a_field_that_is_not_known_is_passed_over(log: Log) -> None:
    content = msgspec.msgpack.decode(log.payload(events=(FROZEN,)))
    content["events"][0]["novelty"] = 1
    assert log.append(msgspec.msgpack.encode(content)) is RecordVerdict.VALID


def test_a_record_delivered_twice_counts_once(log: Log) -> None:
    """S14."""
    payload = log.payload(events=(FROZEN,))
    log.append(payload)
    assert log.fold.fold(2, payload) is None
    assert log.fold.fold(0, GENESIS) is None
    assert log.fold.sequence == 1


# -- identities, rule R5


def test_the_first_outcome_of_an_identity_is_remembered(log: Log) -> None:
    log.batch(outcomes=(outcome("a", b"one"), outcome("a", b"two", "refused"), outcome("b", b"", "refused")))
    log.batch(outcomes=(outcome("a", b"one", "duplicate"),))
    known = log.fold.decided_commands
    first = known.get(("local", "a"))
    assert first is not None
    assert (first.digest, first.offset) == (b"one", 2)
    assert known.get(("local", "b")) is None


def test_an_identity_is_forgotten_after_seven_days_of_log_time(log: Log) -> None:
    log.batch(at_ms=1000, outcomes=(outcome("a"),))
    log.batch(at_ms=1000 + IDENTITY_RETENTION_MS - 1)
    assert len(log.fold.decided_commands) == 1
    log.batch(at_ms=60_000 + IDENTITY_RETENTION_MS)
    assert len(log.fold.decided_commands) == 0


def test_an_identity_that_is_used_anew_after_seven_days_is_remembered_again(log: Log) -> None:
    log.batch(at_ms=1000, outcomes=(outcome("a", b"old"),))
    log.batch(at_ms=1000 + IDENTITY_RETENTION_MS, outcomes=(outcome("a", b"new"),))
    log.batch(at_ms=60_000 + IDENTITY_RETENTION_MS)
    known = log.fold.decided_commands.get(("local", "a"))
    assert known is not None
    assert known.digest == b"new"
