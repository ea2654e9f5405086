"""The tables: every column with its unit, and how a later contribution joins what is there. Pure.

Every batch of the stream contributes rows; a sink merges them by key. Merging is associative, so the tables are the
same whether the log was read at once or in a thousand batches, and no state is kept in Spark.
"""

from enum import StrEnum
from typing import NamedTuple

# Tables of another version are made anew from the log; raise it with every change of a table or of what is carried.
SCHEMA_VERSION = 2

WINDOW_MS = 60_000
BUCKETS_PER_DOUBLING = 8


class Merge(StrEnum):
    """How a contribution joins the row that is there."""

    KEY = "key"
    SUM = "sum"
    MAX = "max"
    KEEP = "keep"  # a new value replaces the old one, no value leaves it
    REPLACE = "replace"  # also by no value


class Kind(StrEnum):
    """The type of a column, in the words of SQLite; Spark and Arrow have theirs for each."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"


class Column(NamedTuple):
    """One column: `unit` is what its values are measured in or which values there are."""

    name: str
    kind: Kind
    merge: Merge
    unit: str
    meaning: str


class Table(NamedTuple):
    """One table; `is_history` says that it grows with the log and is kept by the sinks that are made for that."""

    name: str
    meaning: str
    bounded_by: str
    columns: tuple[Column, ...]
    is_history: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell one row from the others."""
        return tuple(column.name for column in self.columns if column.merge is Merge.KEY)

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns that are no keys."""
        return tuple(column for column in self.columns if column.merge is not Merge.KEY)

    @property
    def names(self) -> tuple[str, ...]:
        """Every column's name, keys first."""
        return tuple(column.name for column in self.columns)


def _key(name: str, kind: Kind, unit: str, meaning: str) -> Column:
    return Column(name, kind, Merge.KEY, unit, meaning)


def _count(name: str, meaning: str, unit: str = "count") -> Column:
    return Column(name, Kind.INTEGER, Merge.SUM, unit, meaning)


def _now(name: str, kind: Kind, unit: str, meaning: str) -> Column:
    return Column(name, kind, Merge.REPLACE, unit, meaning)


def _once(name: str, kind: Kind, unit: str, meaning: str) -> Column:
    return Column(name, kind, Merge.KEEP, unit, meaning)


_TEXT, _INTEGER, _REAL = Kind.TEXT, Kind.INTEGER, Kind.REAL
_CLUSTER = _key("cluster", _TEXT, "name", "the cluster, by the operator's name for it")
_TOPIC = _key("topic", _TEXT, "name", "the topic")
_PARTITION = _key("partition", _INTEGER, "number", "the partition's number")
_WINDOW = _key("window_ms", _INTEGER, "ms since epoch", "beginning of the window of one minute")
_REQUESTER = _key("requester", _TEXT, "name", "who asked; of what a plan did, who opened the plan")
_BROKERS = "broker ids, by comma"
_UNKNOWN = _now(
    "bytes_unknown", _INTEGER, "0 or 1", "1: a step was over before a size was known, bytes_copied is the least"
)

