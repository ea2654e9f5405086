"""PURE: find the outcomes of commands in the folded records of their shard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from drover.errors import DroverError
from drover.events.commands import Command
from drover.events.records import Batch, Outcome
from drover.fold.log import Folded, RecordVerdict, ShardFold
from drover.state.identity import Outage


@dataclass(frozen=True, slots=True)
class Sent:
    """A command that is durable in its topic, and its place there."""

    command: Command
    topic: str
    shard: int
    offset: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The recorded outcome of a command and the record that holds it.

    `repeated` says that the same command had been decided before; `outcome` is then its first outcome.
    """

    outcome: Outcome
    shard: int
    offset: int
    at_ms: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of a shard according to its log; `owner` is empty if the shard never had one.

    `last_record_ms` is the broker's time of the shard's last record, and `heard_ms` the owner's time of its last sign
    of life within the last minute; either is None if there is none. `running` holds the last sign of life in that
    minute of each worker, with or without shards. `outage` is set if the owner cannot reach the commands' cluster.
    """

    shard: int
    owner: str
    epoch: int
    last_record_ms: int | None
    heard_ms: int | None = None
    running: Mapping[str, int] = field(default_factory=dict)
    outage: Outage | None = None


class OutcomeMissingError(DroverError):
    """No outcome was recorded in time; the commands remain in their topic, and the shard's owner will decide them.

    `ownership` is None if the log could not be read in that time.
    """

    def __init__(self, sent: Sequence[Sent], answers: Sequence[Answer], ownership: Ownership | None) -> None:
        super().__init__(f"no outcome yet for {len(sent)} of {len(sent) + len(answers)} commands")
        self.sent = tuple(sent)
        self.answers = tuple(answers)
        self.ownership = ownership


class Answers:
    """Collects the outcomes of the commands that were sent; give it every folded record from the shard's first one."""

    def __init__(self, sent: Sequence[Sent]) -> None:
        self._sent = tuple(sent)
        self._wanted: dict[tuple[str, str], list[Sent]] = {}
        for record in sent:
            self._wanted.setdefault((record.command.cluster, record.command.id), []).append(record)
        # Every outcome recorded under the wanted ids, in the order of the log.
        self._recorded: dict[tuple[str, str], list[Answer]] = {identity: [] for identity in self._wanted}
        # Ids that lacked an outcome when they were last checked, and ids that have new outcomes since.
        self._open, self._seen = set(self._wanted), set[tuple[str, str]]()

    def see(self, folded: Folded, shard: int) -> None:
        """Collect the outcomes of a record; only valid batches count."""
        record = folded.record
        if folded.verdict is not RecordVerdict.VALID or not isinstance(record, Batch):
            return
        for outcome in record.outcomes:
            identity = (outcome.cluster, outcome.id)
            if identity in self._recorded:
                self._recorded[identity].append(Answer(outcome, shard, folded.offset, record.at_ms))
                self._seen.add(identity)

    def answer(self, sent: Sent) -> Answer | None:
        """Return the final outcome of a command, or None while it has none."""
        recorded = self._recorded[(sent.command.cluster, sent.command.id)]
        for answer in recorded:
            outcome = answer.outcome
            if outcome.offset == sent.offset and outcome.topic == sent.topic:
                return _first(answer, recorded) if outcome.verdict == "duplicate" else answer
        return None

    def repeated_from(self, *, before: int) -> tuple[int, ...]:
        """Return the offsets below `before` of the first outcomes that duplicates repeat."""
        offsets = {answer.outcome.first_offset for recorded in self._recorded.values() for answer in recorded}
        return tuple(sorted(offset for offset in offsets if offset is not None and offset < before))

    @property
    def complete(self) -> bool:
        """Whether every command has its outcome; checks only the ids that have new outcomes."""
        for identity in self._seen:
            if any(self.answer(sent) is None for sent in self._wanted[identity]):
                # An outcome may belong to an earlier submission under the same id.
                self._open.add(identity)
            else:
                self._open.discard(identity)
        self._seen.clear()
        return not self._open

    def found(self) -> tuple[Answer, ...]:
        """Return the outcomes recorded so far, in the order of the commands."""
        return tuple(answer for sent in self._sent if (answer := self.answer(sent)) is not None)

    def missing(self) -> tuple[Sent, ...]:
        """Return the commands without an outcome."""
        return tuple(sent for sent in self._sent if self.answer(sent) is None)


def _first(duplicate: Answer, recorded: Sequence[Answer]) -> Answer:
    """Return the outcome that a duplicate repeats."""
    where = duplicate.offset if duplicate.outcome.first_offset is None else duplicate.outcome.first_offset
    for answer in recorded:
        if answer.offset == where and answer.outcome.verdict != "duplicate":
            return replace(answer, repeated=True)
    return duplicate


def ownership_of(fold: ShardFold, last_record_ms: int | None, cluster: str) -> Ownership:
    """Return the ownership of a cluster's shard; the shard's log may have no entry of the cluster yet."""
    state = fold.state.clusters.get(cluster)
    outage = None if state is None else state.outage
    return Ownership(fold.shard, fold.owner, fold.epoch, last_record_ms, outage=outage)
