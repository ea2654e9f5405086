"""Records that are not commands, or are in the wrong place: each has its own end, and the next command is handled."""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from drover.agents.dead_letters import MAX_PAYLOAD_BYTES
from drover.events.codec import encode_command
from drover.events.topics import shard_of
from drover.local import LocalCluster
from drover.shard.messages import FORWARDED_HEADER
from tests.kill.harness import SHARDS, drill, wait_for
from tests.kill.verifier import verify

pytestmark = [pytest.mark.cluster, pytest.mark.story]


async def test_commands_in_the_wrong_partition_are_forwarded_once_and_then_buried(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    async with drill(local_cluster.bootstrap, "leftovers", tmp_path) as field:
        cluster = field.workers.clusters[0]
        home = shard_of(cluster, SHARDS)
        wrong = (home + 1) % SHARDS
        topic = field.names.commands[1]
        misplaced = field.feeder.freeze("misplaced", cluster)
        await field.feeder.send(misplaced, partition=wrong)
        # Forwarded before, and still in the wrong place: nobody may play ping-pong with it.
        lost = encode_command(field.feeder.freeze("lost", cluster))
        await field.producer.send_and_wait(topic, lost, partition=wrong, headers=[(FORWARDED_HEADER, b"9:9")])
        await field.feeder.send(field.feeder.freeze("behind", cluster))
        field.workers.start("a")
        await field.until_decided(2)
        await field.until_passed(topic, wrong, 2)
        verdicts = await verify(field)
        assert verdicts.faults == []
        decided = {outcome["id"]: place for place, outcome in verdicts.decided.items()}
        assert set(decided) == {"misplaced", "behind"}
        assert decided["misplaced"][:2] == (topic, home)
        letters = (await field.read(field.names.dead_letters))[field.names.dead_letters, 0]
        assert [letter.value for letter in letters] == [lost]
        assert dict(letters[0].headers)["__connect.errors.partition"] == str(wrong).encode()


async def test_malformed_records_between_good_ones_are_buried_logged_and_passed(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    async with drill(local_cluster.bootstrap, "poison", tmp_path) as field:
        cluster = field.workers.clusters[0]
        home = shard_of(cluster, SHARDS)
        topic = field.names.commands[1]
        huge = b"{" + b"x" * 1_500_000
        readable = b'{"type": "freeze", "id": "typo", "cluster": "%s", "by": "x", "resaon": "y"}' % cluster.encode()
        for number, poison in enumerate((b"\xc1", huge, b"", readable, b"\x81" * 5000)):
            await field.feeder.send_raw(topic, poison, home)
            await field.feeder.send(field.feeder.freeze(f"good-{number}", cluster))
        field.workers.start("a")
        await field.until_decided(6)
        verdicts = await verify(field)
        assert verdicts.faults == []
        outcomes = {outcome["id"]: outcome for outcome in verdicts.decided.values()}
        assert set(outcomes) == {"typo", *(f"good-{number}" for number in range(5))}
        assert outcomes["typo"]["verdict"] == "refused"
        assert outcomes["typo"]["refusals"][0]["code"] == "malformed"
        letters = (await field.read(field.names.dead_letters))[field.names.dead_letters, 0]
        assert [len(letter.value) for letter in letters] == [1, MAX_PAYLOAD_BYTES, 0, len(readable), 5000]
        assert field.workers.said("a", "is not a command and went to the dead letters") == 5


async def test_aborted_commands_are_never_decided_and_transaction_markers_are_passed(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    async with drill(local_cluster.bootstrap, "transactions", tmp_path) as field:
        cluster = field.workers.clusters[0]
        home = shard_of(cluster, SHARDS)
        topic = field.names.commands[1]
        field.workers.start("a")
        await wait_for(lambda: field.workers.said("a", "shards are owned"), "the worker to serve")
        writer = AIOKafkaProducer(
            bootstrap_servers=local_cluster.bootstrap, transactional_id=f"{field.names.prefix}-writer"
        )
        await writer.start()
        try:
            for name in ("kept", "dropped", "kept-too"):
                await writer.begin_transaction()
                await writer.send_and_wait(topic, encode_command(field.feeder.freeze(name, cluster)), partition=home)
                await (writer.abort_transaction() if name == "dropped" else writer.commit_transaction())
            await field.feeder.send(field.feeder.freeze("plain", cluster))
        finally:
            await writer.stop()
        await field.until_decided(3)
        verdicts = await verify(field)
        assert verdicts.faults == []
        assert {outcome["id"] for outcome in verdicts.decided.values()} == {"kept", "kept-too", "plain"}
