"""The log's rules of validity, R1 to R9, as one fold that every reader of a shard runs."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from drover.errors import CorruptLogError, UnknownSchemaError
from drover.events.codec import UndecodableError, chain_hash, decode_record
from drover.events.records import Acquire, Batch, Cursor, Genesis, Outcome, Record
from drover.fold.decided_commands import DecidedCommand, DecidedCommands, source_of
from drover.fold.evolve import apply_all
from drover.state.cluster import ClusterState
from drover.state.hashing import state_hash

# The interval, in log time, at which expired ids are removed.
EXPIRY_EVERY_MS = 60_000


class RecordVerdict(StrEnum):
    """The verdict about one record of the log."""

    GENESIS = "genesis"
    ACQUIRED = "acquired"
    STALE_ACQUIRE = "stale-acquire"
    VALID = "valid"
    FENCED = "fenced"
    VOID = "void"


class Rule(StrEnum):
    """The rules for a record of the log; the names are public, `drover audit verify` shows them."""

    SCHEMA = "schema"
    GENESIS = "genesis"
    EPOCH = "epoch"
    SEQUENCE = "sequence"
    CHAIN = "chain"
    TIME = "time"
    CURSOR = "cursor"
    STATE_HASH = "state-hash"
    EVENTS = "events"


class Fault(NamedTuple):
    """A rule that a record breaks, and how."""

    rule: Rule
    detail: str


class Folded(msgspec.Struct, frozen=True, gc=False):
    """A judged record; `record` is None for a void record that cannot be decoded."""

    offset: int
    verdict: RecordVerdict
    record: Record | None


class Damage(NamedTuple):
    """A record that stops every reader of its shard until an acquire names it: its offset, and its fault."""

    offset: int
    detail: str


class ShardState:
    """The states of a shard's clusters; a cluster appears with its first event."""

    __slots__ = ("clusters",)

    def __init__(self) -> None:
        self.clusters: dict[str, ClusterState] = {}

    def cluster(self, name: str) -> ClusterState:
        """Return the cluster's state, empty if the log has not named it yet."""
        state = self.clusters.get(name)
        if state is None:
            state = self.clusters[name] = ClusterState(name)
        return state

    def copy(self) -> "ShardState":
        """Return an independent copy."""
        copy = ShardState()
        copy.clusters = {name: state.copy() for name, state in self.clusters.items()}
        return copy

    def hash(self) -> bytes:
        """Hash the whole state of this shard; see `drover.state.hashing`."""
        return state_hash(self.clusters)


