"""The tables as people ask for them: what is moving, how far and how long yet. Needs no Spark, and no running job.

Times of arrival and stalls are computed here and not stored: a stored one goes wrong exactly when nothing arrives.
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

# A copy that has not grown for so long, by its own samples, has stalled.
STALLED_MS = 60_000
# A rate that is older says nothing about now.
FRESH_MS = 60_000
COPIES = frozenset({"copying"})
# Columns with durations.
_SPANS = frozenset({"total_ms", "longest_ms", "p50_ms", "p95_ms", "throttled_ms", "remaining_ms"})


@dataclass(frozen=True, slots=True)
class Progress:
    """One reassignment under way.

    `bytes_done` and `bytes_total` count its confirmed steps and the running one, `bytes_in_step` what the running one
    has copied; `rate` is bytes/s, `remaining_ms` how long the running step still takes. With `bytes_unknown` a step was
    over before its size was known: `bytes_done` is the least that was copied.
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
    """One plan: how much was asked for, how many of its reassignments are where, and what was copied.

    `bytes_planned` is what was copied and what is left of the running steps; of `without_size` further targets nobody
    knows the size yet. `bytes_unknown` is of how many more was copied than is known: `bytes_copied` is the least.
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
    """Everything at one moment: `standing` says of when it is, None before the first batch.

    `job` is what the job does that keeps it up to date, None if none runs.
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
        is_there = files.tables.exists()
    except OSError as error:  # such as a directory that this user may not search
        raise ConfigurationError(f"{files.tables} cannot be read: {error.strerror}") from error
    if not is_there:
        raise ConfigurationError(absent)
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
    """Read what is under way, of one cluster and one plan or of all; plans that have ended only when they are named."""
    with open_tables(files) as connection:
        connection.execute("begin")  # one moment for all tables
        standing = read_standing(connection)
        rows = tuple(
            progress_of(row, _sample_of(connection, row), now_ms)
            for row in read_rows(connection, "reassignments", f"where {UNDER_WAY}")
            if cluster in {None, row["cluster"]} and plan in {None, row["plan"]}
        )
        by_plan: dict[tuple[str, str], list[Progress]] = {}
        for one in rows:
            by_plan.setdefault((one.cluster, one.plan), []).append(one)
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
    found: Row = sample if sample is not None and is_about_it and row["state"] in COPIES else {}
    left = max(0, found.get("bytes_total", 0) - found.get("bytes_done", 0))
    is_fresh = bool(found) and now_ms - found["at_ms"] <= FRESH_MS
    closing_rate = found.get("closing_rate") if is_fresh else None
    return Progress(
        **{name: row[name] for name in ("cluster", "topic", "partition", "plan", "requester", "state", "since_ms")},
        **{name: row[name] for name in ("step", "reason", "detail")},
        bytes_done=row["bytes_copied"] + found.get("bytes_done", 0),
        bytes_total=row["bytes_copied"] + found.get("bytes_total", 0),
        bytes_in_step=found.get("bytes_done", 0),
        rate=found.get("rate") if is_fresh else None,
        remaining_ms=_remaining_ms(left, closing_rate) if is_fresh else None,
        # By the samples' own time: a job that is slow, or down, must not look like a copy that stands still.
        has_stalled=left > 0 and found["at_ms"] - max(found["grown_ms"], row["since_ms"]) >= STALLED_MS,
        bytes_unknown=bool(row["bytes_unknown"]),
    )


def plan_of(row: Row, under_way: list[Progress]) -> PlanProgress:
    """Join a plan with its reassignments under way: it takes as long as the slowest, if that is known of all."""
    times = [one.remaining_ms for one in under_way]
    known = [one for one in times if one is not None]
    copied = row["bytes_copied"] + sum(one.bytes_in_step for one in under_way)
    counts = ("accepted", "waiting", "completed", "rolled_back", "stopped", "failed", "withdrawn")
    return PlanProgress(
        **{name: row[name] for name in ("cluster", "plan", "finished_ms")},
        requester=row["requester"] or "",
        reason=row["reason"] or "",
        opened_ms=row["opened_ms"] or 0,
        partitions_planned=row["partitions_planned"] or 0,
        replicas_planned=row["replicas_planned"],
        bytes_planned=copied + sum(one.bytes_total - one.bytes_done for one in under_way if one.bytes_total),
        without_size=row["waiting"] + sum(not one.bytes_total for one in under_way),
        **{name: row[name] for name in counts},
        under_way=len(under_way),
        blocked=sum(one.reason is not None for one in under_way),
        bytes_copied=copied,
        rate=sum(one.rate or 0.0 for one in under_way),
        remaining_ms=max(known) if known and len(known) == len(times) and not row["waiting"] else None,
        bytes_unknown=row["bytes_unknown"],
    )


def durations(rows: Iterable[Row]) -> list[Row]:
    """Turn the histogram into one row per cluster and state: how many, the median, the 95th percentile, the longest.

    Percentiles are the upper end of their bucket, at most 9 % too high, and never above the longest.
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["cluster"], row["state"], row["bucket"])):
        found.setdefault((row["cluster"], row["state"]), []).append(row)
    return [
        {
            "cluster": cluster,
            "state": state,
            "durations": sum(row["durations"] for row in of_state),
            "p50_ms": percentile(of_state, 0.5),
            "p95_ms": percentile(of_state, 0.95),
            "longest_ms": max(row["longest_ms"] for row in of_state),
        }
        for (cluster, state), of_state in found.items()
    ]


def percentile(buckets: list[Row], part: float) -> int:
    """Return the duration below which that part of all lie (nearest rank), from buckets in their order, in ms."""
    rank = part * sum(row["durations"] for row in buckets)
    seen = 0
    for row in buckets:
        seen += row["durations"]
        if seen >= rank:
            return min(round(bucket_end_ms(row["bucket"])), int(buckets[-1]["longest_ms"]))
    raise AssertionError("a histogram has a bucket")


def broker_rates(rows: Iterable[Row], newest_ms: int) -> list[Row]:
    """Add to the rows of brokers how fast they received and sent in their window, bytes/s.

    `newest_ms` is when the newest record was appended: the window that it lies in is not over.
    """
    found = []
    for row in rows:
        lasted_ms = min(WINDOW_MS, max(1000, newest_ms - row["window_ms"]))
        rates = {f"rate_{side}": row[f"bytes_{side}"] * 1000 / lasted_ms for side in ("in", "out")}
        found.append(row | rates)
    return found


def with_times(row: Row) -> Row:
    """Put a moment in words beside each moment in ms: `opened_at` beside `opened_ms`, in UTC."""
    found: Row = {}
    for name, value in row.items():
        found[name] = value
        if is_timestamp(name):
            found[f"{name.removesuffix('_ms')}_at" if name != "at_ms" else "at"] = moment(value)
    return found


def is_timestamp(name: str) -> bool:
    """Whether a column holds moments, in ms since epoch."""
    return name.endswith("_ms") and name not in _SPANS


def moment(at_ms: int | None) -> str | None:
    """Write a moment in UTC as ISO 8601 has it; a later one than dates reach as the last of them."""
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
