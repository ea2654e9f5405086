"""What audits keep: an audit that begins there says what one says that begins with the first record."""

import resource
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drover.spark.audit import audit_run, shards
from drover.spark.audit.audit_run import Log
from drover.spark.audit.kept import Kept, KeptShard, Place, decoded, encoded, thinned
from drover.spark.audit.kept_files import MOST_PER_SHARD, KeptFiles
from drover.spark.audit.log_reading import Gathered
from drover.spark.audit.parts import AuditSpan
from drover.spark.audit.report import Report, report
from drover.spark.audit.shard_report import ShardReport, Wanted
from drover.spark.audit.shards import Stale, audited
from drover.spark.log_source import LogSource
from tests.shard.random_logs import random_log
from tests.spark.audit_oracle import valid
from tests.spark.kafka_rows import NAMES, Stored, frame, shard
from tests.spark.pure import in_order

SEEDS = range(4)
RECORDS = 120
EVERYTHING = AuditSpan()
ALL = Wanted()


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "KEPT_EVERY_EVENTS", 10)


def read(
    log: Sequence[Stored], span: AuditSpan, plan: str | None, kept: Mapping[int, KeptShard]
) -> tuple[Report, list[KeptShard]]:
    """Audit a log as an audit does that has these kept shards; returns the report and what it keeps."""
    starts = {0: 0} | {number: one.chain_offset for number, one in kept.items()}
    records = in_order(one for one in log if one.offset >= starts[one.partition])
    lines = list(audited(records, span, Wanted(plan=plan), kept))
    assert not any(isinstance(line, Stale) for line in lines)
    found = report([line for line in lines if isinstance(line, ShardReport)], span, {0: 0}, {0: len(log)})
    read_back = [decoded(line.content) for line in lines if isinstance(line, Kept)]
    return found, [one for one in read_back if one is not None]


def files_of(directory: Path, kept: Sequence[KeptShard]) -> KeptFiles:
    files = KeptFiles(directory, NAMES.events)
    for one in kept:
        files.keep(one.shard, Place(one.position, one.latest_ms), encoded(one))
    return files


