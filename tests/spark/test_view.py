"""What is computed when the tables are read: time to go, stalls, percentiles, and of when it all is."""

import errno
import itertools
import os
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drover.cli import spark
from drover.errors import ConfigurationError
from drover.spark import heartbeat as heartbeats
from drover.spark import view
from drover.spark.files import JobFiles
from drover.spark.heartbeat import Heartbeat, JobState, heartbeat, state_of_job
from drover.spark.merge import Part
from drover.spark.schema import TABLES
from drover.spark.sinks.port import Applied
from drover.spark.sinks.sqlite import SqliteSink
from drover.spark.tables.measures import bucket

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


def plan(name: str, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(TABLES["plans"].names, 0)
    return row | {"plan": name, "requester": "ann", "reason": "drain"} | values


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
    assert (found.bytes_planned, found.without_size) == (2070, 0)
    assert view.plan_of(plan, [fast, view.progress_of(move(), None, NOW_MS)]).remaining_ms is None
    waiting = view.plan_of(plan | {"waiting": 1}, [fast])
    assert (waiting.remaining_ms, waiting.without_size) == (None, 1)


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


def test_tables_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    files.tables.write_bytes(b"no tables of SQLite's, but what a crash has left" * 100)
    with pytest.raises(ConfigurationError, match=r"tables\.sqlite cannot be read \(file is not a database\)"):
        view.overview(files, None, None, NOW_MS)
    with pytest.raises(ConfigurationError, match=r"tables\.sqlite cannot be read: File name too long"):
        view.overview(JobFiles(tmp_path / ("x" * 300)), None, None, NOW_MS)


def test_a_sign_of_life_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert state_of_job(tmp_path, NOW_MS) is None


def test_an_overview_is_of_one_moment_and_says_whether_a_job_runs(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    sink = SqliteSink(files.tables)
    rows = {"reassignments": (move(), move(partition=1, ended_ms=NOW_MS, state="completed"))}
    sink.apply("one", Applied(0, Part(rows, {}, newest_ms=NOW_MS), applied_ms=NOW_MS + 1))
    sink.close()
    found = view.overview(files, "local", None, NOW_MS)
    assert [row.partition for row in found.reassignments] == [0]
    assert found.standing is not None
    assert (found.standing.newest_ms, found.job) == (NOW_MS, None)
    assert view.overview(files, "another", None, NOW_MS).reassignments == ()


def test_a_look_at_what_is_under_way_does_not_go_through_what_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def work(ended: int) -> tuple[int, view.Overview]:
        files, steps = JobFiles(tmp_path / str(ended)), itertools.count()
        sink = SqliteSink(files.tables)
        places: list[dict[str, Any]] = [
            {"topic": f"t{number // 100}", "partition": number % 100} for number in range(ended + 2)
        ]
        moves = [move(**place, ended_ms=NOW_MS, state="completed") for place in places[2:]]
        plans = [plan(f"p{number}", finished_ms=0) for number in range(1, ended)]
        plans.append(plan("friday", cluster="local", finished_ms=None))
        rows: dict[str, tuple[dict[str, Any], ...]] = {
            "reassignments": (move(**places[0]), move(**places[1]), *moves),
            "samples": tuple(sample(cluster="local", **place) for place in places),
            "plans": tuple(plans),
        }
        sink.apply("one", Applied(0, Part(rows, {}, newest_ms=NOW_MS), applied_ms=NOW_MS))
        sink.close()

        def counting(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*arguments, **options)
            connection.set_progress_handler(lambda: next(steps) and None, 10)
            return connection

        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", counting)
            found = view.overview(files, None, None, NOW_MS)
        return next(steps), found

    (few, _), (many, found) = work(20), work(2000)
    assert [row.bytes_in_step for row in found.reassignments] == [400, 400]
    assert [(plan.plan, plan.under_way) for plan in found.plans] == [("friday", 2)]
    assert many < 2 * few


def test_following_a_plan_ends_when_it_has_finished_on_every_cluster_that_has_one_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = JobFiles(tmp_path)
    sink = SqliteSink(files.tables)

    def batch(number: int, **finished_ms: int | None) -> None:
        plans = tuple(plan("friday", cluster=name, finished_ms=at_ms) for name, at_ms in finished_ms.items())
        sink.apply("one", Applied(number, Part({"plans": plans}, {}, newest_ms=NOW_MS), applied_ms=NOW_MS))

    batch(0, east=NOW_MS, west=None)
    # Only this module's: the threads of Py4J sleep as well, and would write to the tables.
    monkeypatch.setattr(spark, "time", SimpleNamespace(sleep=lambda _: batch(1, west=NOW_MS)))
    spark._follow(files, None, "friday", "table")
    sink.close()
    assert capsys.readouterr().out.splitlines() == [
        "east plan friday: finished, 0 completed, 0 rolled back, 0 stopped, 0 failed, 0 B copied",
        "west plan friday: 0 under way, 0 completed, 0 rolled back, 0 stopped, 0 failed, 0 B copied",
        "west plan friday: finished, 0 completed, 0 rolled back, 0 stopped, 0 failed, 0 B copied",
    ]


def test_before_the_first_batch_nothing_is_claimed(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    SqliteSink(files.tables).close()
    found = view.overview(files, None, None, NOW_MS)
    assert (found.standing, found.document()["batch"]) == (None, None)
    assert "no batch in the tables yet; NO JOB IS RUNNING" in spark._age(found)
    assert spark._age(replace(found, job=JobState.STARTING)).endswith("the job is starting")


def test_a_job_is_known_to_start_to_run_and_to_be_gone_within_three_seconds(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    now_ms = view.now_ms()
    with heartbeat(file) as heart:
        assert state_of_job(file, now_ms) is JobState.STARTING
        heart.tell(JobState.RUNNING)
        os.utime(file, (1, 1))
        deadline = time.monotonic() + 20
        while state_of_job(file, view.now_ms()) is not JobState.RUNNING:
            assert time.monotonic() < deadline, "it gives no further sign of life"
            time.sleep(0.05)
        written_ms = file.stat().st_mtime * 1000
        assert state_of_job(file, round(written_ms) + 2999) is JobState.RUNNING
        assert state_of_job(file, round(written_ms) + 3001) is None, "as after a kill"
    assert state_of_job(file, view.now_ms()) is None


def test_a_job_that_says_that_it_runs_in_the_moment_of_a_sign_of_life_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "alive"
    heart, replace_file = Heartbeat(file), Path.replace
    beating = threading.Thread(target=heart.beat)

    def meanwhile(partial: Path, target: Path) -> Path:
        if threading.current_thread() is not beating:
            beating.start()
            beating.join(0.5)  # it has to wait
        return replace_file(partial, target)

    monkeypatch.setattr(Path, "replace", meanwhile)
    heart.tell(JobState.RUNNING)
    beating.join()
    assert state_of_job(file, view.now_ms()) is JobState.RUNNING


def test_a_sign_of_life_that_finds_no_room_on_the_disk_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats, has_gone_on = itertools.count(), threading.Event()

    def beat(_: Heartbeat) -> None:
        number = next(beats)
        if number == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        if number > 1:
            has_gone_on.set()

    monkeypatch.setattr(heartbeats, "BEAT_S", 0.001)
    monkeypatch.setattr(Heartbeat, "beat", beat)
    with heartbeat(tmp_path / "alive"):
        assert has_gone_on.wait(20)


def test_brokers_have_their_rates_also_in_a_window_that_is_not_over() -> None:
    row = {"window_ms": 60_000, "bytes_in": 6_000, "bytes_out": 0}
    (over,) = view.broker_rates([row], 500_000)
    (running,) = view.broker_rates([row], 66_000)
    assert (over["rate_in"], running["rate_in"], over["rate_out"]) == (100.0, 1000.0, 0.0)


def test_a_moment_stands_in_words_beside_its_milliseconds() -> None:
    assert view.with_times({"opened_ms": 0, "total_ms": 5, "finished_ms": None, "at_ms": 1500}) == {
        "opened_ms": 0,
        "opened_at": "1970-01-01T00:00:00.000+00:00",
        "total_ms": 5,
        "finished_ms": None,
        "finished_at": None,
        "at_ms": 1500,
        "at": "1970-01-01T00:00:01.500+00:00",
    }


def test_a_moment_after_the_last_that_can_be_written_is_written_as_the_last() -> None:
    assert str(view.moment(2**53)).startswith("9999-12-31T23:59:59.")


@pytest.mark.parametrize("name", TABLES)
def test_a_column_of_ms_is_a_moment_or_a_span_as_its_unit_says(name: str) -> None:
    for column in TABLES[name].columns:
        assert view.is_timestamp(column.name) == (column.unit == "ms since epoch"), column.name
