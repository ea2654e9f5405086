"""What every sink promises: a batch is applied once and whole, in order, and read back as it was joined."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drover.errors import ConfigurationError
from drover.spark.files import JobFiles
from drover.spark.merge import Part
from drover.spark.schema import SCHEMA_VERSION, TABLES
from drover.spark.sinks import parquet, sqlite
from drover.spark.sinks.parquet import FILES_PER_LEVEL, ParquetSink
from drover.spark.sinks.port import Applied, Sink
from drover.spark.sinks.sqlite import SqliteSink, read_rows
from drover.spark.tables.row_buffer import MOST, joined
from drover.spark.view import open_tables

MAKERS: dict[str, Callable[[Path], Sink]] = {
    "sqlite": lambda directory: SqliteSink(directory / "tables.sqlite"),
    "parquet": lambda directory: ParquetSink(directory / "history"),
}
# Files that earlier versions wrote; never edited.
SAMPLES = Path(__file__).parent / "samples"
FIRST, OTHER = "checkpoint-1", "checkpoint-2"
Make = Callable[[], Sink]


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Open the sink, as often as is wanted: each time as a new process would."""
    return lambda: MAKERS[request.param](tmp_path)


def refusal(count: int, requester: str = "ann") -> dict[str, Any]:
    return {"cluster": "local", "window_ms": 0, "requester": requester, "code": "malformed", "refusals": count}


