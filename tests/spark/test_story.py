"""The job on the real cluster, beside real moves: right, fresh, and quiet."""

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from drover.cli.page import Tables
from drover.events.partitions import TopicPartition
from drover.settings.settings import LogSettings, Settings, SparkSettings
from drover.spark.files import JobFiles
from tests.integration.support import MANAGED, Installation, wait_for
from tests.spark import live
from tests.spark.comparing import Rows, difference
from tests.spark.conftest import Watched

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.timeout(900)]

# Ten seconds on a free machine, and much longer on one that is busy.
START_S = 400.0
WARM_BATCHES = 4


@dataclass(frozen=True)
class Story:
    """What was done while the job ran, and what it made of it."""

    drover: Installation
    files: JobFiles
    wanted: dict[str, Rows]
    delays_ms: list[int]
    exit_code: int
    said: str


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def story(watched: Watched) -> Story:
    """Real moves of every kind, two owners, zombies and junk, with `drover spark run` beside them."""
    drover, files = watched.drover, watched.files
    await drover.start_worker("first")
    await drover.wait_until_owned("first")
    keys = [TopicPartition("tabled", number) for number in range(6)]
    await drover.create_topic("tabled", {number: [1, 2, 3] for number in range(6)}, kilobytes=3072)
    await live.wait_for_rows(files, "takeovers", "the job's first batch", START_S)
    freshness = live.Freshness(files)
    watching = asyncio.create_task(freshness.watch())
    await drover.alter("slow", {key: [1, 2, 4] for key in keys[:3]}, "--throttle", "20kB/s")
    await live.wait_for_rows(files, "samples", "a sample of a copy under way")
    # What the JVM does for the first time takes longer.
    await live.wait_for_batch(files, WARM_BATCHES)
    began_ms = time.time_ns() // 1_000_000
    assert (await drover.alter("wrong", {TopicPartition("absent", 0): [1, 2, 3]})).code == 1
    await drover.drover("cancel", "--rollback", "--partition", "tabled:0", "--reason", "too slow")
    await wait_for(partial(has_ended, drover, keys[0]), "the rollback to end")
    await drover.drover("cancel", "--stop", "--plan", "slow", "--reason", "enough")
    await live.write_fenced(drover)
    await drover.processes["first"].stop()
    await drover.start_worker("second")
    await drover.alter("quick", {key: [2, 4, 3] for key in keys[3:]})
    await drover.wait_until_settled()
    await drover.processes["second"].stop()
    # What no worker could read: it must come after the last of them.
    await live.append(drover, drover.names.events, [b"\xc1", b"junk"], 2)
    await live.wait_until_equal(drover, files.tables)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    await live.begin_a_batch(drover, files.checkpoint("sqlite"))
    code = await drover.processes["job"].stop()
    delays = await freshness.delays_ms(drover, began_ms)
    return Story(drover, files, await live.plain_tables(drover), delays, code, drover.processes["job"].log_text())


async def has_ended(drover: Installation, key: TopicPartition) -> bool:
    return key not in (await drover.state()).reassignments


async def test_the_tables_are_those_of_a_plain_fold_with_its_own_decoder(story: Story) -> None:
    found = live.tables_in(story.files.tables)
    assert difference(story.wanted, found, found) == []


async def test_every_table_has_something_to_tell_of_these_moves(story: Story) -> None:
    found = live.tables_in(story.files.tables)
    states = {key[2]: row["state"] for key, row in found["reassignments"].items()}
    assert states == {0: "rolled-back", 1: "stopped", 2: "stopped", 3: "completed", 4: "completed", 5: "completed"}
    plans = {plan: row for (_, plan), row in found["plans"].items()}
    assert (plans["slow"]["stopped"], plans["slow"]["rolled_back"], plans["quick"]["completed"]) == (2, 1, 3)
    assert plans["slow"]["throttle"] == 20_000
    assert sum(row["bytes_in"] for row in found["brokers"].values()) > 100_000
    assert sum(row["bytes_out"] for row in found["brokers"].values()) > 100_000
    assert max(row["moves_in_most"] or 0 for (_, broker, _), row in found["brokers"].items() if broker == 4) >= 3
    assert {row["changes"] >= 2 and row["leader_rate"] is None for row in found["throttles"].values()} == {True}
    assert {code for *_, code in found["refusals"]} == {"unknown-topic-or-partition"}
    assert sum(row["takeovers"] for row in found["takeovers"].values()) == 12
    assert {state for _, state, _ in found["durations"]} >= {
        "pending",
        "copying",
        "completed",
        "rolled-back",
        "stopped",
    }
    assert found["undecodable"]["log", 2]["records"] == 2
    assert found["undecodable"]["samples", 1]["records"] == 1


