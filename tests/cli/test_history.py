"""Places in the log as they are typed, and how a past state and a difference are shown."""

from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from drover.cli.history import (
    PLACE,
    change_cells,
    history,
    parse_point,
    place_text,
    state,
    state_document,
    state_layout,
)
from drover.cli.invocation import Invocation
from drover.client.differences import diff
from drover.client.time_travel import Point
from drover.events.partitions import TopicPartition
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState
from drover.state.declared import declarations
from tests.client.test_differences import SILENT
from tests.shard.world import CLUSTER, World, alter

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)

# What only numbers or dates what else is shown.
HIDDEN = SILENT - {"name"}


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("0", Point(offset=0)),
        ("120", Point(offset=120)),
        ("-2h", Point(at_ms=NOW_MS - 7_200_000)),
        ("-90s", Point(at_ms=NOW_MS - 90_000)),
        ("2026-11-21T11:00:00Z", Point(at_ms=NOW_MS - 3_600_000)),
        ("2026-11-21T13:00+02:00", Point(at_ms=NOW_MS - 3_600_000)),
    ],
)
def test_a_place_in_the_log_is_read(text: str, point: Point) -> None:
    assert parse_point(text, NOW) == point


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yesterday", "is not a place in the log: write an offset, -2h for two hours ago, or 2026"),
        ("-2w", "is not a duration: write 500ms, 30s, 5m, 2h or 1d"),
        ("2026-11-21T11:00", "has no time zone: write 2026-11-21T11:00Z for UTC"),
        ("2026-11-21T12:00:01Z", "is in the future"),
    ],
)
def test_what_is_no_place_is_refused_in_one_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("+", r"\+")):
        parse_point(text, NOW)


def test_click_reports_it_as_wrong_usage() -> None:
    with pytest.raises(click.BadParameter, match="not a place in the log"):
        PLACE.convert("soon", None, None)


def test_filters_do_not_go_with_a_difference() -> None:
    done = CliRunner().invoke(history, ["--diff", "1", "2", "--topic", "orders"], obj=Invocation())
    assert done.exit_code == 2


def test_a_shard_and_a_cluster_are_one_too_many() -> None:
    done = CliRunner().invoke(state, ["--shard", "1", "--cluster", "prod"], obj=Invocation())
    assert done.exit_code == 2


async def _moving() -> tuple[ClusterState, ShardFold]:
    world = World()
    world.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000_000)
    await world.send(alter({TopicPartition("orders", 0): [2, 3, 4]}, plan="friday", throttle_bytes_per_second=1000))
    await world.run(500)
    await world.freeze()
    return world.state, world.core.fold


async def test_a_document_has_everything_that_a_state_has() -> None:
    known, _ = await _moving()
    document = state_document(known)
    assert set(document) == {"cluster", *(one.name for one in declarations(ClusterState).values())} - HIDDEN
    (reassignment,) = document["reassignments"]
    assert (reassignment["topic"], reassignment["partition"]) == ("orders", 0)
    assert reassignment["target"] == [2, 3, 4]
    assert reassignment["replacement"] is None
    assert document["freeze"]["by"] == "ana"


async def test_a_past_state_is_shown_in_tables() -> None:
    known, fold = await _moving()
    console = Console(width=400, record=True)
    with console.capture() as captured:
        console.print(state_layout(place_text(fold), [known]))
    shown = captured.get()
    for part in (
        f"As of shard 0 after offset {fold.position - 1}, decided until 20",
        CLUSTER,
        "Frozen by ana",
        "1,2,3 → 2,3,4",
        "friday",
        "follower 1.0 kB/s",
    ):
        assert part in shown


async def test_nothing_yet_is_shown_as_such() -> None:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(state_layout(place_text(ShardFold(2, 3)), [ClusterState("prod")]))
    assert "shard 2, before its first decision" in captured.get()
    assert "There are no plans." in captured.get()


async def test_a_difference_is_a_row_that_can_be_read() -> None:
    known, _ = await _moving()
    rows = [change_cells(change) for change in diff(ClusterState(CLUSTER), known)]
    assert ("freeze frozen", "", "-", "by ana, reason test") in rows
    assert any(row[0] == "reassignment begun" and "target 2,3,4" in row[3] for row in rows)
