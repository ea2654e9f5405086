"""Find every record of a shard that breaks a rule of the log; an inspection goes on where a reader must stop.

It runs `drover.fold.log` while no rule is broken. After a record that breaks one, it goes on from the record itself. It
derives the state as long as no event can be missing or false; after that, it checks only the rules that need no state.
"""

from msgspec import Struct
from msgspec.structs import replace

from drover.errors import CorruptLogError, UnknownSchemaError
from drover.events.codec import UndecodableError, chain_hash, decode_record
from drover.events.records import Acquire, Batch, Genesis, Record
from drover.fold.evolve import apply_all
from drover.fold.log import Fault, Folded, RecordVerdict, Rule, ShardFold

# After a break of these rules an event is missing or false, so that later decisions were based on another state.
_STATE_IS_LOST = frozenset({Rule.SCHEMA, Rule.SEQUENCE, Rule.STATE_HASH})
# The exceptions of `drover.fold.evolve.apply` for an event that no decision could have written.
_IMPOSSIBLE = (AssertionError, KeyError)


class Finding(Struct, frozen=True):
    """One rule that the record at `offset` breaks."""

    shard: int
    offset: int
    rule: Rule
    what: str


class Summary(Struct, frozen=True, kw_only=True):
    """The result of inspecting a shard.

    `state_hashes` counts the hashes that were recomputed and agree, `unchecked_hashes` those after a record from which
    the state could not be derived. `state_hash` is that of the state after the last record, None if it could not be
    derived.
    """

    shard: int
    records: int
    batches: int
    fenced_batches: int
    stale_acquires: int
    findings: int
    state_hashes: int
    unchecked_hashes: int
    state_hash: bytes | None


class Inspection:
    """Inspects a shard record by record, from the first one."""

    def __init__(self, shard: int, shards: int) -> None:
        self._fold = ShardFold(shard, shards)
        self._is_derived = True
        # The chain hash of a record that could not be read, until the next batch shows whether it was valid.
        self._unread = b""
        self._records = self._batches = self._findings = self._state_hashes = self._unchecked_hashes = 0

    def see(self, offset: int, payload: bytes) -> tuple[Finding, ...]:
        """Inspect the next record and return its faults. Offsets must rise, and may have gaps."""
        self._records += 1
        faults: tuple[Fault, ...] = ()
        if self._is_derived:
            try:
                folded = self._fold.fold(offset, payload)
            except CorruptLogError:
                self._fold.damage = None
                faults = self._judge(offset, payload)
            except _IMPOSSIBLE as error:
                # The fold had taken the batch before it applied the events; some may have been applied.
                self._batches += 1
                faults = (self._impossible(error),)
            else:
                assert folded is not None, f"offset {offset} was seen before"
                self._count(folded)
        else:
            faults = self._judge(offset, payload)
        self._fold.position = offset + 1
        self._findings += len(faults)
        return tuple(Finding(self._fold.shard, offset, fault.rule, fault.detail) for fault in faults)

    def summary(self) -> Summary:
        """Summarize the inspection so far."""
        fold = self._fold
        return Summary(
            shard=fold.shard,
            records=self._records,
            batches=self._batches,
            fenced_batches=fold.fenced_batches,
            stale_acquires=fold.stale_acquires,
            findings=self._findings,
            state_hashes=self._state_hashes,
            unchecked_hashes=self._unchecked_hashes,
            state_hash=fold.state.hash() if self._is_derived else None,
        )

    def _count(self, folded: Folded) -> None:
        if folded.verdict is RecordVerdict.VALID and isinstance(folded.record, Batch):
            self._batches += 1
            self._state_hashes += folded.record.state_hash is not None

    def _judge(self, offset: int, payload: bytes) -> tuple[Fault, ...]:
        """Judge a record that the fold rejects, or that follows a rejected one."""
        try:
            record: Record = decode_record(payload)
        except UndecodableError as error:
            if not self._fold.may_count(payload):
                self._fold.void_records += 1
                return ()
            self._unread = chain_hash(payload)
            self._is_derived = False
            return (Fault(Rule.SCHEMA, str(error)),)
        match record:
            case Genesis():
                # The fold takes it only if it is the right one.
                is_right = self._fold.epoch > 0 or (record.shard, record.shards) == (
                    self._fold.shard,
                    self._fold.shards,
                )
                words = f"begun as shard {record.shard} of {record.shards}, but the topic has {self._fold.shards}"
                return () if is_right else (Fault(Rule.GENESIS, words),)
            case Batch() if record.token == self._fold.token:
                return self._judge_batch(offset, record, payload)
            case Acquire() | Batch():
                # Acquires and fenced records are not part of the state.
                self._fold.fold(offset, payload)
                return ()

    def _judge_batch(self, offset: int, record: Batch, payload: bytes) -> tuple[Fault, ...]:
        if record.previous_hash == self._unread and self._unread:
            # The unreadable record was a batch, and the chain goes on from its bytes: they are as its owner wrote them.
            self._fold.chain, self._fold.sequence = self._unread, record.sequence - 1
        self._unread = b""
        faults = self._faults(record)
        if any(fault.rule is Rule.SEQUENCE for fault in faults) and record.sequence <= self._fold.sequence:
            # A record is repeated: the log goes on from where it was.
            return faults
        self._batches += 1
        self._fold.follow(offset, record, payload)
        self._is_derived = self._is_derived and not any(fault.rule in _STATE_IS_LOST for fault in faults)
        if self._is_derived:
            try:
                apply_all(self._fold.state.cluster, record.events, record.at_ms)
            except _IMPOSSIBLE as error:
                return (*faults, self._impossible(error))
        return faults

    def _faults(self, record: Batch) -> tuple[Fault, ...]:
        bare = replace(record, state_hash=None)
        faults = tuple(self._fold.faults(bare))
        if record.state_hash is None:
            return faults
        if faults or not self._is_derived:
            self._unchecked_hashes += 1
            return faults
        try:
            return tuple(self._fold.faults(record))
        except UnknownSchemaError as error:
            return (Fault(Rule.SCHEMA, str(error)),)

    def _impossible(self, error: Exception) -> Fault:
        self._is_derived = False
        cause = f"there is nothing named {error}" if isinstance(error, KeyError) else str(error)
        return Fault(Rule.EVENTS, f"an event cannot follow what comes before it: {cause}")
