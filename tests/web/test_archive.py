"""The stories in memory: found by partition, plan and command, and bounded."""

from dataclasses import replace

import msgspec

from drover.client.views.history_rows import HistoryRow
from drover.events.partitions import TopicPartition
from drover.web.archive import Archive
from tests.client.log import CLUSTER
from tests.web.scene import Scene, busy, keys


def archive_of(scene: Scene, max_rows: int = 200_000) -> Archive:
    found = Archive(max_rows)
    found.take(scene.drain())
    found.complete()
    return found


def told(archive: Archive, cluster: str = CLUSTER, **about: str) -> list[HistoryRow]:
    """A whole story in the order of the log."""
    rows, total = archive.story(cluster, slice(0, 1_000_000), **about)
    assert len(rows) == total
    return rows[::-1]


def test_a_partition_a_plan_and_a_command_have_their_stories() -> None:
    archive = archive_of(busy(60))
    story = told(archive, partition="payments:1")
    assert [row.what for row in story][:2] == ["alter accepted", "reassignment-created"]
    assert {row.what for row in told(archive, plan="rebalance-eu")} == {
        "alter accepted", "plan-opened", "reassignment-created",
    }  # fmt: skip
    command = told(archive, id_="alter-friday-drain")
    assert command[0].what == "alter accepted"
    assert "reassignment-completed" in {row.what for row in command}
    assert told(archive, partition="nothing:0") == []
    assert told(archive, "elsewhere") == []


def test_a_page_of_a_story_is_the_newest_rows_first() -> None:
    archive = archive_of(busy(60))
    every = told(archive)
    rows, total = archive.story(CLUSTER, slice(10, 30))
    assert (rows, total) == (every[::-1][10:30], len(every))
    assert archive.story(CLUSTER, slice(total, total + 10)) == ([], total)


def test_what_is_new_waits_until_the_past_was_read() -> None:
    scene = Scene()
    scene.open_plan("p", "ann", "why", None, keys("orders", 1))
    past = scene.drain()
    scene.start(TopicPartition("orders", 0))
    archive = Archive()
    archive.follow(scene.drain())
    archive.take(past)
    story = told(archive, partition="orders:0")
    assert story[-1].what == "reassignment-created"
    archive.complete()
    story = told(archive, partition="orders:0")
    assert [(row.what, row.by) for row in story][-2:] == [("call-intended", "ann"), ("call-accepted", "ann")]


def test_only_the_latest_rows_are_kept_and_the_page_knows_since_when() -> None:
    scene = Scene(pace_ms=1000)
    scene.open_plan("p", "ann", "why", None, keys("orders", 40))
    for key in keys("orders", 40):
        scene.start(key)
    archive = archive_of(scene, max_rows=30)
    rows = told(archive)
    assert len(rows) == len(archive.rows) == 30
    assert told(archive, partition="orders:0") == []
    assert archive.dropped_until_ms is not None
    assert archive.dropped_until_ms <= rows[0].at_ms


def test_the_strip_counts_every_row_once() -> None:
    archive = archive_of(busy(60))
    times = archive.times(CLUSTER)
    assert times == sorted(times)
    counts = archive.counts(CLUSTER, times[0], times[-1], 120)
    assert (len(counts), sum(counts)) == (120, len(times))


def test_a_throttle_is_known_since_it_was_first_set() -> None:
    archive = archive_of(busy(60))
    assert set(archive.throttled_ms[CLUSTER]) == {1, 2, 3, 4, 5, 6}


def test_what_a_wrong_clock_dated_ahead_is_counted_in_the_strip_when_the_time_was_put_right() -> None:
    scene = Scene(pace_ms=1000)
    scene.open_plan("p", "ann", "why", None, keys("orders", 40))
    records = scene.drain()
    scene.start(TopicPartition("orders", 0))
    for key in keys("orders", 40)[1:]:
        scene.start(key)
    wrong, *later = scene.drain()
    ahead = replace(wrong, batch=msgspec.structs.replace(wrong.batch, at_ms=wrong.batch.at_ms + 365 * 86_400_000))
    archive = Archive()
    archive.take([*records, ahead, *later])
    times = archive.times(CLUSTER)
    assert times == sorted(times)
    assert times[-1] == later[-1].batch.at_ms
    assert sum(archive.counts(CLUSTER, times[0], times[-1], 120)) == len(times)
