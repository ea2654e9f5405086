"""`drover audit` and `drover audit verify` on a real Kafka, and everything that may be typed wrongly."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from drover.cli.audit import compare_trees
from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.cluster.topics import TopicSpec, create_topics
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.local import LocalCluster
from drover.projections import projection
from drover.projections.comparison import Comparison
from drover.projections.store import Set, StoreUnavailableError, read_subtree
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ClusterSettings, LogSettings, Settings, ZooKeeperOptions, ZooKeeperSettings
from drover.spark.audit import audit_run
from tests.shard.damage import Damage, damaged
from tests.simulation import golden
from tests.spark.audit_oracle import AuditOracle
from tests.spark.conftest import Kept
from tests.spark.kafka_rows import Stored, shard

SOUND, DAMAGED = "audit-sound", "audit-damaged"


def settings_file(file: Path, bootstrap: str, prefix: str) -> Path:
    spark_directory = file.with_suffix("") / "spark"
    file.write_text(
        f'[log]\nbootstrap = "{bootstrap}"\nprefix = "{prefix}"\n[spark]\ndirectory = "{spark_directory}"\n'
    )
    return file


def records() -> list[Stored]:
    log = golden.read(golden.FOLDER / "seed-81.msgpack.zlib")
    return [one for number, kept in enumerate(log.shards) for one in shard(*kept.records, partition=number)]


async def write(bootstrap: str, prefix: str, shards: list[list[bytes]]) -> None:
    names = TopicNames(prefix)
    await create_topics(bootstrap, [TopicSpec(names.events, len(shards), 1)])
    producer = LogProducer(LogConnection(bootstrap, names), prefix)
    await producer.start()
    for number, payloads in enumerate(shards):
        for payload in payloads:
            await producer.send(names.events, payload, partition=number)
    await producer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bootstrap(local_cluster: LocalCluster) -> AsyncIterator[str]:
    """A Kafka with a sound log of two shards, and a damaged log of one."""
    log = golden.read(golden.FOLDER / "seed-81.msgpack.zlib")
    await write(local_cluster.bootstrap, SOUND, [list(kept.records) for kept in log.shards])
    await write(local_cluster.bootstrap, DAMAGED, [damaged(Damage.CURSOR)[0]])
    yield local_cluster.bootstrap


@pytest.fixture
def in_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_run, "open_session", lambda *_, **__: Kept(spark))


def names_in(directory: Path) -> set[str]:
    return {file.name for file in directory.iterdir()}


async def run(config: Path, *arguments: str) -> Result:
    """Run a command in a thread, where it has a loop of its own."""
    return await asyncio.to_thread(
        CliRunner().invoke, cli, ["audit", *arguments, "--config", str(config)], prog_name="drover"
    )


@pytest.mark.cluster
@pytest.mark.story
@pytest.mark.usefixtures("in_process")
async def test_an_audit_by_time_names_offsets_that_give_it_again(bootstrap: str, tmp_path: Path) -> None:
    config = settings_file(tmp_path / "drover.toml", bootstrap, SOUND)
    times = sorted(row["at_ms"] for row in AuditOracle(records()).commands)
    since_ms = times[len(times) // 2] // 1000 * 1000
    since = datetime.fromtimestamp(since_ms // 1000, UTC).isoformat()
    by_time = await run(config, "--since", since, "-o", "json")
    assert by_time.exit_code == 0, by_time.stderr
    document = json.loads(by_time.stdout)
    oracle = AuditOracle(records(), since_ms=since_ms)
    assert 0 < len(document["commands"]) == len(oracle.commands) < len(AuditOracle(records()).commands)
    assert len(document["reassignments"]) == len(oracle.reassignments)
    by_offset = await run(config, "--offsets", document["offsets"], "-o", "json")
    assert json.loads(by_offset.stdout) == document
    assert "Starting Spark" in by_time.stderr


@pytest.mark.cluster
@pytest.mark.story
@pytest.mark.usefixtures("in_process")
async def test_verify_finds_nothing_in_a_sound_log_and_names_what_is_damaged(bootstrap: str, tmp_path: Path) -> None:
    sound = await run(settings_file(tmp_path / "sound.toml", bootstrap, SOUND), "verify")
    assert sound.exit_code == 0, sound.stderr
    assert sound.stderr.endswith("no broken rule.\n")
    broken = await run(settings_file(tmp_path / "broken.toml", bootstrap, DAMAGED), "verify", "-o", "json")
    assert broken.exit_code == ExitCode.CORRUPT
    ((offset, rule),) = damaged(Damage.CURSOR)[1]
    (finding,) = json.loads(broken.stdout)["findings"]
    assert (finding["shard"], finding["offset"], finding["rule"]) == (0, offset, rule)


@pytest.mark.cluster
@pytest.mark.story
@pytest.mark.usefixtures("in_process")
async def test_verify_of_a_cluster_reads_its_shard_alone(bootstrap: str, tmp_path: Path) -> None:
    config = settings_file(tmp_path / "drover.toml", bootstrap, SOUND)
    done = await run(config, "verify", "--cluster", "east", "-o", "json")
    assert done.exit_code == 0, done.stderr
    (found,) = json.loads(done.stdout)["shards"]
    log = golden.read(golden.FOLDER / "seed-81.msgpack.zlib")
    assert found["state_hash"] == log.shards[found["shard"]].state_hash.hex()


@pytest.mark.cluster
@pytest.mark.story
@pytest.mark.usefixtures("in_process")
async def test_an_audit_is_written_in_every_form(bootstrap: str, tmp_path: Path) -> None:
    config = settings_file(tmp_path / "drover.toml", bootstrap, SOUND)
    table = await run(config)
    assert "What was done" in table.stdout
    page = await run(config, "-o", "html", "--out", str(tmp_path / "audit.html"))
    assert (page.stdout, page.stderr.splitlines()[-1]) == ("", f"Wrote {tmp_path / 'audit.html'}")
    assert (tmp_path / "audit.html").read_text().startswith("<!doctype html>")
    occupied = tmp_path / "files" / "plans.csv"
    occupied.mkdir(parents=True)
    failed = await run(config, "--by", "nobody", "-o", "csv", "--out", str(occupied.parent))
    assert failed.exit_code == ExitCode.FAILED
    assert f"{occupied.parent} cannot be written" in failed.stderr


@pytest.mark.cluster
@pytest.mark.story
@pytest.mark.usefixtures("in_process")
async def test_the_tree_in_zookeeper_is_compared_with_the_log(
    bootstrap: str, local_cluster: LocalCluster, tmp_path: Path
) -> None:
    config = settings_file(tmp_path / "drover.toml", bootstrap, SOUND)
    root = "/drover-audit"
    with config.open("a") as file:
        file.write(f'[clusters.east]\nbootstrap = "{bootstrap}"\n')
        file.write(f'[zookeeper]\nhosts = "{local_cluster.zookeeper}"\nroot = "{root}"\nallow_open_zookeeper = true\n')
    unasked = await run(config, "verify")
    assert (unasked.exit_code, "ZooKeeper was not compared" in unasked.stderr) == (0, True), unasked.output
    with config.open("a") as file:
        file.write("project = true\n")
    without = await run(config, "verify")
    assert without.exit_code == ExitCode.FAILED
    assert "there is no tree that could be true" in without.stdout
    made = await asyncio.to_thread(CliRunner().invoke, cli, ["--config", str(config), "zookeeper", "rebuild"])
    assert made.exit_code == 0, made.output
    same = await run(config, "verify")
    assert same.exit_code == 0, same.output
    assert "no difference, 0 events behind" in same.stdout
    store = ZooKeeperStore(ZooKeeperOptions(local_cluster.zookeeper))
    base = f"{root}/east"
    path, node = next(
        (path, node) for path, node in (await read_subtree(store, base)).items() if b"original" in node.data
    )
    await store.write([Set(path, b"{}", node.version)])
    await store.close()
    changed = await run(config, "verify", "-o", "json")
    assert changed.exit_code == ExitCode.FAILED
    (tree,) = json.loads(changed.stdout)["zookeeper"]
    assert [difference["path"] for difference in tree["differences"]] == [path.removeprefix(base)]


async def test_a_zookeeper_that_is_away_and_a_log_that_is_broken_are_told_beside_the_findings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def away_compare(*_: object) -> Comparison:
        raise StoreUnavailableError("zk:2181 does not answer")

    monkeypatch.setattr(projection, "compare_tree", away_compare)
    settings = Settings(
        clusters={"east": ClusterSettings("127.0.0.1:1")},
        log=LogSettings("127.0.0.1:1"),
        zookeeper=ZooKeeperSettings("zk:2181", project=True),
    )
    (broken,) = await compare_trees(settings, None, 1, {0})
    assert broken.lines() == ["east in ZooKeeper: not compared: its shard of the log breaks a rule"]
    (away,) = await compare_trees(settings, "east", 1, ())
    assert not away.is_good
    assert away.document()["not_compared"] == "zk:2181 does not answer"
    for unasked in (ZooKeeperSettings(), ZooKeeperSettings("zk:2181")):
        assert await compare_trees(replace(settings, zookeeper=unasked), None, 1, ()) == []


@pytest.mark.cluster
@pytest.mark.story
async def test_parts_that_the_log_does_not_have_and_topics_that_are_not_there_are_named(
    bootstrap: str, tmp_path: Path
) -> None:
    config = settings_file(tmp_path / "drover.toml", bootstrap, SOUND)
    last = max(record.offset for record in records() if record.partition == 0)
    for offsets, said in (("7:0-1", "has shards 0 to 1, not 7"), ("0:0-9999", f"ends with offset {last}, before 9999")):
        done = await run(config, "--offsets", offsets)
        assert done.exit_code == ExitCode.USAGE
        assert said in done.stderr
    done = await run(settings_file(tmp_path / "none.toml", bootstrap, "audit-none"), "verify")
    assert done.exit_code == ExitCode.USAGE
    assert "audit-none.events does not exist" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--since", "yesterday"], "is not a time: write 2h"),
        (["--since", "2026-10-01T10:00"], "has no time zone: write 2026-10-01T10:00Z"),
        (["--since", "999999d"], "is before the first representable date"),
        (["--until", "1790000000000"], "is before the first representable date"),
        (["--since", "2026-10-02", "--until", "2026-10-01"], "--since is later than --until"),
        (["--offsets", "0:1-2", "--since", "2h"], "give either the records or the times"),
        (["--offsets", "0-2"], "is no part of a shard"),
        (["-o", "parquet"], "name a directory with --out"),
        (["-o", "csv"], "named with --section, or writes all"),
        (["-o", "csv", "--section", "plans", "--out", "here"], "named with --section, or writes all"),
        (["-o", "json", "--out", "here"], "-o json prints"),
        (["-o", "html", "--section", "plans"], "-o html has all"),
        (["-o", "xml"], "is not one of"),
        (["--section", "all"], "is not one of"),
        (["--plan", "p", "verify"], "`drover audit verify` takes no options"),
    ],
)
async def test_what_contradicts_itself_is_refused_before_anything_starts(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    config = settings_file(tmp_path / "drover.toml", "127.0.0.1:1", "none")
    done = CliRunner().invoke(cli, ["--config", str(config), "audit", *arguments], prog_name="drover")
    assert done.exit_code == ExitCode.USAGE
    assert said in " ".join(done.output.replace("\n", " ").split())


@pytest.mark.parametrize(
    ("output", "to", "said"),
    [
        ("html", "there", "there is a directory, not a file"),
        ("html", "absent/audit.html", "absent"),
        ("html", "file/audit.html", "file"),
        ("parquet", "file", "file is not a directory"),
        ("csv", "file/audit/deep", "file is not a directory"),
    ],
)
async def test_a_place_that_cannot_be_written_is_refused_before_anything_starts(
    tmp_path: Path, output: str, to: str, said: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    config = settings_file(tmp_path / "drover.toml", "127.0.0.1:1", "none")
    done = await run(config, "-o", output, "--out", str(tmp_path / to))
    assert done.exit_code == ExitCode.USAGE
    assert f"{tmp_path / to} cannot be written" in done.stderr
    assert said in done.stderr
    assert names_in(tmp_path) == {"there", "file", "drover.toml"}


@pytest.mark.parametrize("to", ["audit.html", "new/audit"])
async def test_a_place_that_can_be_written_is_not_made_before_there_is_an_audit(tmp_path: Path, to: str) -> None:
    config = settings_file(tmp_path / "drover.toml", "127.0.0.1:1", "none")
    output = "html" if to.endswith(".html") else "csv"
    done = await run(config, "-o", output, "--out", str(tmp_path / to))
    assert done.exit_code == ExitCode.FAILED
    assert "127.0.0.1:1" in done.stderr
    assert names_in(tmp_path) == {"drover.toml"}


async def test_a_kafka_that_is_away_is_named_and_no_spark_is_started(tmp_path: Path) -> None:
    config = settings_file(tmp_path / "drover.toml", "127.0.0.1:1", "none")
    done = await run(config, "verify")
    assert done.exit_code == ExitCode.FAILED
    assert "127.0.0.1:1" in done.stderr
    assert "Spark" not in done.stderr
