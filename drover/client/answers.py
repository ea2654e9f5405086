"""PURE: finding the outcomes of commands among the folded records of their shard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from drover.errors import DroverError
from drover.events.commands import Command
from drover.events.records import Batch, Outcome
from drover.fold.log import Folded, RecordVerdict, ShardFold
from drover.state.identity import Outage


@dataclass(frozen=True, slots=True)
class Sent:
    """A command that is durable in its topic, and where it is."""

    command: Command
    topic: str
    shard: int
    offset: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The recorded outcome of a command and the record that holds it.

    `repeated` says that the same command had already been decided: `outcome` is that of the first time.
    """

    outcome: Outcome
    shard: int
    offset: int
    at_ms: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of a shard, by its log; `owner` is empty if there has been none.

    `last_record_ms` is the broker's time of the shard's last record, `heard_ms` the owner's of its last sign of life
    within the last minute; None if there is none. `running` holds the last sign of life of each worker that was heard
    of within that minute, whether it owns anything or not. `outage` says that the cluster of the commands is out of the
    owner's reach.
    """

    shard: int
    owner: str
    epoch: int
    last_record_ms: int | None
    heard_ms: int | None = None
    running: Mapping[str, int] = field(default_factory=dict)
    outage: Outage | None = None


class OutcomeMissingError(DroverError):
    """No outcome was recorded in time: the commands remain in their topic, and the shard's owner will decide them.

    `ownership` is None when not even the log could be read in that time.
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
        for one in sent:
            self._wanted.setdefault((one.command.cluster, one.command.id), []).append(one)
        # In the order of the log: every outcome ever recorded under the wanted ids.
        self._recorded: dict[tuple[str, str], list[Answer]] = {identity: [] for identity in self._wanted}
        # Ids that lacked an outcome when they were last looked at, and those of which more was recorded since.
        self._open, self._seen = set(self._wanted), set[tuple[str, str]]()

    def see(self, folded: Folded, shard: int) -> None:
        """Take note of one record; only valid batches matter."""
        record = folded.record
        if folded.verdict is not RecordVerdict.VALID or not isinstance(record, Batch):
            return
        for outcome in record.outcomes:
            identity = (outcome.cluster, outcome.id)
            if identity in self._recorded:
                self._recorded[identity].append(Answer(outcome, shard, folded.offset, record.at_ms))
                self._seen.add(identity)

    def answer(self, sent: Sent) -> Answer | None:
        """Return the final outcome of one command; None while there is none."""
        recorded = self._recorded[(sent.command.cluster, sent.command.id)]
        for answer in recorded:
            outcome = answer.outcome
            if outcome.offset == sent.offset and outcome.topic == sent.topic:
                return _first(answer, recorded) if outcome.verdict == "duplicate" else answer
        return None

    def repeated_from(self, *, before: int) -> tuple[int, ...]:
        """Return the offsets below `before` of the first outcomes that duplicates repeat."""
        found = {answer.outcome.first_offset for recorded in self._recorded.values() for answer in recorded}
        return tuple(sorted(offset for offset in found if offset is not None and offset < before))

    @property
    def complete(self) -> bool:
        """Whether every command has its outcome; only ids of which something was recorded meanwhile are looked at."""
        for identity in self._seen:
            if any(self.answer(sent) is None for sent in self._wanted[identity]):
                # What an earlier record says of a repetition may be that the first command was held.
                self._open.add(identity)
            else:
                self._open.discard(identity)
        self._seen.clear()
        return not self._open

    def found(self) -> tuple[Answer, ...]:
        """Return the outcomes that are there, in the order of the commands."""
        return tuple(answer for sent in self._sent if (answer := self.answer(sent)) is not None)

    def missing(self) -> tuple[Sent, ...]:
        """Return the commands that have none."""
        return tuple(sent for sent in self._sent if self.answer(sent) is None)


def _first(duplicate: Answer, recorded: Sequence[Answer]) -> Answer:
    """Find the outcome that a duplicate repeats."""
    where = duplicate.offset if duplicate.outcome.first_offset is None else duplicate.outcome.first_offset
    for answer in recorded:
        if answer.offset == where and answer.outcome.verdict != "duplicate":
            return replace(answer, repeated=True)
    return duplicate


def ownership_of(fold: ShardFold, last_record_ms: int | None, cluster: str) -> Ownership:
    """Return the ownership of the shard of a cluster, which the shard's log need not know yet."""
    state = fold.state.clusters.get(cluster)
    outage = None if state is None else state.outage
    return Ownership(fold.shard, fold.owner, fold.epoch, last_record_ms, outage=outage)