async def test_nothing_that_was_fenced_is_in_any_figure(story: Story) -> None:
    found = live.tables_in(story.files.tables)
    assert sum(row["fenced_batches"] for row in found["takeovers"].values()) == 3
    assert sum(row["fenced_events"] for row in found["takeovers"].values()) == 6
    assert sum(row["lost_acquires"] for row in found["takeovers"].values()) == 1
    everything = repr({name: rows for name, rows in found.items() if name != "takeovers"})
    assert live.FENCED_PLAN not in everything
    assert "zombie" not in everything


async def test_what_is_recorded_is_visible_while_the_job_runs(story: Story) -> None:
    """The benchmark of Spark measures how soon."""
    assert len(story.delays_ms) >= 15


async def test_sigterm_in_mid_batch_ends_the_job_cleanly_and_what_spark_says_is_in_a_file(story: Story) -> None:
    assert story.exit_code == 0
    said = story.said.splitlines()
    assert said[0].startswith("Starting Spark")
    assert "Stopped" in said[-1]
    assert len(said) <= 6, said
    assert story.files.spark_log.exists()
    assert "StackOverflowError" not in story.files.java_log.read_text()


async def test_progress_is_shown_also_when_no_job_runs(story: Story) -> None:
    shown = (await story.drover.drover("progress", "--plan", "slow", "-o", "json")).document
    assert shown["job_is_alive"] is False
    (plan,) = shown["plans"]
    assert (plan["plan"], plan["stopped"], plan["rolled_back"], plan["under_way"]) == ("slow", 2, 1, 0)
    table = await story.drover.drover("progress")
    assert "NO JOB IS RUNNING" in table.output
    rows = (await story.drover.drover("progress", "--table", "durations", "-o", "json")).document["durations"]
    copying = next(row for row in rows if row["state"] == "copying")
    assert copying["durations"] >= 4
    assert 0 < copying["p50_ms"] <= copying["p95_ms"] <= copying["longest_ms"]
    followed = await story.drover.drover("progress", "--plan", "slow", "--follow", "-o", "jsonl")
    assert json.loads(followed.output.splitlines()[-1])["plan"] == "slow"


async def test_a_second_job_in_the_same_directory_is_refused(story: Story, tmp_path: Path) -> None:
    held = JobFiles(tmp_path)
    with live.held(held):
        refused = await story.drover.drover("spark", "run", "--dir", str(tmp_path))
    assert refused.code == 2
    assert "another job runs in" in refused.errors


async def test_without_kafka_or_topics_the_job_says_so_before_spark_starts(story: Story, tmp_path: Path) -> None:
    config = tmp_path / "drover.toml"
    config.write_text(f'[log]\nbootstrap = "{story.drover.cluster.bootstrap}"\nprefix = "nothing"\n')
    absent = await story.drover.drover("spark", "run", "--config", str(config))
    assert (absent.code, "drover log init" in absent.errors) == (2, True), absent.errors
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n')
    away = await story.drover.drover("spark", "run", "--config", str(config))
    assert away.code == 1
    assert "127.0.0.1:1" in away.errors
    assert not (tmp_path / ".local").exists()


async def test_the_page_reads_what_the_job_has_written(story: Story) -> None:
    directory = str(story.files.directory)
    tables = Tables(Settings(LogSettings("nowhere:1"), spark=SparkSettings(directory=directory)))
    found = tables.read(MANAGED)
    # The job was told to stop.
    assert found["job"] is None
    assert found["newest_record_ms"] > 0
    assert "copying" in {row["state"] for row in found["durations"]}
    assert "unknown-topic-or-partition" in {row["code"] for row in found["refusals"]}
    assert found["takeovers"]
