"""Sending commands and awaiting their outcomes; decides nothing and never writes the event log."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from drover.client.answers import Answer, Answers, OutcomeMissingError, Sent, ownership_of
from drover.errors import ConfigurationError
from drover.journal.access import could_not_connect, unreachable
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader, count_partitions
from drover.shard.fold import ShardFold
from events.codec import CONTENT_TYPE_HEADER, MAX_COMMAND_BYTES, MSGPACK_CONTENT_TYPE, encode_command
from events.commands import TYPES_BY_TOPIC, Command
from events.topics import TopicNames, shard_of

REQUEST_TIMEOUT_MS = 10_000
CLIENT_ID = "drover-client"


class Client:
    """A connection that sends commands; an async context manager, usable by any program.

    Raises `LogUnavailableError` when the log's Kafka does not answer, `ConfigurationError` for topics that are not as
    they must be, and for a command that nobody would read.
    """

    def __init__(self, connection: LogConnection) -> None:
        self.connection = connection
        self._producer: Any = None
        self._shards: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        """Connect."""
        # Without idempotence on purpose: asking for a producer id takes 0.1 s, and a command that is written twice
        # has no effect the second time (its id is known), nor can two change places (one request per partition).
        self._producer = AIOKafkaProducer(
            **self.connection.client_options,
            client_id=CLIENT_ID,
            acks="all",
            max_request_size=2 * MAX_COMMAND_BYTES,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        try:
            await self._producer.start()
        except (KafkaError, OSError) as error:
            await self._producer.stop()
            raise await could_not_connect(self.connection, error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await self._producer.stop()

    async def submit(self, command: Command) -> Sent:
        """Write a command to its topic and return once it is durable there; see `submit_all`."""
        (sent,) = await self.submit_all([command])
        return sent

    async def submit_all(self, commands: Sequence[Command]) -> tuple[Sent, ...]:
        """Write commands in this order and return once all are durable.

        Safe to repeat with the same ids. Raises `LogUnavailableError` when that is not known of every one of them.
        """
        writing = [await self._write(command) for command in commands]
        try:
            written = await asyncio.gather(*(acknowledged for acknowledged, _, _ in writing))
        except (KafkaError, OSError) as error:
            fault = unreachable(self.connection, error)
            raise type(fault)(
                f"{fault}; some of it may have been written: sending it again under the same id is harmless"
            ) from error
        return tuple(
            Sent(command, topic, shard, metadata.offset)
            for command, (_, topic, shard), metadata in zip(commands, writing, written, strict=True)
        )

    async def outcomes(self, sent: Sequence[Sent], timeout_s: float | None = None) -> tuple[Answer, ...]:
        """Await what was recorded about commands of one cluster, in their order.

        The shard is folded from its first record, so that only what counts is believed. Raises `OutcomeMissingError`
        after `timeout_s` seconds; without it waits for ever.
        """
        (shard,) = {one.shard for one in sent}
        topic = self.connection.topics.events
        answers = Answers(sent)
        last_record_ms: int | None = None
        fold: ShardFold | None = None
        try:
            async with asyncio.timeout(timeout_s), LogReader(self.connection) as reader:
                fold = ShardFold(shard, await self._agreed_shards(reader, sent))
                async for records in reader.follow(topic, {shard: 0}):
                    for record in records:
                        last_record_ms = record.timestamp_ms
                        folded = fold.fold(record.offset, record.payload)
                        if folded is not None:
                            answers.see(folded, shard)
                    if answers.complete:
                        break
        except TimeoutError as error:
            ownership = None if fold is None else ownership_of(fold, last_record_ms)
            raise OutcomeMissingError(answers.missing(), answers.found(), ownership) from error
        return answers.found()

    async def _agreed_shards(self, reader: LogReader, sent: Sequence[Sent]) -> int:
        shards = await reader.partitions(self.connection.topics.events)
        for topic in {one.topic for one in sent}:
            if self._shards.get(topic, shards) != shards:
                raise ConfigurationError(
                    f"{topic} has {self._shards[topic]} partitions and {self.connection.topics.events} has {shards}: "
                    "all topics need the same number; see `drover topics check`"
                )
        return shards

    async def _write(self, command: Command) -> tuple[asyncio.Future[Any], str, int]:
        topic = topic_of(command, self.connection.topics)
        payload = encode_command(command)
        if len(payload) > MAX_COMMAND_BYTES:
            raise ConfigurationError(
                f"the command {command.id} has {len(payload)} bytes, at most {MAX_COMMAND_BYTES} are read: split it"
            )
        shard = shard_of(command.cluster, await self._partitions(topic))
        try:
            acknowledged = await self._producer.send(
                topic,
                payload,
                key=command.cluster.encode(),
                partition=shard,
                headers=[(CONTENT_TYPE_HEADER, MSGPACK_CONTENT_TYPE.encode())],
            )
        except (KafkaError, OSError) as error:
            raise unreachable(self.connection, error) from error
        return acknowledged, topic, shard

    async def _partitions(self, topic: str) -> int:
        if topic not in self._shards:
            try:
                metadata = await self._producer.client.fetch_all_metadata()
            except (KafkaError, OSError) as error:
                raise unreachable(self.connection, error) from error
            self._shards[topic] = count_partitions(metadata, topic, self.connection)
        return self._shards[topic]


def topic_of(command: Command, topics: TopicNames) -> str:
    """Name the topic on which a command of this type is read."""
    for topic, types in zip(topics.commands, TYPES_BY_TOPIC, strict=True):
        if isinstance(command, types):
            return topic
    raise AssertionError(f"{type(command).__name__} is no command")
