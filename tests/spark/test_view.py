"""What is computed when the tables are read: time to go, stalls, percentiles, and of when it all is."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from drover.errors import ConfigurationError
from spark import view
from spark.files import JobFiles
from spark.folding.tally import bucket
from spark.merging import Part
from spark.schema import TABLES
from spark.sinks.port import Applied
from spark.sinks.sqlite import SqliteSink

NOW_MS = 1_790_000_100_000


def move(**values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(TABLES["reassignments"].names)
    row |= {"cluster": "local", "topic": "t", "partition": 0, "plan": "friday", "requester": "ann", "state": "copying"}
    return (
        row
        | {"since_ms": NOW_MS - 90_000, "began_ms": NOW_MS - 95_000, "step": 1, "bytes_copied": 0, "bytes_unknown": 0}
        | values
    )


def sample(**values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(TABLES["samples"].names)
    row |= {"at_ms": NOW_MS - 1000, "step": 1, "bytes_done": 400, "bytes_total": 1000, "grown_ms": NOW_MS - 1000}
    return row | {"rate": 120.0, "closing_rate": 100.0} | values


def test_time_to_go_is_what_is_left_over_how_fast_it_shrinks() -> None:
    row = view.progress_of(move(bytes_copied=50), sample(), NOW_MS)
    assert (row.bytes_done, row.bytes_total, row.rate, row.remaining_ms) == (450, 1050, 120.0, 6000)
    assert not row.has_stalled


@pytest.mark.parametrize("closing_rate", [None, 0.0, -5.0])
def test_what_does_not_get_less_has_no_time_to_go(closing_rate: float | None) -> None:
    assert view.progress_of(move(), sample(closing_rate=closing_rate), NOW_MS).remaining_ms is None


def test_an_old_sample_tells_amounts_and_no_rate() -> None:
    row = view.progress_of(move(), sample(at_ms=NOW_MS - 61_000), NOW_MS)
    assert (row.bytes_done, row.rate, row.remaining_ms) == (400, None, None)


@pytest.mark.parametrize(
    "other", [{"step": 2}, {"at_ms": NOW_MS - 96_000}], ids=["another step", "an earlier reassignment"]
)
def test_a_sample_of_something_else_tells_nothing(other: dict[str, int]) -> None:
    row = view.progress_of(move(), sample(**other), NOW_MS)
    assert (row.bytes_done, row.bytes_total, row.rate) == (0, 0, None)


def test_a_copy_that_has_not_grown_for_a_minute_of_its_samples_has_stalled() -> None:
    assert view.progress_of(move(), sample(grown_ms=NOW_MS - 62_000), NOW_MS).has_stalled
    assert not view.progress_of(move(since_ms=NOW_MS - 30_000), sample(grown_ms=NOW_MS - 62_000), NOW_MS).has_stalled


def test_a_job_that_is_behind_does_not_look_like_a_copy_that_stands_still() -> None:
    behind = sample(at_ms=NOW_MS - 3_600_000, grown_ms=NOW_MS - 3_601_000)
    long_ago = move(since_ms=NOW_MS - 4_000_000, began_ms=NOW_MS - 4_000_000)
    assert not view.progress_of(long_ago, behind, NOW_MS).has_stalled


def test_a_plan_takes_as_long_as_its_slowest_move_if_that_is_known_of_all() -> None:
    plan = dict.fromkeys(TABLES["plans"].names, 0) | {"cluster": "local", "plan": "friday", "bytes_copied": 70}
    fast = view.progress_of(move(), sample(), NOW_MS)
    slow = view.progress_of(move(bytes_copied=70, reason="no-leader"), sample(closing_rate=10.0), NOW_MS)
    found = view.plan_of(plan, [fast, slow])
    assert (found.under_way, found.blocked, found.bytes_copied, found.remaining_ms) == (2, 1, 870, 60_000)
    assert view.plan_of(plan, [fast, view.progress_of(move(), None, NOW_MS)]).remaining_ms is None
    assert view.plan_of(plan | {"waiting": 1}, [fast]).remaining_ms is None


def test_percentiles_are_near_the_true_ones_and_never_above_the_longest() -> None:
    durations = [*range(1, 101), 5000]
    rows = [
        {"cluster": "local", "state": "copying", "bucket": bucket(one), "durations": 1, "longest_ms": one}
        for one in durations
    ]
    (found,) = view.durations(rows)
    assert found["durations"] == 101
    assert 51 <= found["p50_ms"] <= 51 * 1.1
    assert 96 <= found["p95_ms"] <= 96 * 1.1
    assert found["longest_ms"] == 5000
    assert view.percentile(rows[-1:], 0.95) == 5000


def test_tables_that_are_not_there_and_those_of_another_version_are_named_with_the_remedy(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    with pytest.raises(ConfigurationError, match="drover spark run"), view.open_tables(files):
        pass
    sink = SqliteSink(files.tables)
    sink._connection.execute("pragma user_version = 99")
    sink.close()
    with pytest.raises(ConfigurationError, match="another version"), view.open_tables(files):
        pass


def test_an_overview_is_of_one_moment_and_says_whether_a_job_runs(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    sink = SqliteSink(files.tables)
    rows = {"reassignments": (move(), move(partition=1, ended_ms=NOW_MS, state="completed"))}
    sink.apply("one", Applied(0, Part(rows, {}, newest_ms=NOW_MS), {}, applied_ms=NOW_MS + 1))
    sink.close()
    found = view.overview(files, "local", None, NOW_MS)
    assert [row.partition for row in found.reassignments] == [0]
    assert (found.standing.newest_ms, found.is_alive) == (NOW_MS, False)
    assert view.overview(files, "another", None, NOW_MS).reassignments == ()
    files.alive.touch()
    assert view.is_alive(files, time.time_ns() // 1_000_000)
    os.utime(files.alive, (1, 1))
    assert not view.is_alive(files, time.time_ns() // 1_000_000)