def state(state: str, reason: str | None = None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(TABLES["reassignments"].names)
    return row | {"cluster": "local", "topic": "t", "partition": 0, "state": state, "reason": reason, "offset": 5}


def broker(**values: int) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(TABLES["brokers"].names)
    return row | {"cluster": "local", "broker": 1, "window_ms": 60_000} | values


def batch(number: int, carried: dict[str, bytes] | None = None, **rows: dict[str, Any]) -> Applied:
    part = Part({name: (row,) for name, row in rows.items()}, carried or {}, newest_ms=1000 + number)
    return Applied(number, part, applied_ms=2000 + number)


def only(sink: Sink, table: str) -> dict[str, Any]:
    (row,) = sink.rows(table)
    return row


def test_batches_are_joined_by_the_columns_own_rules(make: Make) -> None:
    sink = make()
    sink.apply(FIRST, batch(0, refusals=refusal(2), reassignments=state("copying", "no-leader")))
    sink.apply(FIRST, batch(1, refusals=refusal(3), reassignments=state("completed"), brokers=broker(moves_in_most=3)))
    sink.apply(FIRST, batch(2, brokers=broker(moves_in_most=2, moves_in_last=2, bytes_in=7)))
    sink.apply(FIRST, batch(3, brokers=broker(bytes_in=5)))
    assert only(sink, "refusals")["refusals"] == 5
    found = only(sink, "reassignments")
    assert (found["state"], found["reason"]) == ("completed", None), "what is replaced is replaced by nothing as well"
    row = only(sink, "brokers")
    assert (row["moves_in_most"], row["moves_in_last"], row["bytes_in"]) == (3, 2, 12)
    assert row["moves_out_last"] is None
    sink.close()


def test_a_sum_that_no_column_holds_stops_at_the_most_that_one_does(make: Make) -> None:
    sink = make()
    for number in range(FILES_PER_LEVEL + 1):
        assert sink.apply(FIRST, batch(number, brokers=broker(bytes_in=MOST - 5)))
    assert only(sink, "brokers")["bytes_in"] == MOST
    sink.close()


def test_a_batch_that_comes_again_has_no_effect_also_after_a_restart(make: Make) -> None:
    first = make()
    assert first.apply(FIRST, batch(0, refusals=refusal(2)))
    assert not first.apply(FIRST, batch(0, refusals=refusal(2)))
    first.close()
    second = make()
    assert not second.apply(FIRST, batch(0, refusals=refusal(2)))
    assert second.apply(FIRST, batch(1, refusals=refusal(1)))
    assert only(second, "refusals")["refusals"] == 3
    second.close()


def test_what_is_carried_is_of_the_last_batch_that_named_it(make: Make) -> None:
    first = make()
    assert first.position(FIRST) is None
    first.apply(FIRST, batch(0, {"a": b"1", "b": b"2"}))
    first.apply(FIRST, batch(1, {"a": b"4", "c": b"3"}))
    first.close()
    second = make()
    position = second.position(FIRST)
    assert position is not None
    assert (position.batch, dict(position.carry)) == (1, {"a": b"4", "b": b"2", "c": b"3"})
    standing = second.standing()
    assert standing is not None
    assert (standing.batch, standing.newest_ms, standing.applied_ms) == (1, 1001, 2001)
    second.close()


def test_an_unknown_checkpoint_begins_anew(make: Make) -> None:
    sink = make()
    sink.apply(FIRST, batch(0, {"a": b"1"}, refusals=refusal(2), reassignments=state("copying")))
    sink.apply(OTHER, batch(0, refusals=refusal(1, "bob")))
    assert only(sink, "refusals")["requester"] == "bob"
    assert sink.rows("reassignments") == ()
    assert sink.position(FIRST) is None
    position = sink.position(OTHER)
    assert position is not None
    assert dict(position.carry) == {}
    sink.close()


@pytest.mark.parametrize(("before", "number"), [((), 3), ((0, 1), 3)])
def test_a_batch_that_does_not_follow_is_refused_with_the_way_out(
    make: Make, before: tuple[int, ...], number: int
) -> None:
    sink = make()
    for earlier in before:
        sink.apply(FIRST, batch(earlier, refusals=refusal(1)))
    with pytest.raises(ConfigurationError, match="Remove the checkpoint"):
        sink.apply(FIRST, batch(number, refusals=refusal(1)))
    assert sum(row["refusals"] for row in sink.rows("refusals")) == len(before)
    sink.close()


def test_a_batch_that_fails_in_the_middle_has_no_effect(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = make()
    sink.apply(FIRST, batch(0, {"a": b"1"}, refusals=refusal(2)))

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteSink, "_carry_on", fail)
        patch.setattr(parquet, "_write_rows", fail)
        with pytest.raises(OSError, match="full"):
            sink.apply(FIRST, batch(1, {"a": b"9"}, refusals=refusal(5)))
    sink.close()
    again = make()
    assert only(again, "refusals")["refusals"] == 2
    position = again.position(FIRST)
    assert position is not None
    assert dict(position.carry) == {"a": b"1"}
    assert again.apply(FIRST, batch(1, refusals=refusal(5)))
    assert only(again, "refusals")["refusals"] == 7
    again.close()


def test_tables_of_another_version_are_made_anew(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make()
    old.apply(FIRST, batch(0, refusals=refusal(2)))
    old.close()
    for module in (sqlite, parquet):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 999)
    new = make()
    assert new.position(FIRST) is None
    assert new.rows("refusals") == ()
    new.close()


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_file_that_an_earlier_drover_left_is_read_by_nobody_and_made_anew(tmp_path: Path, version: int) -> None:
    files = JobFiles(tmp_path)
    shutil.copy(SAMPLES / f"tables-{version}.sqlite", files.tables)
    with pytest.raises(ConfigurationError, match="which makes it anew"), open_tables(files):
        pass
    sink = SqliteSink(files.tables)
    assert sink.position(f"checkpoint-of-version-{version}") is None, "its query begins with the first record"
    assert not any(sink.rows(name) for name, table in TABLES.items() if not table.is_history)
    assert sink.apply(FIRST, batch(0, refusals=refusal(2), reassignments=state("copying")))
    with open_tables(files) as connection:
        assert len(list(read_rows(connection, "reassignments"))) == 1
    sink.close()


def test_what_has_ended_is_kept_for_so_long_and_what_has_not_for_ever(tmp_path: Path) -> None:
    day_ms = 86_400_000
    sink = SqliteSink(tmp_path / "tables.sqlite", keeps_ms=90 * day_ms)

    def row(table: str, **values: Any) -> dict[str, Any]:
        return dict.fromkeys(TABLES[table].names) | values

    rows = {
        "brokers": (broker(), broker(window_ms=5 * day_ms)),
        "plans": tuple(row("plans", cluster="local", plan=str(end), finished_ms=end) for end in (None, 1, 5 * day_ms)),
        "throttles": (row("throttles", cluster="local", broker=1, since_ms=1),),
    }
    now_ms = 92 * day_ms
    sink.apply(FIRST, Applied(0, Part(rows, {}, newest_ms=1, logged_ms=1), now_ms))
    # Neither the time of a sample, which may be its sender's, nor a log that is ahead of this machine removes anything.
    sink.apply(FIRST, Applied(1, Part({}, {}, newest_ms=9 * now_ms, logged_ms=2), now_ms))
    sink.apply(FIRST, Applied(2, Part({}, {}, newest_ms=9 * now_ms, logged_ms=9 * now_ms), 2))
    assert (len(sink.rows("brokers")), len(sink.rows("plans"))) == (2, 3)
    sink.apply(FIRST, Applied(3, Part({}, {}, newest_ms=now_ms, logged_ms=now_ms), now_ms))
    assert [one["window_ms"] for one in sink.rows("brokers")] == [5 * day_ms]
    assert {one["plan"] for one in sink.rows("plans")} == {"None", str(5 * day_ms)}
    assert len(sink.rows("throttles")) == 1
    sink.close()


def test_a_job_that_goes_on_within_an_hour_removes_nothing_yet(tmp_path: Path) -> None:
    hour_ms = 3_600_000
    old = {**dict.fromkeys(TABLES["plans"].names), "cluster": "local", "plan": "p", "finished_ms": 1}

    def apply(number: int, now_ms: int) -> int:
        sink = SqliteSink(tmp_path / "tables.sqlite", keeps_ms=None if number == 0 else hour_ms)
        sink.apply(FIRST, Applied(number, Part({"plans": (old,)}, {}, newest_ms=now_ms, logged_ms=now_ms), now_ms))
        left = len(sink.rows("plans"))
        sink.close()
        return left

    assert [apply(0, 5 * hour_ms), apply(1, 5 * hour_ms + 9), apply(2, 6 * hour_ms)] == [1, 1, 0]


@pytest.mark.parametrize("name", TABLES)
def test_what_expires_expires_by_a_moment(name: str) -> None:
    units = {column.name: column.unit for column in TABLES[name].columns}
    assert TABLES[name].expires_by is None or units[str(TABLES[name].expires_by)] == "ms since epoch"


def test_the_history_is_kept_by_the_sink_that_is_made_for_it(tmp_path: Path) -> None:
    ended: dict[str, Any] = dict.fromkeys(TABLES["ended"].names)
    ended |= {
        "cluster": "local",
        "topic": "t",
        "partition": 0,
        "ended_ms": 1,
        "offset": 9,
        "index": 0,
        "state": "completed",
    }
    history = ParquetSink(tmp_path / "history")
    history.apply(FIRST, batch(0, ended=ended))
    history.apply(FIRST, batch(1, ended=ended | {"ended_ms": 2, "offset": 12}))
    assert sorted(row["ended_ms"] for row in history.rows("ended")) == [1, 2]
    tables = SqliteSink(tmp_path / "tables.sqlite")
    assert tables.apply(FIRST, batch(0, ended=ended))
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        tables.rows("ended")
    tables.close()


def test_compaction_keeps_files_few_and_changes_no_table(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path)
    batches = FILES_PER_LEVEL**2 + FILES_PER_LEVEL + 3
    for number in range(batches):
        sink.apply(FIRST, batch(number, refusals=refusal(1), reassignments=state(f"state-{number}")))
        assert len(list((tmp_path / "refusals").iterdir())) <= 3 * FILES_PER_LEVEL
    assert only(sink, "refusals")["refusals"] == batches
    assert only(sink, "reassignments")["state"] == f"state-{batches - 1}"
    assert len(list((tmp_path / "refusals").iterdir())) == 1 + 1 + 3
    assert len(list(tmp_path.glob("carry-*"))) == 1


def test_a_file_that_was_removed_without_the_log_beside_it_is_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "tables.sqlite"
    killed = SqliteSink(file)
    killed.apply(FIRST, batch(0, refusals=refusal(2)))
    beside = file.with_name("tables.sqlite-wal")
    assert beside.stat().st_size > 0
    left = tmp_path / "left" / "tables.sqlite"
    left.parent.mkdir()
    shutil.copy(beside, left.with_name(beside.name))
    killed.close()
    sink = SqliteSink(left)
    assert sink.position(FIRST) is None
    assert sink.rows("refusals") == ()
    assert sink.apply(OTHER, batch(0, refusals=refusal(1)))
    assert only(sink, "refusals")["refusals"] == 1
    sink.close()


def test_the_file_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "tables.sqlite"
    sink = SqliteSink(file)
    sink.apply(FIRST, batch(0, refusals=refusal(1)))
    reader = sqlite3.connect(f"file:{file}?mode=ro", uri=True, check_same_thread=False)
    inside, seen = threading.Event(), list[int]()
    original = SqliteSink._carry_on

    def read_inside(self: SqliteSink, applied: Applied) -> None:
        original(self, applied)
        seen.append(sum(row["refusals"] for row in sqlite.read_rows(reader, "refusals")))
        inside.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteSink, "_carry_on", read_inside)
        sink.apply(FIRST, batch(1, refusals=refusal(1)))
    assert inside.is_set()
    assert seen == [1], "what is not committed is not seen, and nobody waits"
    assert sum(row["refusals"] for row in sqlite.read_rows(reader, "refusals")) == 2
    reader.close()
    sink.close()


def test_sql_and_python_join_alike(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "tables.sqlite")
    values = (None, 0, 3, 1)
    pairs = [(one, other) for one in values for other in values]
    columns = [column for column in TABLES["brokers"].values if column.name != "bytes_out"]
    number = 0
    for place, (one, other) in enumerate(pairs):
        for value in (one, other):
            row = broker(**{column.name: value for column in columns}) | {"broker": place}  # type: ignore[arg-type]
            sink.apply(FIRST, batch(number, brokers=row))
            number += 1
    found = {row["broker"]: row for row in sink.rows("brokers")}
    for place, (one, other) in enumerate(pairs):
        for column in columns:
            assert found[place][column.name] == joined(column.merge, joined(column.merge, None, one), other), column
    sink.close()
