"""The stories in memory: found by partition, plan and command, and bounded."""

from drover.web.archive import Archive
from events.partitions import TopicPartition
from tests.client.log import CLUSTER
from tests.web.scene import Scene, busy, keys


def archive_of(scene: Scene, max_rows: int = 200_000) -> Archive:
    found = Archive(max_rows)
    found.take(scene.drain())
    found.complete()
    return found


def test_a_partition_a_plan_and_a_command_have_their_stories() -> None:
    archive = archive_of(busy(60))
    story = archive.story(CLUSTER, partition="payments:1", plan=None, id_=None)
    assert [row.what for row in story][:2] == ["alter accepted", "reassignment-queued"]
    assert {row.what for row in archive.story(CLUSTER, partition=None, plan="rebalance-eu", id_=None)} == {
        "alter accepted", "plan-opened", "reassignment-queued",
    }  # fmt: skip
    command = archive.story(CLUSTER, partition=None, plan=None, id_="alter-friday-drain")
    assert command[0].what == "alter accepted"
    assert "reassignment-completed" in {row.what for row in command}
    assert archive.story(CLUSTER, partition="nothing:0", plan=None, id_=None) == []
    assert archive.story("elsewhere", partition=None, plan=None, id_=None) == []


def test_what_is_new_waits_until_the_past_was_read() -> None:
    scene = Scene()
    scene.open_plan("p", "ann", "why", None, keys("orders", 1))
    past = scene.drain()
    scene.start(TopicPartition("orders", 0))
    archive = Archive()
    archive.follow(scene.drain())
    archive.take(past)
    story = archive.story(CLUSTER, partition="orders:0", plan=None, id_=None)
    assert story[-1].what == "reassignment-queued"
    archive.complete()
    story = archive.story(CLUSTER, partition="orders:0", plan=None, id_=None)
    assert [(row.what, row.by) for row in story][-2:] == [("call-intended", "ann"), ("call-accepted", "ann")]


def test_only_the_latest_rows_are_kept_and_the_page_knows_since_when() -> None:
    scene = Scene(pace_ms=1000)
    scene.open_plan("p", "ann", "why", None, keys("orders", 40))
    for key in keys("orders", 40):
        scene.start(key)
    archive = archive_of(scene, max_rows=30)
    rows = archive.story(CLUSTER, partition=None, plan=None, id_=None)
    assert len(rows) == len(archive.rows) == 30
    assert archive.story(CLUSTER, partition="orders:0", plan=None, id_=None) == []
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