class ShardFold:
    """One shard of the log, folded from its first record, or from a snapshot (`drover.fold.snapshot`).

    `position` is the next offset to fold; records below it are ignored, so that delivery may repeat. `cursors` is empty
    until the first valid batch; `chain` is the hash of the last one and `chain_offset` its offset, -1 before it.
    Raises `UnknownSchemaError` for a record of a newer Drover, `CorruptLogError` for one that breaks a rule. From then
    on `damage` names that record, the state is the one before it, and every record is void until an acquire resumes the
    shard there.
    """

    __slots__ = (
        "at_ms",
        "chain",
        "chain_offset",
        "cursors",
        "damage",
        "decided_commands",
        "epoch",
        "fenced_batches",
        "generation",
        "group",
        "owner",
        "position",
        "sequence",
        "shard",
        "shards",
        "stale_acquires",
        "state",
        "token",
        "void_records",
    )

    def __init__(self, shard: int, shards: int) -> None:
        self.shard = shard
        self.shards = shards
        self.position = 0
        self.epoch = 0
        self.token = b""
        self.owner = ""
        self.group = ""
        self.generation = 0
        self.sequence = 0
        self.chain = b""
        self.chain_offset = -1
        self.cursors: tuple[Cursor, ...] = ()
        self.at_ms = 0
        self.decided_commands = DecidedCommands()
        self.state = ShardState()
        self.fenced_batches = 0
        self.stale_acquires = 0
        self.void_records = 0
        self.damage: Damage | None = None

    def copy(self) -> "ShardFold":
        """Return an independent copy; the values inside are frozen and shared."""
        copy = ShardFold(self.shard, self.shards)
        copy.take_over(self)
        copy.decided_commands = self.decided_commands.copy()
        copy.state = self.state.copy()
        return copy

    def take_over(self, other: "ShardFold") -> None:
        """Take over the content of `other`, which must not be used afterwards."""
        for field in ShardFold.__slots__:
            setattr(self, field, getattr(other, field))

    def fold(self, offset: int, payload: bytes) -> Folded | None:
        """Judge a record and apply it; None for a record that was folded before."""
        if offset < self.position:
            return None
        self.position = offset + 1
        try:
            record = decode_record(payload)
            if self.damage is None:
                return Folded(offset, self._judge(offset, record, payload), record)
        except UndecodableError as error:
            if self.damage is None and self.may_count(payload):
                self.damage = Damage(offset, str(error))
                raise UnknownSchemaError(f"{self._where(offset)}: {error}") from error
            return self._void(offset, None)
        except CorruptLogError as error:
            self.damage = Damage(offset, str(error))
            raise
        return self._after_damage(offset, record, self.damage)

    def fold_on(self, offset: int, payload: bytes) -> Folded | None:
        """Fold a record like `fold`, but continue after damage, which `damage` reports; None for the damaged record."""
        try:
            return self.fold(offset, payload)
        except CorruptLogError:
            return None

    def may_count(self, payload: bytes) -> bool:
        """Whether an unreadable record may be the owner's: it contains the current token. Any other is void (R9)."""
        return bool(self.token) and self.token in payload

    def _after_damage(self, offset: int, record: Record, damage: Damage) -> Folded:
        if isinstance(record, Acquire) and record.resumes_after == damage.offset and record.epoch == self.epoch + 1:
            verdict = self._acquire(record)
            self.damage = None
            return Folded(offset, verdict, record)
        return self._void(offset, record)

    def _void(self, offset: int, record: Record | None) -> Folded:
        self.void_records += 1
        return Folded(offset, RecordVerdict.VOID, record)

    def _judge(self, offset: int, record: Record, payload: bytes) -> RecordVerdict:
        # Compare types, because nearly all records are batches, and `isinstance` is ten times slower with structs.
        if type(record) is Batch:
            return self._batch(offset, record, payload)
        if type(record) is Acquire:
            return self._acquire(record)
        assert type(record) is Genesis
        return self._genesis(offset, record)

    def _genesis(self, offset: int, record: Genesis) -> RecordVerdict:
        if self.epoch:
            # Only the first record of a shard is one; this one carries no token.
            self.void_records += 1
            return RecordVerdict.VOID
        if record.shards != self.shards or record.shard != self.shard:
            raise CorruptLogError(
                f"{self._where(offset)}: the log was begun as shard {record.shard} of {record.shards}, "
                f"but the topic has {self.shards} partitions: shards are fixed for ever"
            )
        return RecordVerdict.GENESIS

    def _acquire(self, record: Acquire) -> RecordVerdict:
        # R1: a compare-and-swap on the epoch.
        if record.epoch != self.epoch + 1:
            self.stale_acquires += 1
            return RecordVerdict.STALE_ACQUIRE
        if record.resumes_after is not None and self.damage is None:
            # An administrator's acquire for damage that does not exist.
            self.stale_acquires += 1
            return RecordVerdict.STALE_ACQUIRE
        self.epoch, self.token, self.owner = record.epoch, record.token, record.owner
        self.group, self.generation = record.group, record.generation
        return RecordVerdict.ACQUIRED

    def _batch(self, offset: int, record: Batch, payload: bytes) -> RecordVerdict:
        if record.token != self.token:
            self.fenced_batches += 1
            return RecordVerdict.FENCED
        faults = self.faults(record)
        if faults:
            raise CorruptLogError(f"{self._where(offset)}: {'; '.join(fault.detail for fault in faults)}")
        is_next_minute = self.at_ms // EXPIRY_EVERY_MS != record.at_ms // EXPIRY_EVERY_MS
        self.follow(offset, record, payload)
        if is_next_minute:
            self.decided_commands.expire(self.at_ms)
        self._remember(offset, record.outcomes)
        self.apply(offset, record)
        return RecordVerdict.VALID

    def apply(self, _offset: int, record: Batch) -> None:
        """Apply the events of a valid batch; subclasses that need each event extend this."""
        apply_all(self.state.cluster, record.events, record.at_ms)

    def follow(self, offset: int, record: Batch, payload: bytes) -> None:
        """Make this batch the last valid one without judging or applying it; for `drover.fold.inspection`."""
        self.sequence = record.sequence
        self.chain = chain_hash(payload)
        self.chain_offset = offset
        self.cursors = record.cursors
        self.at_ms = record.at_ms

    def faults(self, record: Batch) -> list[Fault]:
        """Return each rule that the next batch under the current token breaks (R6)."""
        faults: list[Fault] = []
        if record.epoch != self.epoch:
            faults.append(Fault(Rule.EPOCH, f"epoch {record.epoch} instead of {self.epoch}"))
        if record.sequence != self.sequence + 1:
            faults.append(Fault(Rule.SEQUENCE, f"sequence {record.sequence} instead of {self.sequence + 1}"))
        if record.previous_hash != self.chain:
            faults.append(Fault(Rule.CHAIN, "the chain hash of its predecessor is wrong"))
        if record.at_ms < self.at_ms:
            faults.append(Fault(Rule.TIME, f"its time {record.at_ms} lies before {self.at_ms}"))
        if record.cursors != self.cursors and any(map(_regresses, self.cursors, record.cursors)):
            faults.append(Fault(Rule.CURSOR, "a cursor goes back"))
        if record.state_hash is not None and not faults and record.state_hash != self.state.hash():
            faults.append(Fault(Rule.STATE_HASH, "its state hash differs from the replayed state"))
        return faults

    def _remember(self, offset: int, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.verdict != "duplicate" and outcome.digest:
                command = DecidedCommand(outcome.digest, offset, self.at_ms, source_of(outcome.by), outcome.by)
                self.decided_commands.add((outcome.cluster, outcome.id), command)

    def _where(self, offset: int) -> str:
        return f"event log shard {self.shard} offset {offset}"


def _regresses(old: Cursor, new: Cursor) -> bool:
    return old.topic_id == new.topic_id and new.next_offset < old.next_offset
