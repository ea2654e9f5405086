"""Commands in processes of their own on a real log, decided by a tiny owner."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from drover.client import Client, OutcomeMissingError, Sent
from drover.client.history import fold_shards
from drover.client.live_view import watch
from drover.client.time_travel import Point, travel
from drover.events.commands import Freeze
from drover.events.topics import TopicNames, shard_of
from drover.fold.log import ShardFold
from drover.fold.snapshot import differences
from drover.journal import snapshots, topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.reader import LogReader
from drover.journal.snapshots import write_snapshot
from drover.local import LocalCluster
from drover.testing.commands import Finished
from tests.architecture.repository import ROOT
from tests.cli.owner import SHARDS, TinyOwner, tiny_owner
from tests.commands import ForkedCommands
from tests.shard.snapshot_anchor import anchoring_batch

pytestmark = [pytest.mark.cluster, pytest.mark.story]


@dataclass(frozen=True)
class Shell:
    """Runs `drover` on one settings file."""

    config: Path

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        program = "from drover.cli.main import main; main()"
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, *arguments, "--config", str(self.config),
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def run(self, *arguments: str) -> Finished:
        return await ForkedCommands().run((*arguments, "--config", str(self.config)), os.environ, "")

    async def finish(self, process: asyncio.subprocess.Process) -> Finished:
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode is not None
        return Finished(process.returncode, out.decode(), err.decode())


def settings_file(directory: Path, cluster: LocalCluster, prefix: str) -> Path:
    file = directory / "drover.toml"
    file.write_text(
        f'[log]\nbootstrap = "{cluster.bootstrap}"\nprefix = "{prefix}"\n'
        f'[clusters.prod]\nbootstrap = "{cluster.bootstrap}"\n'
    )
    return file


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def connection(local_cluster: LocalCluster) -> LogConnection:
    return LogConnection(local_cluster.bootstrap, TopicNames("cli-test"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def owner(connection: LogConnection) -> AsyncIterator[TinyOwner]:
    async with tiny_owner(connection) as running:
        yield running


@pytest.fixture
def shell(tmp_path: Path, local_cluster: LocalCluster, owner: TinyOwner) -> Shell:
    return Shell(settings_file(tmp_path, local_cluster, "cli-test"))


async def test_a_command_returns_its_recorded_outcome_and_history_tells_of_it(shell: Shell) -> None:
    done = await shell.run("freeze", "--reason", "a quiet Friday", "--by", "ann", "--id", "f1")
    assert (done.code, done.errors) == (0, "")
    assert done.output.startswith("freeze f1: accepted (log ")
    told = (await shell.run("history", "--by", "ann", "-o", "json")).document["history"]
    assert [(row["what"], row["reason"]) for row in told] == [
        ("freeze accepted", "a quiet Friday"),
        ("cluster-frozen", "a quiet Friday"),
    ]
    status = (await shell.run("status", "-o", "json")).document
    (cluster,) = status["clusters"]
    assert cluster["frozen"]["by"] == "ann"
    assert cluster["owner"] == "tiny"


async def test_a_retry_under_the_same_id_shows_the_first_outcome(shell: Shell) -> None:
    first = await shell.run("unfreeze", "--reason", "go on", "--id", "u1", "-o", "json")
    again = await shell.run("unfreeze", "--reason", "go on", "--id", "u1", "-o", "json")
    before, after = (done.document["outcomes"][0] for done in (first, again))
    assert (before["repeated"], after["repeated"]) == (False, True)
    assert (after["verdict"], after["offset"]) == ("accepted", before["offset"])
    assert again.code == 0


async def test_a_refusal_is_listed_and_ends_with_1(shell: Shell) -> None:
    done = await shell.run("cancel", "--rollback", "--plan", "p", "--reason", "x")
    assert done.code == 1
    assert "unsupported" in done.output
    assert "the tiny owner moves nothing" in done.output


async def test_no_wait_returns_at_once_and_says_how_to_look_again(shell: Shell) -> None:
    done = await shell.run("leaders", "blacklist", "set", "1", "2", "--reason", "x", "--no-wait", "--id", "b1")
    assert (done.code, done.output) == (0, "")
    assert "drover history --cluster prod --id b1" in done.errors
    assert "No broker of prod is on the list." in (await shell.run("leaders", "blacklist", "show")).output


async def test_replay_folds_the_whole_log_and_verifies_it(shell: Shell) -> None:
    await shell.run("freeze", "--reason", "x")
    done = await shell.run("replay", "--verify", "-o", "json")
    assert done.code == 0
    replayed = done.document
    assert len(replayed["shards"]) == SHARDS
    assert replayed["batches"] == replayed["state_hashes"] > 0
    assert (await shell.run("replay", "-o", "json")).document["shards"] == replayed["shards"]


async def test_dead_letters_are_listed_with_their_place(shell: Shell, connection: LogConnection) -> None:
    journal = KafkaJournal(connection, SHARDS, "test")
    await journal.start()
    headers = (
        ("__connect.errors.topic", b"cli-test.alter"),
        ("__connect.errors.partition", b"1"),
        ("__connect.errors.offset", b"7"),
        ("__connect.errors.exception.message", b"unknown field"),
    )
    await journal.send(connection.topics.dead_letters, b"\x81\xa1a\x01", partition=0, headers=headers)
    await journal.close()
    (letter,) = (await shell.run("dead-letters", "list", "-o", "json")).document["dead_letters"]
    assert (letter["topic"], letter["partition"], letter["source_offset"]) == ("cli-test.alter", 1, 7)
    assert (letter["error"], letter["content"]) == ("unknown field", '{"a": 1}')


async def test_following_waits_for_what_is_undecided_until_interrupted(
    tmp_path: Path, local_cluster: LocalCluster
) -> None:
    # Nobody owns the shards of this log, so that the command stays undecided.
    shell = Shell(settings_file(tmp_path, local_cluster, "cli-unowned"))
    assert (await shell.run("log", "init")).code == 0
    assert (await shell.run("freeze", "--reason", "x", "--no-wait", "--id", "waited-for")).code == 0
    async with aclosing(watch(LogConnection(local_cluster.bootstrap, TopicNames("cli-unowned")), "prod", 60)) as views:
        assert sum((await anext(views)).undecided.values()) == 1, "the first view has it"
    following = await shell.start("status", "--follow")
    assert following.stdout is not None
    async with asyncio.timeout(60):
        while (line := await following.stdout.readline()) != b"No reassignment is under way.\n":
            assert line.startswith(b"shard"), line
    following.send_signal(signal.SIGINT)
    assert (await shell.finish(following)).code == 130


async def test_topics_are_checked_and_created_once(shell: Shell) -> None:
    assert (await shell.run("log", "init")).output == "Every topic already exists.\n"
    assert (await shell.run("log", "check")).code == 0


async def test_without_topics_the_remedy_is_named(tmp_path: Path, local_cluster: LocalCluster) -> None:
    shell = Shell(settings_file(tmp_path, local_cluster, "nobody"))
    for arguments in (["freeze", "--reason", "x"], ["status"]):
        done = await shell.run(*arguments)
        assert done.code == 2
        assert "`drover log init`" in done.errors


async def test_without_an_owner_the_command_ends_with_3_and_says_so(
    tmp_path: Path, local_cluster: LocalCluster
) -> None:
    connection = LogConnection(local_cluster.bootstrap, TopicNames("unowned"))
    await topics.init(connection, SHARDS)
    shell = Shell(settings_file(tmp_path, local_cluster, "unowned"))
    done = await shell.run("freeze", "--reason", "x", "--timeout", "1s")
    assert done.code == 3
    assert f"shard {shard_of('prod', SHARDS)} has never had an owner: start a worker" in done.errors
    waiting = await shell.start("freeze", "--reason", "x", "--id", "left")
    await _until_written(connection, b"left")
    waiting.send_signal(signal.SIGINT)
    interrupted = await shell.finish(waiting)
    assert interrupted.code == 130
    assert "drover history --cluster prod --id left" in interrupted.errors


async def test_a_damaged_log_is_shown_up_to_there_and_its_replay_ends_with_5(
    tmp_path: Path, local_cluster: LocalCluster
) -> None:
    connection = LogConnection(local_cluster.bootstrap, TopicNames("corrupt"))
    async with tiny_owner(connection) as owner, Client(connection) as client:
        await client.outcomes([await client.submit(_freeze("c1"))], 30)
        shard = shard_of("prod", SHARDS)
        journal = KafkaJournal(connection, SHARDS, "test")
        await journal.start()
        # The owner's last record once more: its token is right, its sequence and chain are not.
        offset = await journal.append(shard, owner.last_payload, ())
        await journal.close()
    shell = Shell(settings_file(tmp_path, local_cluster, "corrupt"))
    damage = f"event log shard {shard} offset {offset}: sequence 1 instead of 2"
    replayed = await shell.run("replay", "--verify")
    assert replayed.code == 5
    assert damage in replayed.errors
    assert "Verified" not in replayed.output
    # What reads shows everything up to there, and says so.
    for arguments in (["status"], ["history"]):
        done = await shell.run(*arguments)
        assert done.code == 0
        assert damage in done.errors


async def test_the_client_waits_for_outcomes_and_says_which_are_missing(
    local_cluster: LocalCluster, connection: LogConnection, owner: TinyOwner
) -> None:
    async with Client(connection) as client:
        sent = await client.submit_all([_freeze("c1"), _freeze("c2")])
        assert [answer.outcome.id for answer in await client.outcomes(sent, 30)] == ["c1", "c2"]
    unowned = LogConnection(local_cluster.bootstrap, TopicNames("unowned"))
    await topics.init(unowned, SHARDS)
    async with Client(unowned) as client:
        lonely = await client.submit(_freeze("c3"))
        with pytest.raises(OutcomeMissingError) as missing:
            await client.outcomes([lonely], 0.5)
    assert missing.value.sent == (lonely,)
    assert missing.value.ownership is not None
    assert missing.value.ownership.owner == ""


async def _until_written(connection: LogConnection, id_: bytes) -> None:
    """Read the topic until the command with this id stands in it."""
    async with asyncio.timeout(60), LogReader(connection) as reader:
        topic = TopicNames("unowned").commands[1]
        async with aclosing(reader.follow(topic, dict.fromkeys(range(SHARDS), 0))) as reading:
            async for records in reading:
                if any(id_ in record.payload for record in records):
                    return


def _freeze(id_: str) -> Freeze:
    return Freeze(id=id_, cluster="prod", by="test", reason="a test")


async def test_from_a_snapshot_the_same_is_seen_as_from_the_first_record(
    shell: Shell, connection: LogConnection, owner: TinyOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SHORT_LOG", 1)
    shard = shard_of("prod", SHARDS)
    command = Freeze(id="before-the-snapshot", cluster="prod", by="me", reason="a quiet Friday")
    async with Client(connection) as client:
        first = await client.outcomes([await client.submit(command)], timeout_s=60)
        fold = owner.folds[shard].copy()
        journal = KafkaJournal(connection, SHARDS, "test")
        try:
            written = await write_snapshot(journal, connection.topics, fold)
        finally:
            await journal.close()
        await owner.append(shard, anchoring_batch(owner.folds[shard], written.digest))
        # Of a command that was decided before the snapshot, and of one that repeats it.
        again = await client.submit(command)
        assert await client.outcomes([again], timeout_s=60) == (replace(first[0], repeated=True),)
        old = Sent(command, connection.topics.commands[1], shard, first[0].outcome.offset)
        assert await client.outcomes([old], timeout_s=60) == first
    whole = ShardFold(shard, SHARDS)
    async with LogReader(connection) as reader:
        async for records in reader.read(connection.topics.events, {shard: 0}):
            for record in records:
                whole.fold(record.offset, record.payload)
    present = (await fold_shards(connection, "prod")).folds[shard]
    assert differences(present, whole) == ()
    for point in (Point(), Point(offset=fold.position - 1), Point(offset=fold.position - 2), Point(at_ms=fold.at_ms)):
        found = (await travel(connection, "prod", (point,))).reached[point]
        if point.offset is not None:
            assert found.position == point.offset + 1
        elif point.at_ms is not None:
            assert found.at_ms == point.at_ms
        else:
            assert differences(found, whole) == ()
    verified = (await shell.run("replay", "--verify", "-o", "json")).document
    assert verified["snapshots"] == 1


async def test_the_past_and_what_is_different_since_are_shown(shell: Shell) -> None:
    await shell.run("unfreeze", "--reason", "begin")
    before = (await shell.run("state", "-o", "json")).document
    await shell.run("freeze", "--reason", "incident 7", "--by", "ana")
    then = before["log"]["offset"]
    now = (await shell.run("state", "-o", "json")).document
    assert (before["clusters"][0]["freeze"], now["clusters"][0]["freeze"]["by"]) == (None, "ana")
    assert (await shell.run("state", "--at", str(then), "-o", "json")).document == before
    at = datetime.fromtimestamp(before["log"]["at_ms"] / 1000, UTC).isoformat()
    assert (await shell.run("state", "--at", at, "-o", "json")).document == before
    shown = await shell.run("state", "--shard", str(before["log"]["shard"]))
    assert "Frozen by ana" in shown.output
    changed = await shell.run("history", "--diff", str(then), "-0s", "-o", "json")
    (change,) = changed.document["changes"]
    assert (change["what"], change["after"]["reason"]) == ("frozen", "incident 7")
    assert "freeze frozen" in (await shell.run("history", "--diff", at, "-0s")).output
    assert "Nothing has changed in prod." in (await shell.run("history", "--diff", str(then), at)).errors
    backwards = await shell.run("history", "--diff", "-0s", str(then))
    assert (backwards.code, "the first place is later than the second" in backwards.errors) == (2, True)
    beyond = await shell.run("state", "--at", "1000000")
    assert (beyond.code, "of the log has offsets 0 to" in beyond.errors) == (2, True)