@pytest.mark.parametrize("seed", SEEDS)
def test_a_part_is_told_alike_from_where_it_was_kept_and_from_the_first_record(seed: int, tmp_path: Path) -> None:
    log = shard(*random_log(seed, RECORDS))
    _, kept = read(log, EVERYTHING, None, {})
    assert len(kept) > 3
    files = files_of(tmp_path, kept)
    times = sorted({batch.at_ms for batch in valid(log)})
    began = set()
    for number in range(1, 8):
        since_ms = times[number * len(times) // 8]
        for span in (
            AuditSpan(since_ms),
            AuditSpan(since_ms, times[-len(times) // 10]),
            AuditSpan(offsets={0: (number * 10, 100)}),
        ):
            near = files.nearest(0, len(log), span, None)
            wanted, _ = read(log, span, None, {})
            found, _ = read(log, span, None, {} if near is None else {0: near})
            assert found == wanted
            began.add(0 if near is None else near.position)
    assert len(began) > 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_told_alike_from_where_it_was_kept_before_the_plan(seed: int, tmp_path: Path) -> None:
    log = shard(*random_log(seed, RECORDS))
    whole, kept = read(log, EVERYTHING, None, {})
    files = files_of(tmp_path, kept)
    named = {row["plan"] for section in ("plans", "commands") for row in whole.sections[section]} - {None}
    began = set()
    for plan in (*named, "never named"):
        near = files.nearest(0, len(log), EVERYTHING, plan)
        wanted, _ = read(log, EVERYTHING, plan, {})
        found, _ = read(log, EVERYTHING, plan, {} if near is None else {0: near})
        assert found == wanted
        began.add(0 if near is None else near.position)
    assert len(began) > 1


def test_what_is_kept_of_a_shard_that_was_kept_is_the_same(tmp_path: Path) -> None:
    log = shard(*random_log(1, RECORDS), b"\xc1")
    whole, kept = read(log, EVERYTHING, None, {})
    for one in kept[:-1]:
        found, again = read(log, EVERYTHING, None, {0: one})
        assert (again[-1].position, again[-1].mentions, again[-1].plans) == (
            kept[-1].position,
            kept[-1].mentions,
            kept[-1].plans,
        )
        assert found.totals["unreadable_records"] == whole.totals["unreadable_records"] == 1


def test_a_shard_of_another_log_is_known_by_its_last_batch() -> None:
    _, kept = read(shard(*random_log(1, RECORDS)), EVERYTHING, None, {})
    other = shard(*random_log(2, RECORDS))
    lines = list(audited(in_order(other[kept[3].chain_offset :]), EVERYTHING, ALL, {0: kept[3]}))
    assert lines == [Stale(0)]


def test_a_damaged_file_and_one_of_another_version_are_removed(tmp_path: Path) -> None:
    log = shard(*random_log(1, RECORDS))
    _, kept = read(log, EVERYTHING, None, {})
    files = files_of(tmp_path, kept)
    newest, *others = sorted((tmp_path / NAMES.events).iterdir(), key=lambda one: -int(one.stem.split("-")[1]))
    newest.write_bytes(b"\xc1")
    old = KeptShard(
        version=(0, 0),
        shard=0,
        position=1,
        chain_offset=1,
        latest_ms=0,
        mentions={},
        unreadable=(),
        plans=[],
        carried=b"",
    )
    files.keep(0, Place(1, 0), encoded(old))
    found = files.nearest(0, len(log), AuditSpan(since_ms=2**60), None)
    assert found is not None
    assert found.position == int(others[0].stem.split("-")[1])
    assert not newest.exists()
    assert decoded(encoded(old)) is None
    assert files.nearest(0, 1, AuditSpan(since_ms=2**60), None) is None, "the log ends before the others"
    files.forget(0)
    assert list((tmp_path / NAMES.events).iterdir()) == []


def test_a_file_that_can_neither_be_read_nor_removed_is_passed_over(tmp_path: Path) -> None:
    log = shard(*random_log(1, RECORDS))
    _, kept = read(log, EVERYTHING, None, {})
    files = files_of(tmp_path, kept)
    for place in files._places(0):
        files._file(0, place).unlink()
        files._file(0, place).mkdir()
    assert files.nearest(0, len(log), EVERYTHING, None) is None
    assert files.nearest(0, len(log), AuditSpan(since_ms=2**60), "any") is None


def test_a_full_disk_leaves_no_unfinished_file(tmp_path: Path) -> None:
    files = KeptFiles(tmp_path, NAMES.events)
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            files.keep(0, Place(1, 0), bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / NAMES.events).iterdir()) == []


def test_a_file_that_another_audit_removes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = shard(*random_log(1, RECORDS))
    _, kept = read(log, EVERYTHING, None, {})
    files = files_of(tmp_path, kept)
    gone = Place(kept[-1].position + 1, kept[-1].latest_ms)
    listed = files._places(0)
    monkeypatch.setattr(files, "_places", lambda _: {*listed, gone})
    found = files.nearest(0, len(log) + 1, AuditSpan(since_ms=2**60), None)
    assert found is not None
    assert found.position == kept[-1].position
    assert files.nearest(0, len(log) + 1, EVERYTHING, "never named") == found
    files._remove(0, (gone,))


def test_of_many_the_newest_and_a_few_far_apart_are_kept(tmp_path: Path) -> None:
    files = KeptFiles(tmp_path, "log")
    for position in range(1, 101):
        files.keep(0, Place(position, position), b"")
    left = sorted(int(file.stem.split("-")[1]) for file in (tmp_path / "log").iterdir())
    assert len(left) == MOST_PER_SHARD
    assert left[-1] == 100
    assert thinned([Place(10, 0), Place(11, 0), Place(50, 0)], 2) == {Place(11, 0), Place(50, 0)}


def test_what_is_kept_of_another_log_and_cannot_be_removed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another user's audits keep theirs: nobody else may remove it."""
    _, kept = read(shard(*random_log(1, RECORDS)), EVERYTHING, None, {})
    files_of(tmp_path / "kept", kept)
    log = shard(*random_log(2, RECORDS))

    def forget(_files: KeptFiles, _shard: int) -> None:
        raise PermissionError("not yours")

    def gathered(
        records: list[Stored],
        span: AuditSpan,
        wanted: Wanted,
        _starts: object,
        _ends: object,
        kept: Mapping[int, KeptShard],
    ) -> Gathered:
        lines = list(audited(in_order(records), span, wanted, kept))
        shards = [line for line in lines if isinstance(line, ShardReport)]
        stale = tuple(line.shard for line in lines if isinstance(line, Stale))
        return Gathered(report(shards, span, {0: 0}, {0: len(log)}), (), stale)

    @contextmanager
    def reading(_: Log) -> Iterator[Callable[[Mapping[int, int]], list[Stored]]]:
        yield lambda starts: [one for one in log if one.offset >= starts[one.partition]]

    monkeypatch.setattr(KeptFiles, "forget", forget)
    monkeypatch.setattr(audit_run, "gather", gathered)
    monkeypatch.setattr(Log, "reading", reading)
    span = AuditSpan(since_ms=2**60)
    found = audit_run.audited(Log(LogSource("nowhere"), {0: 0}, {0: len(log)}, tmp_path), span, ALL)
    assert found == read(log, span, None, {})[0]


@pytest.mark.story
def test_an_audit_reads_from_where_another_has_kept_the_shard(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shard(*random_log(1, RECORDS))
    log = whole[:80]
    began: list[int] = []

    def read_batch(
        _session: object, _source: object, _topics: object, starts: dict[str, dict[int, int]], _: object
    ) -> object:
        began.append(starts[NAMES.events][0])
        return frame(spark, [one for one in log if one.offset >= began[-1]])

    monkeypatch.setattr(audit_run, "open_session", lambda *_, **__: spark)
    monkeypatch.setattr(audit_run, "read_batch", read_batch)
    monkeypatch.setattr(spark, "stop", lambda: None)
    audit_run.audited(Log(LogSource("nowhere"), {0: 0}, {0: len(log)}, tmp_path), EVERYTHING, ALL)
    since_ms = max(batch.at_ms for batch in valid(log)) + 1
    log = whole
    grown = Log(LogSource("nowhere"), {0: 0}, {0: len(log)}, tmp_path)
    later = audit_run.audited(grown, AuditSpan(since_ms), ALL)
    wanted, _ = read(log, AuditSpan(since_ms), None, {})
    assert later == wanted
    shutil.rmtree(tmp_path / "kept")
    (tmp_path / "kept").write_text("a file where a directory should be")
    assert audit_run.audited(grown, AuditSpan(since_ms), ALL) == wanted
    (tmp_path / "kept").unlink()
    log = whole[:80]
    audit_run.audited(Log(LogSource("nowhere"), {0: 0}, {0: len(log)}, tmp_path), EVERYTHING, ALL)
    assert wanted.sections["commands"]
    log = shard(*random_log(2, RECORDS))
    audit_run.audited(grown, AuditSpan(since_ms), ALL)
    place = began[1]
    assert began == [0, place, 0, 0, place, 0], "it is read again from the beginning where it is another log"
    assert 70 < place < 80