REASSIGNMENTS = Table(
    "reassignments",
    "The latest reassignment of every partition: where it is and why it waits. From the log alone.",
    "partitions that were ever moved",
    (
        _CLUSTER,
        _TOPIC,
        _PARTITION,
        _now("plan", _TEXT, "name", "the plan it belongs to"),
        _now("requester", _TEXT, "name", "who opened the plan"),
        _now("state", _TEXT, "a state of docs/architecture.md", "where it is"),
        _now("since_ms", _INTEGER, "ms since epoch", "since when it is in that state"),
        _now("began_ms", _INTEGER, "ms since epoch", "when it was accepted"),
        _now("ended_ms", _INTEGER, "ms since epoch", "when it ended; null before"),
        _now("step", _INTEGER, "number from 1", "the running or last step; null before the first"),
        _now("reason", _TEXT, "a cause of events/README.md", "why it is blocked or has failed; null if neither"),
        _now("detail", _TEXT, "a sentence", "the same for a person, with the way out"),
        _now("original", _TEXT, _BROKERS, "the replica list when it was accepted"),
        _now("target", _TEXT, _BROKERS, "the replica list asked for"),
        _now("adding", _TEXT, _BROKERS, "who gets a copy in the running step"),
        _now("leader", _INTEGER, "broker id", "who led when the step was planned"),
        _now("bytes_copied", _INTEGER, "bytes", "on the added replicas of the steps that are confirmed"),
        _UNKNOWN,
        _now("shard", _INTEGER, "number", "the shard of the log"),
        _now("offset", _INTEGER, "offset", "of the record that told the state"),
    ),
)
SAMPLES = Table(
    "samples",
    "The latest byte sample of every partition, and how fast it goes.",
    "partitions that were ever moved",
    (
        _CLUSTER,
        _TOPIC,
        _PARTITION,
        _now("epoch", _INTEGER, "number from 1", "of the owner that took the sample"),
        _now("at_ms", _INTEGER, "ms since epoch", "when it was taken"),
        _now("step", _INTEGER, "number from 1", "the step it is about"),
        _now("bytes_done", _INTEGER, "bytes", "on the replicas being added"),
        _now("bytes_total", _INTEGER, "bytes", "that they will have"),
        _now("rate", _REAL, "bytes/s", "copied, over the last 15 s; null before two samples"),
        _now("closing_rate", _REAL, "bytes/s", "by which the rest shrank: less than rate while producers write"),
        _now("grown_ms", _INTEGER, "ms since epoch", "when bytes_done last became more in this step"),
    ),
)
PLANS = Table(
    "plans",
    "Every plan: who opened it, what was accepted and how it ended.",
    "plans",
    (
        _CLUSTER,
        _key("plan", _TEXT, "name", "the plan's name"),
        _once("requester", _TEXT, "name", "who opened it"),
        _once("reason", _TEXT, "a sentence", "why, in the requester's words"),
        _once("opened_ms", _INTEGER, "ms since epoch", "when it was opened"),
        _once("cancelled_ms", _INTEGER, "ms since epoch", "when it was cancelled as a whole; null if not"),
        _once("finished_ms", _INTEGER, "ms since epoch", "when nothing of it was left to be done; null before"),
        _once("throttle", _INTEGER, "bytes/s per broker", "the last throttle asked for; null for none"),
        _count("accepted", "reassignments that began", "reassignments"),
        _count("completed", "that reached their target", "reassignments"),
        _count("rolled_back", "that are back at their original list", "reassignments"),
        _count("stopped", "that ended where their confirmed steps had brought them", "reassignments"),
        _count("failed", "that ended elsewhere", "reassignments"),
        _count("waiting", "targets in the queue, or behind a move that is taken back", "targets"),
        _count("withdrawn", "targets given up before they began", "targets"),
        _count("bytes_copied", "by steps that are confirmed, and by completed moves", "bytes"),
        _count("bytes_unknown", "of which more was copied than bytes_copied says", "reassignments"),
    ),
)
BROKERS = Table(
    "brokers",
    "What arrived at and left every broker, and how many moves it took part in, per minute.",
    "brokers times minutes in which something moved",
    (
        _CLUSTER,
        _key("broker", _INTEGER, "broker id", "the broker"),
        _WINDOW,
        _count("bytes_in", "copied to it, by the samples", "bytes"),
        _count("bytes_out", "copied from it as leader, by the samples", "bytes"),
        Column("moves_in_most", _INTEGER, Merge.MAX, "moves", "most at once that copied to it"),
        Column("moves_out_most", _INTEGER, Merge.MAX, "moves", "most at once that copied from it"),
        _once("moves_in_last", _INTEGER, "moves", "at the window's end; null if it did not change: as before"),
        _once("moves_out_last", _INTEGER, "moves", "the same, from it"),
    ),
)
DURATIONS = Table(
    "durations",
    "How long reassignments stayed in each state, as a histogram; of an end, how long it took from acceptance.",
    "states times buckets: some hundreds per cluster",
    (
        _CLUSTER,
        _key("state", _TEXT, "a state of docs/architecture.md", "the state that was left, or the end"),
        _key("bucket", _INTEGER, "8 per doubling", "durations from 2^(bucket/8) ms to 2^((bucket+1)/8) ms"),
        _count("durations", "how many", "durations"),
        _count("total_ms", "their sum", "ms"),
        Column("longest_ms", _INTEGER, Merge.MAX, "ms", "the longest of them"),
    ),
)
REQUESTS = Table(
    "requests",
    "What was asked for and what became of it, per minute and requester.",
    "requesters times minutes in which something was asked for or ended",
    (
        _CLUSTER,
        _WINDOW,
        _REQUESTER,
        _count("accepted_commands", "accepted, in part at least", "commands"),
        _count("refused_commands", "of which nothing was accepted", "commands"),
        _count("repeated_commands", "that had been decided before", "commands"),
        _count("completed", "that reached their target", "reassignments"),
        _count("rolled_back", "that went back to their original list", "reassignments"),
        _count("stopped", "that ended where their confirmed steps had brought them", "reassignments"),
        _count("failed", "that ended elsewhere", "reassignments"),
    ),
)
REFUSALS = Table(
    "refusals",
    "What was refused, per minute, requester and code.",
    "requesters times codes times minutes in which something was refused",
    (
        _CLUSTER,
        _WINDOW,
        _REQUESTER,
        _key("code", _TEXT, "a code of events/README.md", "the kind of refusal"),
        _count("refusals", "of commands, or of single partitions", "refusals"),
    ),
)
THROTTLES = Table(
    "throttles",
    "The throttles that Drover has on brokers, and how long they have been there.",
    "brokers",
    (
        _CLUSTER,
        _key("broker", _INTEGER, "broker id", "the broker"),
        _now("leader_rate", _INTEGER, "bytes/s", "in force for what it sends; null for none of Drover's"),
        _now("follower_rate", _INTEGER, "bytes/s", "in force for what it receives; null for none of Drover's"),
        _now("since_ms", _INTEGER, "ms since epoch", "since when these hold"),
        _count("throttled_ms", "how long it was throttled, up to the last change", "ms"),
        _count("changes", "how often Drover set or took away its rates", "changes"),
    ),
)
TAKEOVERS = Table(
    "takeovers",
    "Who took shards over, and what was fenced, per minute of Kafka's time.",
    "shards times minutes in which something was recorded",
    (
        _key("shard", _INTEGER, "number", "the shard"),
        _WINDOW,
        _count("takeovers", "acquires that counted", "acquires"),
        _count("lost_acquires", "acquires that came too late (R1)", "acquires"),
        _count("batches", "that counted", "batches"),
        _count("fenced_batches", "that did not (R2)", "batches"),
        _count("events", "that counted", "events"),
        _count("fenced_events", "in fenced batches", "events"),
    ),
)
UNDECODABLE = Table(
    "undecodable",
    "What could not be read: it is in no other table.",
    "partitions of two topics",
    (
        _key("source", _TEXT, "log or samples", "which topic"),
        _key("shard", _INTEGER, "number", "its partition"),
        _count("records", "that could not be read", "records"),
        Column("last_offset", _INTEGER, Merge.MAX, "offset", "the last of them"),
        _once("last_error", _TEXT, "a sentence", "why it could not be read"),
    ),
)
ENDED = Table(
    "ended",
    "Every reassignment that has ended: the history.",
    "nothing: it grows with the log",
    (
        _CLUSTER,
        _TOPIC,
        _PARTITION,
        _key("ended_ms", _INTEGER, "ms since epoch", "when it ended"),
        _key("offset", _INTEGER, "offset", "of the record that ended it, in the cluster's shard"),
        _key("index", _INTEGER, "number from 0", "of the event in that record: it may end a replacement, too"),
        _now("plan", _TEXT, "name", "the plan it belonged to"),
        _now("requester", _TEXT, "name", "who opened the plan"),
        _now("state", _TEXT, "completed, rolled-back, stopped or failed", "how it ended"),
        _now("began_ms", _INTEGER, "ms since epoch", "when it was accepted"),
        _now("original", _TEXT, _BROKERS, "the replica list when it was accepted"),
        _now("target", _TEXT, _BROKERS, "the replica list asked for"),
        _now("reason", _TEXT, "a cause of events/README.md", "why it failed; null if it did not"),
        _now("bytes_copied", _INTEGER, "bytes", "on added replicas, by the last sample of each step"),
        _UNKNOWN,
    ),
    is_history=True,
)

TABLES = {
    table.name: table
    for table in (
        REASSIGNMENTS,
        SAMPLES,
        PLANS,
        BROKERS,
        DURATIONS,
        REQUESTS,
        REFUSALS,
        THROTTLES,
        TAKEOVERS,
        UNDECODABLE,
        ENDED,
    )
}
