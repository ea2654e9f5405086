"""The worst that clients can send, beside a throttled plan: the plan ends as it should, and the worker stays up."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from drover.cluster.sockets import DIRECT
from drover.events.codec import encode_command
from drover.events.commands import BrokerFailed, Freeze, Unfreeze
from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.jars import class_path, ensure, find_java
from drover.local import LocalCluster
from drover.settings.settings import WorkerSettings
from drover.state.plans import PlanStatus
from tests.integration.story import read_all
from tests.integration.support import MANAGED, Installation, installation, wait_for
from tests.journal.batches import send_spoilt

pytestmark = [pytest.mark.cluster, pytest.mark.story]

ALTER, CANCEL, _, BROKER_FAILED = range(4)
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
MEGABYTE = 1024 * 1024
KEYS = [TopicPartition("besieged", number) for number in range(6)]
CODECS = ("gzip", "snappy", "lz4", "zstd")
WHO: Mapping[str, Any] = {"cluster": MANAGED, "by": "mallory", "reason": "why not"}
FLOOD = 3000
# Twenty-five times what an inbox holds: nearly all of it is unread when the freeze comes.
UNREAD = 100_000
SESSION_TIMEOUT_MS = WorkerSettings().session_timeout_ms


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def drover(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """A Drover whose worker does not run yet; its session is as long as users have it, since nobody is killed."""
    directory = tmp_path_factory.mktemp("hostile")
    async with installation(local_cluster, directory, "hostile", session_timeout_ms=SESSION_TIMEOUT_MS) as made:
        yield made


async def serve(made: Installation) -> None:
    """Start the only worker, unless a test before this one has."""
    if "only" not in made.processes:
        await made.start_worker("only")
        await made.wait_until_owned("only")


@pytest_asyncio.fixture
async def served(drover: Installation) -> Installation:
    await serve(drover)
    return drover


def set_compression(made: Installation, codec: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=made.cluster.bootstrap, proxy_url=DIRECT)
    resource = ConfigResource(ConfigResourceType.TOPIC, made.names.commands[CANCEL], {"compression.type": codec})
    admin.alter_configs([resource])
    admin.close()


async def send(made: Installation, topic: str, payloads: list[bytes], codec: str | None = None) -> None:
    options = {**made.connection.client_options, "max_request_size": 40 * MEGABYTE}
    producer = AIOKafkaProducer(**options, compression_type=codec, acks="all")
    await producer.start()
    try:
        sent = [await producer.send(topic, payload, partition=SHARD) for payload in payloads]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


def as_json(**fields: Any) -> bytes:
    return json.dumps({**WHO, **fields}).encode()


def names_of_nothing(count: int) -> list[dict[str, Any]]:
    return [{"topic": "t" * 200, "partition": number, "replicas": [1]} for number in range(count)]


def the_worst() -> Iterator[tuple[str, int, list[bytes]]]:
    """Yield what is sent, by what it once did, and into which command topic; the log is index -1."""
    yield "a dead letter that no topic takes", CANCEL, [b"{" + b"x" * (2 * MEGABYTE - 200)]
    yield (
        "a reason of a megabyte for every partition",
        CANCEL,
        [as_json(type="cancel", id="long", mode="rollback", all=True, reason="r" * 900_000)],
    )
    yield (
        "one command that decides more than a record holds",
        ALTER,
        [as_json(type="alter", id="large", partitions=names_of_nothing(4000))],
    )
    yield (
        "ids and types that are new each time",
        CANCEL,
        [
            as_json(type=f"kind-{n}", id=f"new-{n}") if n % 2 else encode_command(Unfreeze(id=f"flood-{n}", **WHO))
            for n in range(FLOOD)
        ],
    )
    yield (
        "brokers that there are not",
        BROKER_FAILED,
        [encode_command(BrokerFailed(id=f"gone-{n}", broker=1000 + n, at_ms=2**52, **WHO)) for n in range(1100)],
    )
    yield "a byte string in the log itself", -1, [b"\x00\x01random", b"\xc1", b""]


async def test_old_compressed_batches_are_read_once_the_topic_is_put_right(drover: Installation) -> None:
    """A topic of an older version may hold batches of every codec: docs/recovery.md says what to do."""
    set_compression(drover, "producer")
    for codec in CODECS:
        freeze = [encode_command(Freeze(id=f"{codec}-{n}", **{**WHO, "by": codec})) for n in range(3)]
        thaw = [encode_command(Unfreeze(id=f"{codec}-thaw", **{**WHO, "by": codec}))]
        await send(drover, drover.names.commands[CANCEL], [*freeze, *thaw], codec)
    checked = await drover.drover("log", "check")
    assert checked.code != 0
    assert "compression.type=uncompressed" in checked.output + checked.errors
    refused = await drover.drover("worker", "--name", "early", "--listen", "127.0.0.1:0")
    assert refused.code == 2
    assert "compression.type" in refused.errors
    set_compression(drover, "uncompressed")

    async def put_right() -> bool:
        return (await drover.drover("log", "check")).code == 0

    await wait_for(put_right, "the topic's setting to be seen")
    await serve(drover)

    async def all_decided() -> bool:
        known = (await drover.log()).folds[SHARD].decided_commands
        return all(known.get((MANAGED, f"{codec}-thaw")) for codec in CODECS)

    await wait_for(all_decided, "the commands of every codec to be decided")
    assert (await drover.state()).freezes == ()


async def test_the_worst_inputs_beside_a_throttled_plan_change_nothing_of_it(served: Installation) -> None:
    drover = served
    await drover.create_topic("besieged", {key.partition: [1, 2, 3] for key in KEYS}, kilobytes=1024)
    targets = {key: [4, 2, 3] for key in KEYS}
    # Six copies of a megabyte at 300 kB/s: about twenty seconds.
    assert (await drover.alter("besieged", targets, "--throttle", "300kB")).code == 0
    for what, topic_index, payloads in the_worst():
        topic = drover.names.events if topic_index < 0 else drover.names.commands[topic_index]
        await send(drover, topic, payloads)
        assert drover.processes["only"].returncode is None, what
    bomb = as_json(type="freeze", id="bomb", reason="r" * 30 * MEGABYTE)
    with pytest.raises(MessageSizeTooLargeError):
        # Some 30 kB on their way, 30 MB for whoever reads it: the broker undoes the compression, and refuses.
        await send(drover, drover.names.commands[CANCEL], [bomb], "gzip")
    # The command gives up after its own time limit: the emergency stop is not behind the flood.
    frozen = await drover.drover("freeze", "--reason", "something is wrong")
    assert frozen.code == 0, frozen.errors
    assert (await drover.drover("unfreeze", "--reason", "it is not")).code == 0
    await drover.wait_until_settled()
    assert [await drover.replicas(key) for key in KEYS] == [(4, 2, 3)] * len(KEYS)
    plan = await drover.plan("besieged")
    assert (plan.status, plan.completed, plan.failed) == (PlanStatus.FINISHED, len(KEYS), 0)
    await _all_answered(drover)
    # The first worker is still the only one, and has never taken a shard a second time.
    assert drover.processes["only"].returncode is None
    epochs = {fold.epoch for fold in (await drover.log()).folds.values()}
    assert epochs == {1}, drover.processes["only"].log_text()
    assert (await drover.state()).failed_brokers == {}


async def transactions(made: Installation, *arguments: str) -> str:
    """Run Kafka's own tool about the partition of our shard in the topic of cancels."""
    process = await asyncio.create_subprocess_exec(
        *(str(find_java()), "-Xmx128m", "-XX:TieredStopAtLevel=1", "org.apache.kafka.tools.TransactionsCommand"),
        *("--bootstrap-server", made.cluster.bootstrap, arguments[0]),
        *("--topic", made.names.commands[CANCEL], "--partition", str(SHARD), *arguments[1:]),
        env={**os.environ, "CLASSPATH": class_path(ensure("kafka"))},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_a_transaction_that_is_left_open_is_ended_by_the_documented_steps(served: Installation) -> None:
    """Kafka delivers nothing behind it: docs/recovery.md says how to end it."""
    drover = served
    # Kafka ends it by itself after this time: it must still be open when the tool looks.
    patience = {"transactional_id": "left-open", "transaction_timeout_ms": 600_000}
    writer = AIOKafkaProducer(**drover.connection.client_options, **patience)
    await writer.start()
    try:
        await writer.begin_transaction()
        topic = drover.names.commands[CANCEL]
        opened = await writer.send_and_wait(topic, encode_command(Freeze(id="open", **WHO)), partition=SHARD)
        await send(drover, topic, [encode_command(Freeze(id="behind", **WHO))])
        offsets: list[str] = []

        async def is_shown() -> bool:
            described = await transactions(drover, "describe-producers")
            offsets[:] = [
                line.split()[-1] for line in described.splitlines() if line.split()[-1:] == [str(opened.offset)]
            ]
            return bool(offsets)

        await wait_for(is_shown, "Kafka's tool to show the open transaction", pause_s=0.5)
        known = (await drover.log()).folds[SHARD].decided_commands
        assert known.get((MANAGED, "behind")) is None
        await transactions(drover, "abort", "--start-offset", *offsets)

        async def is_decided() -> bool:
            return (await drover.log()).folds[SHARD].decided_commands.get((MANAGED, "behind")) is not None

        await wait_for(is_decided, "what was behind it to be decided")
        assert (await drover.log()).folds[SHARD].decided_commands.get((MANAGED, "open")) is None, "it was aborted"
    finally:
        await writer.stop()
    assert (await drover.drover("unfreeze", "--all", "--reason", "a test")).code == 0


async def test_a_header_whose_name_is_no_utf_8_stops_no_worker_and_no_reader(served: Installation) -> None:
    drover = served
    one_partition = {drover.names.dead_letters, drover.names.progress}
    for topic in sorted(drover.names.own):
        partition = 0 if topic in one_partition else SHARD
        await send_spoilt(drover.connection.client_options, topic, partition, b"nonsense")
    named = encode_command(Freeze(id="named", **{**WHO, "by": "named"}))
    await send_spoilt(drover.connection.client_options, drover.names.commands[CANCEL], SHARD, named)

    async def is_decided() -> bool:
        return (await drover.log()).folds[SHARD].decided_commands.get((MANAGED, "named")) is not None

    await wait_for(is_decided, "the command with that header to be decided")
    for command in (("status",), ("dead-letters", "list")):
        assert (await drover.drover(*command)).code == 0
    assert (await drover.drover("unfreeze", "--all", "--reason", "a test")).code == 0
    assert drover.processes["only"].returncode is None


async def test_a_freeze_behind_100_000_commands_of_its_topic_acts_in_its_turn(
    served: Installation, record_property: Callable[[str, object], None]
) -> None:
    drover = served
    flood = [encode_command(Unfreeze(id=f"again-{number}", **WHO)) for number in range(UNREAD)]
    await send(drover, drover.names.commands[CANCEL], flood)
    began = time.monotonic()
    frozen = await drover.drover("freeze", "--reason", "something is wrong", "--id", "behind-all", "--timeout", "240")
    record_property("seconds", round(time.monotonic() - began, 2))
    assert frozen.code == 0, frozen.errors
    assert (await drover.state()).freezes
    assert drover.processes["only"].returncode is None


async def _all_answered(drover: Installation) -> None:
    """Every command has an outcome, and what is none is a dead letter."""

    async def passed() -> bool:
        log = await drover.log()
        fold = log.folds[SHARD]
        sent = [len((await read_all(drover.connection, topic))[SHARD]) for topic in drover.names.commands]
        return [cursor.next_offset for cursor in fold.cursors] == sent

    await wait_for(passed, "every command to be decided", pause_s=1)
