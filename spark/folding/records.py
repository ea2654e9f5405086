"""The tables about records of the log: takeovers, fenced batches, requests and refusals."""

from drover.events.records import Batch, Record
from drover.fold.log import RecordVerdict
from drover.spark.tables.measures import window
from drover.spark.tables.row_buffer import RowBuffer
from drover.spark.tables.schema import CLUSTER, INTEGER, REQUESTER, TEXT, WINDOW, Table, count, key, most, retained

REQUESTS_TABLE = Table(
    "requests",
    "What was asked for and what became of it, per minute and requester.",
    "requesters times minutes in which something was asked for or ended",
    (
        CLUSTER,
        WINDOW,
        REQUESTER,
        count("accepted_commands", "accepted, in part at least", "commands"),
        count("refused_commands", "of which nothing was accepted", "commands"),
        count("repeated_commands", "that had been decided before", "commands"),
        count("completed", "that reached their target", "reassignments"),
        count("rolled_back", "that went back to their original list", "reassignments"),
        count("stopped", "that ended where their confirmed steps had brought them", "reassignments"),
        count("failed", "that ended elsewhere", "reassignments"),
    ),
    expires_by="window_ms",
)
REFUSALS_TABLE = Table(
    "refusals",
    "What was refused, per minute, requester and code.",
    "requesters times codes times minutes in which something was refused",
    (
        CLUSTER,
        WINDOW,
        REQUESTER,
        key("code", TEXT, "a code of events/README.md", "the kind of refusal"),
        count("refusals", "of commands, or of single partitions", "refusals"),
    ),
    expires_by="window_ms",
)
TAKEOVERS_TABLE = Table(
    "takeovers",
    "Who took shards over, and what was fenced, per minute of Kafka's time.",
    "shards times minutes in which something was recorded",
    (
        key("shard", INTEGER, "number", "the shard"),
        WINDOW,
        count("takeovers", "acquires that counted", "acquires"),
        count("lost_acquires", "acquires that came too late (R1)", "acquires"),
        count("batches", "that counted", "batches"),
        count("fenced_batches", "that did not (R2)", "batches"),
        count("events", "that counted", "events"),
        count("fenced_events", "in fenced batches", "events"),
        count("void_records", "after a damaged record, until an acquire resumes the shard (R9)", "records"),
    ),
    expires_by="window_ms",
)
UNDECODABLE_TABLE = Table(
    "undecodable",
    "What could not be read or breaks a rule of the log: it is in no other table.",
    "partitions of two topics",
    (
        key("source", TEXT, "log or samples", "which topic"),
        key("shard", INTEGER, "number", "its partition"),
        count("records", "that could not be read, or break a rule", "records"),
        most("last_offset", "the last of them", "offset"),
        retained("last_error", TEXT, "a sentence", "why it could not be read, or what it breaks"),
    ),
)
LOG_TABLES = (REQUESTS_TABLE, REFUSALS_TABLE, TAKEOVERS_TABLE, UNDECODABLE_TABLE)

LOG, SAMPLES = "log", "samples"
ERROR_LENGTH = 300
_COMMANDS = {"accepted": "accepted_commands", "refused": "refused_commands", "duplicate": "repeated_commands"}


def put_record(buffer: RowBuffer, shard: int, appended_ms: int, verdict: RecordVerdict, record: Record) -> None:
    """Count one record by its verdict, and the outcomes of a valid batch."""
    name = (shard, window(appended_ms))
    match verdict:
        case RecordVerdict.VALID:
            assert isinstance(record, Batch), "only batches are valid"
            buffer.put("takeovers", name, batches=1, events=len(record.events))
            put_outcomes(buffer, record)
        case RecordVerdict.FENCED:
            assert isinstance(record, Batch), "only batches are fenced"
            buffer.put("takeovers", name, fenced_batches=1, fenced_events=len(record.events))
        case RecordVerdict.ACQUIRED:
            buffer.put("takeovers", name, takeovers=1)
        case RecordVerdict.STALE_ACQUIRE:
            buffer.put("takeovers", name, lost_acquires=1)
        case RecordVerdict.VOID:
            buffer.put("takeovers", name, void_records=1)
        case RecordVerdict.GENESIS:
            pass


def put_outcomes(buffer: RowBuffer, batch: Batch) -> None:
    """Count commands by verdict, and refusals by code."""
    for outcome in batch.outcomes:
        requester = (outcome.cluster, window(batch.at_ms), outcome.by)
        counted = _COMMANDS.get(outcome.verdict)
        if counted is not None:
            buffer.put("requests", requester, **{counted: 1})
        for refusal in outcome.refusals:
            buffer.put("refusals", (*requester, str(refusal.code)), refusals=1)


def put_unreadable(buffer: RowBuffer, source: str, shard: int, offset: int, error: str) -> None:
    """Count a record that cannot be read, or that breaks a rule."""
    buffer.put("undecodable", (source, shard), records=1, last_offset=offset, last_error=error[:ERROR_LENGTH])
