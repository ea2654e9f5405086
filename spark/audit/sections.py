"""The sections of an audit: the meaning of their rows, and every column with its unit. Pure."""

from typing import NamedTuple

from drover.spark.tables.schema import Kind


class Field(NamedTuple):
    """One column; `unit` is the unit of its values, or lists them."""

    name: str
    kind: Kind
    unit: str
    meaning: str


class Section(NamedTuple):
    """One table of the audit."""

    name: str
    title: str
    meaning: str
    columns: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every column's name."""
        return tuple(column.name for column in self.columns)


def _text(name: str, unit: str, meaning: str) -> Field:
    return Field(name, Kind.TEXT, unit, meaning)


def _number(name: str, unit: str, meaning: str) -> Field:
    return Field(name, Kind.INTEGER, unit, meaning)


_MS = "ms since epoch"
_BROKERS = "broker ids, by comma"
_CLUSTER = _text("cluster", "name", "the cluster's name")
_TOPIC = _text("topic", "name", "the topic")
_PARTITION = _number("partition", "number", "the partition's number")
_PLAN = _text("plan", "name", "the plan it belongs to")
_AT = _number("at_ms", _MS, "when it was decided, by the log's time")
_SHARD = _number("shard", "number", "the shard of the log")
_OFFSET = _number("offset", "offset", "of the record that decided it")
_ID = _text("id", "id", "the command's id")
_COMMAND = _text("command", "a command of events/README.md", "what was asked for")
_BY = _text("by", "name", "who asked")
_REASON = _text("reason", "a sentence", "why, in the words of who asked")
_ENDS = (
    _number("completed", "reassignments", "that reached their target"),
    _number("rolled_back", "reassignments", "that went back to their original list"),
    _number("stopped", "reassignments", "that ended where their confirmed steps had brought them"),
    _number("failed", "reassignments", "that ended elsewhere"),
)
_BYTES = _number("bytes_copied", "bytes", "on added replicas: of completed moves, and of confirmed steps")
_UNKNOWN = _number("bytes_unknown", "reassignments", "of which more may have been copied: bytes_copied is the least")

COMMANDS = Section(
    "commands",
    "What was asked for",
    "Every command that was decided in the part audited, and what became of it.",
    (
        *(_AT, _SHARD, _OFFSET, _CLUSTER, _ID, _COMMAND, _BY, _REASON, _PLAN),
        _text(
            "verdict",
            "accepted, refused or duplicate",
            "what was decided",
        ),
        _number("accepted", "partitions", "that were accepted"),
        _number("unchanged", "partitions", "that were as asked already"),
        _number("refused", "refusals", "of partitions, or of the command as a whole"),
    ),
)
REASSIGNMENTS = Section(
    "reassignments",
    "What was done",
    "Every reassignment that ended in the part audited, or was under way at its end.",
    (
        *(_CLUSTER, _TOPIC, _PARTITION, _PLAN),
        _text("requester", "name", "who opened the plan"),
        _text("plan_reason", "a sentence", "why, in the requester's words"),
        _text("state", "a state of docs/architecture.md", "how it ended, or where it is"),
        _text("original", _BROKERS, "the replica list when it was accepted"),
        _text("target", _BROKERS, "the replica list asked for"),
        _number("began_ms", _MS, "when it was accepted"),
        _number("started_ms", _MS, "when its first step was sent; null if none was"),
        _number("ended_ms", _MS, "when it ended; null before"),
        _number("duration_ms", "ms", "from acceptance to the end; null before"),
        _BYTES,
        _UNKNOWN,
        _number("steps", "steps", "that were sent"),
        _number("rejected_calls", "calls", "that Kafka did not take"),
        _number("blocks", "times", "it was blocked"),
        _text("cancel_mode", "rollback or stop", "how it was undone, or was to be; null if nobody asked"),
        _text("cancelled_by", "name", "who asked for that"),
        _text("cancel_reason", "a sentence", "why, in their words"),
        _text("why", "a cause of events/README.md", "why it failed or waits; null if neither"),
        _SHARD,
        _number("began_offset", "offset", "of the record that accepted it"),
        _number("offset", "offset", "of the record that ended it; null before"),
    ),
)
PLANS = Section(
    "plans",
    "Plans",
    "Every plan that a command or a reassignment of the part audited belongs to, as it stood at the end of that.",
    (
        _CLUSTER,
        _text("plan", "name", "the plan's name"),
        _text("requester", "name", "who opened it"),
        _REASON,
        _number("opened_ms", _MS, "when it was opened"),
        _number("finished_ms", _MS, "when nothing of it moved or waited any more; null before"),
        _number("cancelled_ms", _MS, "when it was cancelled as a whole; null if not"),
        _number("duration_ms", "ms", "from opening to the finish; null before"),
        _number("throttle", "bytes/s per broker", "the last throttle asked for; null for none"),
        _number("accepted", "reassignments", "that began"),
        *_ENDS,
        _number("withdrawn", "targets", "given up before they began"),
        _BYTES,
        _UNKNOWN,
    ),
)
REFUSALS = Section(
    "refusals",
    "What was refused",
    "Every refusal of the part audited: of a command, or of one of its partitions.",
    (
        *(_AT, _SHARD, _OFFSET, _CLUSTER, _ID, _COMMAND, _BY, _REASON, _PLAN),
        _text("topic", "name", "the topic; null for the command as a whole"),
        _number("partition", "number", "the partition's number; null for the command as a whole"),
        _text("code", "a code of events/README.md", "the kind of refusal"),
        _text("detail", "a sentence", "what is wrong, and the remedy"),
    ),
)
REQUESTERS = Section(
    "requesters",
    "Who asked",
    "What each requester asked for, and what became of it, over the rows of the other sections.",
    (
        _text("requester", "name", "who asked; of reassignments, who opened the plan"),
        _number("commands", "commands", "decided, those that were decided before included"),
        _number("refused_commands", "commands", "of which nothing was accepted"),
        _number("refusals", "refusals", "of commands, or of single partitions"),
        _number("reassignments", "reassignments", "of the part audited"),
        *_ENDS,
        _number("under_way", "reassignments", "that had not ended"),
        _BYTES,
        _UNKNOWN,
    ),
)
SECTIONS = {section.name: section for section in (REQUESTERS, PLANS, COMMANDS, REASSIGNMENTS, REFUSALS)}
