"""Queries of the tables: the moves under way, their progress and remaining time. Needs no Spark, and no running job.

Remaining times and stalls are computed here, because stored ones would become wrong when no samples arrive.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from drover.errors import ConfigurationError
from drover.events.fields import LAST_MS
from drover.spark.files import DAMAGED, JobFiles
from drover.spark.heartbeat import JobState, state_of_job
from drover.spark.merge import Row
from drover.spark.schema import SCHEMA_VERSION
from drover.spark.sinks.port import Standing
from drover.spark.sinks.sqlite import OPEN, UNDER_WAY, read_rows, read_standing
from drover.spark.tables.measures import WINDOW_MS, bucket_end_ms

# A copy that has not grown for this long, by its own samples, has stalled.
STALLED_MS = 60_000
# A rate that is older is not shown.
FRESH_MS = 60_000
COPIES = frozenset({"copying"})
# Columns with durations.
_SPANS = frozenset({"total_ms", "longest_ms", "p50_ms", "p95_ms", "throttled_ms", "remaining_ms"})


@dataclass(frozen=True, slots=True)
class Progress:
    """One reassignment under way.

    `bytes_done` and `bytes_total` count its confirmed steps and the running one, `bytes_in_step` the bytes that the
    running one has copied; `rate` is bytes/s, `remaining_ms` the estimate for the running step. With `bytes_unknown` a
    step was over before its size was known: `bytes_done` is the least that was copied.
    """

    cluster: str
    topic: str
    partition: int
    plan: str
    requester: str
    state: str
    since_ms: int
    step: int | None
    reason: str | None
    detail: str | None
    bytes_done: int
    bytes_total: int
    bytes_in_step: int
    rate: float | None
    remaining_ms: int | None
    has_stalled: bool
    bytes_unknown: bool


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """One plan: its size, its reassignments by state, and the bytes copied.

    `bytes_planned` is the sum of the bytes copied and those left in the running steps; `without_size` counts further
    targets of unknown size. `bytes_unknown` counts reassignments that may have copied more: `bytes_copied` is the
    least.
    """

    cluster: str
    plan: str
    requester: str
    reason: str
    opened_ms: int
    finished_ms: int | None
    partitions_planned: int
    replicas_planned: int
    bytes_planned: int
    without_size: int
    accepted: int
    under_way: int
    blocked: int
    waiting: int
    completed: int
    rolled_back: int
    stopped: int
    failed: int
    withdrawn: int
    bytes_copied: int
    rate: float
    remaining_ms: int | None
    bytes_unknown: int


@dataclass(frozen=True, slots=True)
class Overview:
    """All plans and reassignments at one moment: that of `standing`, None before the first batch.

    `job` is the state of the job that writes the tables, None if none runs.
    """

    standing: Standing | None
    job: JobState | None
    plans: tuple[PlanProgress, ...]
    reassignments: tuple[Progress, ...]

    def document(self) -> dict[str, Any]:
        """Return it for programs; fields may be added and never changed."""
        return {
            "batch": None if self.standing is None else self.standing.batch,
            "newest_record_ms": None if self.standing is None else self.standing.newest_ms,
            "applied_ms": None if self.standing is None else self.standing.applied_ms,
            "job_is_alive": self.job is JobState.RUNNING,
            "job": self.job,
            "plans": [with_times(asdict(plan)) for plan in self.plans],
            "reassignments": [with_times(asdict(row)) for row in self.reassignments],
        }


@contextmanager
def open_tables(files: JobFiles) -> Iterator[sqlite3.Connection]:
    """Open the tables for reading, while they are written or not.

    Raises `ConfigurationError` when there are none, or those of another version, and when they cannot be read.
    """
    absent = f"there are no progress tables in {files.directory}: start the job with `drover spark run`"
    try:
        files.tables.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigurationError(absent) from None
    except OSError as error:  # such as a directory that this user may not search
        raise ConfigurationError(f"{files.tables} cannot be read: {error.strerror}") from error
    connection = sqlite3.connect(f"{files.tables.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        (version,) = connection.execute("pragma user_version").fetchone()
        if version == 0:  # the job is making them
            raise ConfigurationError(absent)
        if version != SCHEMA_VERSION:
            raise ConfigurationError(
                f"{files.tables} was made by another version of Drover: start `drover spark run`, which makes it anew"
            )
        yield connection
    except sqlite3.Error as error:
        raise ConfigurationError(
            f"{files.tables} cannot be read ({error}): check that you may read it and, as SQLite wants, write to its "
            f"directory; {DAMAGED}"
        ) from error
    finally:
        connection.close()


def overview(files: JobFiles, cluster: str | None, plan: str | None, now_ms: int) -> Overview:
    """Read the moves and plans under way, of one cluster or plan or of all; an ended plan only if it is named."""
    with open_tables(files) as connection:
        connection.execute("begin")  # one moment for all tables
        standing = read_standing(connection)
        rows = tuple(
            progress_of(row, _sample_of(connection, row), now_ms)
            for row in read_rows(connection, "reassignments", f"where {UNDER_WAY}")
            if cluster in {None, row["cluster"]} and plan in {None, row["plan"]}
        )
        by_plan: dict[tuple[str, str], list[Progress]] = {}
        for progress in rows:
            by_plan.setdefault((progress.cluster, progress.plan), []).append(progress)
        where, values = (f"where {OPEN}", ()) if plan is None else ("where plan = ?", (plan,))
        plans = tuple(
            plan_of(row, by_plan.get((row["cluster"], row["plan"]), []))
            for row in read_rows(connection, "plans", where, values)
            if cluster in {None, row["cluster"]}
        )
    return Overview(standing, state_of_job(files.alive, now_ms), plans, rows)


def _sample_of(connection: sqlite3.Connection, row: Row) -> Row | None:
    """Read the latest sample of one partition: the table has one of every partition that was ever moved."""
    place = (row["cluster"], row["topic"], row["partition"])
    return next(read_rows(connection, "samples", "where cluster = ? and topic = ? and partition = ?", place), None)


def progress_of(row: Row, sample: Row | None, now_ms: int) -> Progress:
    """Join a reassignment with its latest sample, if that is about the running step."""
    is_about_it = sample is not None and sample["step"] == row["step"] and sample["at_ms"] >= row["began_ms"]
    current: Row = sample if sample is not None and is_about_it and row["state"] in COPIES else {}
    left = max(0, current.get("bytes_total", 0) - current.get("bytes_done", 0))
    is_fresh = bool(current) and now_ms - current["at_ms"] <= FRESH_MS
    closing_rate = current.get("closing_rate") if is_fresh else None
    return Progress(
        **{name: row[name] for name in ("cluster", "topic", "partition", "plan", "requester", "state", "since_ms")},
        **{name: row[name] for name in ("step", "reason", "detail")},
        bytes_done=row["bytes_copied"] + current.get("bytes_done", 0),
        bytes_total=row["bytes_copied"] + current.get("bytes_total", 0),
        bytes_in_step=current.get("bytes_done", 0),
        rate=current.get("rate") if is_fresh else None,
        remaining_ms=_remaining_ms(left, closing_rate) if is_fresh else None,
        # By the samples' own time, so that a slow or stopped job does not look like a stalled copy.
        has_stalled=left > 0 and current["at_ms"] - max(current["grown_ms"], row["since_ms"]) >= STALLED_MS,
        bytes_unknown=bool(row["bytes_unknown"]),
    )


def plan_of(row: Row, under_way: list[Progress]) -> PlanProgress:
    """Join a plan with its reassignments under way; its remaining time is that of the slowest, if all are known."""
    times = [move.remaining_ms for move in under_way]
    estimates = [time_ms for time_ms in times if time_ms is not None]
    copied = row["bytes_copied"] + sum(move.bytes_in_step for move in under_way)
    counts = ("accepted", "waiting", "completed", "rolled_back", "stopped", "failed", "withdrawn")
    return PlanProgress(
        **{name: row[name] for name in ("cluster", "plan", "finished_ms")},
        requester=row["requester"] or "",
        reason=row["reason"] or "",
        opened_ms=row["opened_ms"] or 0,
        partitions_planned=row["partitions_planned"] or 0,
        replicas_planned=row["replicas_planned"],
        bytes_planned=copied + sum(move.bytes_total - move.bytes_done for move in under_way if move.bytes_total),
        without_size=row["waiting"] + sum(not move.bytes_total for move in under_way),
        **{name: row[name] for name in counts},
        under_way=len(under_way),
        blocked=sum(move.reason is not None for move in under_way),
        bytes_copied=copied,
        rate=sum(move.rate or 0.0 for move in under_way),
        remaining_ms=max(estimates) if estimates and len(estimates) == len(times) and not row["waiting"] else None,
        bytes_unknown=row["bytes_unknown"],
    )


def durations(rows: Iterable[Row]) -> list[Row]:
    """Turn the histogram into one row per cluster and state: the count, median, 95th percentile and maximum.

    Percentiles are the upper end of their bucket, at most 9 % too high, and never above the longest.
    """
    by_state: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["cluster"], row["state"], row["bucket"])):
        by_state.setdefault((row["cluster"], row["state"]), []).append(row)
    return [
        {
            "cluster": cluster,
            "state": state,
            "durations": sum(row["durations"] for row in of_state),
            "p50_ms": percentile(of_state, 0.5),
            "p95_ms": percentile(of_state, 0.95),
            "longest_ms": max(row["longest_ms"] for row in of_state),
        }
        for (cluster, state), of_state in by_state.items()
    ]


def percentile(buckets: list[Row], part: float) -> int:
    """Return the percentile `part` (nearest rank) of durations in ms, from buckets in their order."""
    rank = part * sum(row["durations"] for row in buckets)
    seen = 0
    for row in buckets:
        seen += row["durations"]
        if seen >= rank:
            return min(round(bucket_end_ms(row["bucket"])), int(buckets[-1]["longest_ms"]))
    raise AssertionError("a histogram has a bucket")


def broker_rates(rows: Iterable[Row], newest_ms: int) -> list[Row]:
    """Add the rates of received and sent bytes per second in their window to the rows of brokers.

    `newest_ms` is when the newest record was appended; its window is not over.
    """
    rated = []
    for row in rows:
        lasted_ms = min(WINDOW_MS, max(1000, newest_ms - row["window_ms"]))
        rates = {f"rate_{side}": row[f"bytes_{side}"] * 1000 / lasted_ms for side in ("in", "out")}
        rated.append(row | rates)
    return rated


def with_times(row: Row) -> Row:
    """Add a time in UTC to each time in ms: `opened_at` beside `opened_ms`."""
    document: Row = {}
    for name, value in row.items():
        document[name] = value
        if is_timestamp(name):
            document[f"{name.removesuffix('_ms')}_at" if name != "at_ms" else "at"] = moment(value)
    return document


def is_timestamp(name: str) -> bool:
    """Whether a column holds times, in ms since epoch."""
    return name.endswith("_ms") and name not in _SPANS


def moment(at_ms: int | None) -> str | None:
    """Write a time in UTC in ISO 8601; one beyond the last possible date as that date."""
    if at_ms is None:
        return None
    return datetime.fromtimestamp(min(at_ms, LAST_MS) / 1000, UTC).isoformat(timespec="milliseconds")


def now_ms() -> int:
    """Return the wall clock in ms since epoch."""
    return time.time_ns() // 1_000_000


def _remaining_ms(left: int, closing_rate: float | None) -> int | None:
    if left == 0:
        return 0
    return None if closing_rate is None or closing_rate <= 0 else round(left / closing_rate * 1000)
