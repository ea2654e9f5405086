"""The tables that the job keeps: those of the capabilities, those of the log itself, and that of the byte samples."""

from collections.abc import Mapping

from drover.spark.folding.records import LOG_TABLES
from drover.spark.tables.registry import CAPABILITIES, tables_of
from drover.spark.tables.schema import CLUSTER, INTEGER, PARTITION, REAL, TOPIC, Table, latest

# Tables of another version are rebuilt from the log; raise it with every change of a table or of the carried state.
SCHEMA_VERSION = 4

SAMPLES_TABLE = Table(
    "samples",
    "The latest byte sample of every partition, and how fast it goes.",
    "partitions that were ever moved",
    (
        CLUSTER,
        TOPIC,
        PARTITION,
        latest("epoch", INTEGER, "number from 1", "of the owner that took the sample"),
        latest("at_ms", INTEGER, "ms since epoch", "when it was taken"),
        latest("step", INTEGER, "number from 1", "the step it is about"),
        latest("bytes_done", INTEGER, "bytes", "on the replicas being added"),
        latest("bytes_total", INTEGER, "bytes", "that they will have"),
        latest("rate", REAL, "bytes/s", "copied, over the last 15 s; null before two samples"),
        latest("closing_rate", REAL, "bytes/s", "by which the rest shrank: less than rate while producers write"),
        latest("grown_ms", INTEGER, "ms since epoch", "when bytes_done last became more in this step"),
    ),
    expires_by="at_ms",
)
_CAPABILITIES = tables_of(CAPABILITIES)
TABLES: Mapping[str, Table] = {
    **_CAPABILITIES,
    # The state forgets a plan a day after its end, and its name may be used again.
    "plans": _CAPABILITIES["plans"]._replace(begins_by="opened_ms"),
    **{table.name: table for table in LOG_TABLES},
    SAMPLES_TABLE.name: SAMPLES_TABLE,
}
# The tables of a sink that keeps no history.
BOUNDED: Mapping[str, Table] = {name: table for name, table in TABLES.items() if not table.is_history}
