"""Sending commands and awaiting their outcomes; decides nothing and never writes the event log."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from drover.client.answers import Answer, Answers, OutcomeMissingError, Ownership, Sent, ownership_of
from drover.client.history import warn_unused
from drover.client.live_view import signs_of_life
from drover.errors import ConfigurationError, CorruptLogError, DroverError
from drover.events.bounds import fault_of
from drover.events.codec import (
    CONTENT_TYPE_HEADER,
    MAX_COMMAND_BYTES,
    MSGPACK_CONTENT_TYPE,
    decode_record,
    encode_command,
)
from drover.events.commands import TYPES_BY_TOPIC, Command
from drover.events.topics import TopicNames, shard_of
from drover.fold.log import Folded, RecordVerdict, ShardFold
from drover.journal.access import could_not_connect, unreachable
from drover.journal.client_shutdown import stop_client
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader, LogRecord, count_partitions
from drover.journal.silent_brokers import go_round_silent_brokers, saying_who_is_silent
from drover.journal.snapshots import load_snapshots
from drover.time_limits import time_limit

REQUEST_TIMEOUT_MS = 10_000
# If a leader hangs, its broker session (9 s by default) must expire before another broker accepts the command.
WRITE_TIMEOUT_MS = 30_000
HEARING_S = 5.0
# Most commands are decided in less than a second; a user is told why a command takes longer.
NOTICE_S = 2.0
CLIENT_ID = "drover-client"


@dataclass(slots=True)
class _Watch:
    """The fold and the outcomes of a client that awaits outcomes; `fresh` is set with each new record."""

    answers: Answers
    cluster: str
    fold: ShardFold | None = None
    last_record_ms: int | None = None
    may_be_wrong: bool = False
    fresh: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, fold: ShardFold, *, may_be_wrong: bool = False) -> "_Watch":
        """Start from this fold; a fold from a snapshot may be wrong."""
        self.fold = fold
        self.may_be_wrong = may_be_wrong
        self.fresh.set()
        return self

    def take(self, record: LogRecord) -> None:
        """Fold a record and collect its outcomes."""
        assert self.fold is not None, "begin was called"
        self.last_record_ms = record.timestamp_ms
        self.fresh.set()
        try:
            folded = self.fold.fold(record.offset, record.payload)
        except CorruptLogError:
            if self.may_be_wrong:
                raise
            # The shard stands still until an acquire resumes it, which may be the next record.
            return
        if folded is not None:
            self.answers.see(folded, self.fold.shard)

    @property
    def ownership(self) -> Ownership | None:
        """The ownership of the shard; None until the fold has begun."""
        if self.fold is None:
            return None
        # If no record follows the snapshot, the last batch in the snapshot is the last of the log.
        return ownership_of(self.fold, self.last_record_ms or self.fold.at_ms or None, self.cluster)


class Client:
    """A connection that sends commands and awaits their outcomes; an async context manager.

    Outcomes can be awaited without entering the context. Raises `LogUnavailableError` if the log's Kafka does not
    answer, `ConfigurationError` for topics that are not set up correctly and for commands that no worker would accept,
    and `RuntimeError` for sending outside of the context, or entering it twice.
    """

    def __init__(self, connection: LogConnection) -> None:
        self.connection = connection
        self._producer: Any = None
        self._shards: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        """Connect."""
        if self._producer is not None:
            raise RuntimeError("this client is already connected: use it, or create another one")
        # Not idempotent on purpose: a producer id costs 0.1 s. A command that is written twice takes effect once,
        # because of its id, and commands keep their order, because each partition has one request at a time.
        producer = AIOKafkaProducer(
            **self.connection.client_options,
            client_id=CLIENT_ID,
            acks="all",
            max_request_size=2 * MAX_COMMAND_BYTES,
            request_timeout_ms=WRITE_TIMEOUT_MS,
        )
        go_round_silent_brokers(producer.client, REQUEST_TIMEOUT_MS)
        try:
            await producer.start()
        except (KafkaError, OSError) as error:
            await stop_client(producer.client, producer.stop())
            raise await could_not_connect(self.connection, error) from error
        except asyncio.CancelledError:
            await stop_client(producer.client, producer.stop())
            raise
        self._producer = producer
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect. Idempotent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop_client(producer.client, producer.stop())

    async def submit(self, command: Command) -> Sent:
        """Write a command to its topic, and return once it is durable; see `submit_all`."""
        (sent,) = await self.submit_all([command])
        return sent

    async def submit_all(self, commands: Sequence[Command]) -> tuple[Sent, ...]:
        """Write commands in this order, and return once all are durable; if one is invalid, write none of them.

        Safe to repeat with the same ids. Raises `LogUnavailableError` unless every command is known to be durable.
        """
        producer = self._producer
        if producer is None:
            raise RuntimeError("this client is not connected: send within `async with Client(...) as client`")
        # Check all of them before the first one is written.
        addressed = [(command, payload_of(command), *await self._address(producer, command)) for command in commands]
        writing: list[asyncio.Future[Any]] = []
        try:
            async with saying_who_is_silent(producer.client, *_places(addressed)):
                for command, payload, topic, shard in addressed:
                    writing.append(await _write(producer, topic, shard, command.cluster, payload))
                written = await asyncio.gather(*writing)
        except (KafkaError, OSError) as error:
            # The acknowledgements of the others no longer matter.
            for acknowledged in writing:
                acknowledged.cancel()
            fault = unreachable(self.connection, error)
            raise type(fault)(
                f"{fault}; some commands may have been written: sending them again with the same ids is harmless"
            ) from error
        return tuple(
            Sent(command, topic, shard, metadata.offset)
            for (command, _, topic, shard), metadata in zip(addressed, written, strict=True)
        )

    async def outcomes(
        self,
        sent: Sequence[Sent],
        timeout_s: float | None = None,
        on_waiting: Callable[[Ownership | None], None] | None = None,
    ) -> tuple[Answer, ...]:
        """Await the recorded outcomes of commands of one cluster, and return them in the order of the commands.

        The shard is folded, from a snapshot older than the commands or from its first record, so that only valid
        records count. After `NOTICE_S` seconds, `on_waiting` is called once with the ownership of the shard, or None if
        the log has not been read yet. Without `timeout_s` it waits for ever.

        Raises `OutcomeMissingError` after `timeout_s` seconds, and `ValueError` for commands of several shards.
        """
        shards_of = {record.shard for record in sent}
        if not shards_of:
            return ()
        if len(shards_of) > 1:
            raise ValueError(
                "these commands are for clusters in several shards: await each cluster's outcomes separately"
            )
        (shard,) = shards_of
        watch = _Watch(Answers(sent), sent[0].command.cluster)
        async with self._telling(watch, shard, on_waiting):
            return await self._outcomes(sent, shard, watch, timeout_s)

    async def _outcomes(
        self, sent: Sequence[Sent], shard: int, watch: "_Watch", timeout_s: float | None
    ) -> tuple[Answer, ...]:
        try:
            async with time_limit(timeout_s), LogReader(self.connection) as reader:
                shards = await self._agreed_shards(reader, sent)
                folds = await load_snapshots(reader, self.connection.topics, (shard,), warn_unused)
                if shard in folds and self._is_older(folds[shard], sent):
                    try:
                        return await self._follow(reader, watch.begin(folds[shard], may_be_wrong=True))
                    except CorruptLogError as error:
                        # Snapshot and log disagree, or the log is damaged: a fold from the first record shows which.
                        warn_unused(shard, str(error))
                        watch.answers = Answers(sent)
                return await self._follow(reader, watch.begin(ShardFold(shard, shards)))
        except TimeoutError as error:
            if watch.fold is not None and watch.fold.damage is not None:
                raise CorruptLogError(
                    f"{watch.fold.damage.detail}; the command remains valid and will be decided once the shard is "
                    "resumed, see docs/recovery.md"
                ) from error
            answers = watch.answers
            ownership = await self._heard(watch.ownership)
            raise OutcomeMissingError(answers.missing(), answers.found(), ownership) from error

    async def _heard(self, ownership: Ownership | None) -> Ownership | None:
        """Add the owner's last sign of life, if the log's Kafka answers."""
        if ownership is None:
            return None
        try:
            async with time_limit(HEARING_S):
                signs = await signs_of_life(self.connection)
        except (TimeoutError, DroverError):
            return ownership
        heard = signs.workers.get(ownership.shard)
        is_owner = heard is not None and heard.epoch == ownership.epoch
        return replace(ownership, heard_ms=heard.at_ms if heard and is_owner else None, running=signs.running)

    @asynccontextmanager
    async def _telling(
        self, watch: "_Watch", shard: int, on_waiting: Callable[[Ownership | None], None] | None
    ) -> AsyncIterator[None]:
        """Call `on_waiting` once if the block takes longer than `NOTICE_S` seconds."""
        if on_waiting is None:
            yield
            return

        async def tell() -> None:
            await asyncio.sleep(NOTICE_S)
            is_read = await self._is_read(watch, shard)
            on_waiting(await self._heard(watch.ownership) if is_read else None)

        telling = asyncio.create_task(tell())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _is_read(self, watch: "_Watch", shard: int) -> bool:
        """Whether the shard's log is read to its current end within another `NOTICE_S` seconds.

        The owner in a part of the log may be a former one.
        """
        try:
            async with time_limit(NOTICE_S), LogReader(self.connection) as reader:
                end = (await reader.end_offsets(self.connection.topics.events, (shard,)))[shard]
                while watch.fold is None or watch.fold.position < end:
                    watch.fresh.clear()
                    await watch.fresh.wait()
        except (TimeoutError, DroverError):
            return False
        return True

    def _is_older(self, fold: ShardFold, sent: Sequence[Sent]) -> bool:
        cursors = dict(zip(self.connection.topics.commands, fold.cursors, strict=False))
        return not any(record.topic in cursors and record.offset < cursors[record.topic].next_offset for record in sent)

    async def _follow(self, reader: LogReader, watch: "_Watch") -> tuple[Answer, ...]:
        fold, answers = watch.fold, watch.answers
        assert fold is not None, "begin was called"
        topic, begin = self.connection.topics.events, fold.position
        async with aclosing(reader.follow(topic, {fold.shard: begin})) as following:
            async for records in following:
                for record in records:
                    watch.take(record)
                if answers.complete:
                    break
        for offset in answers.repeated_from(before=begin):
            # The outcome that a duplicate repeats may be older than the snapshot. It is valid, because the valid batch
            # with the duplicate refers to it.
            async with aclosing(reader.read(topic, {fold.shard: offset})) as reading:
                (first, *_) = await anext(reading)
            answers.see(Folded(first.offset, RecordVerdict.VALID, decode_record(first.payload)), fold.shard)
        return answers.found()

    async def _agreed_shards(self, reader: LogReader, sent: Sequence[Sent]) -> int:
        shards = await reader.partitions(self.connection.topics.events)
        for topic in {record.topic for record in sent}:
            if self._shards.get(topic, shards) != shards:
                raise ConfigurationError(
                    f"{topic} has {self._shards[topic]} partitions and {self.connection.topics.events} has {shards}: "
                    "all topics need the same number; see `drover log check`"
                )
        return shards

    async def _address(self, producer: Any, command: Command) -> tuple[str, int]:
        topic = topic_of(command, self.connection.topics)
        return topic, shard_of(command.cluster, await self._partitions(producer, topic))

    async def _partitions(self, producer: Any, topic: str) -> int:
        if topic not in self._shards:
            try:
                metadata = await producer.client.fetch_all_metadata()
            except (KafkaError, OSError) as error:
                raise unreachable(self.connection, error) from error
            self._shards[topic] = count_partitions(metadata, topic, self.connection)
        return self._shards[topic]


async def _write(producer: Any, topic: str, shard: int, cluster: str, payload: bytes) -> asyncio.Future[Any]:
    acknowledged: asyncio.Future[Any] = await producer.send(
        topic,
        payload,
        key=cluster.encode(),
        partition=shard,
        headers=[(CONTENT_TYPE_HEADER, MSGPACK_CONTENT_TYPE.encode())],
    )
    return acknowledged


def _places(addressed: Sequence[tuple[Command, bytes, str, int]]) -> tuple[str, tuple[int, ...]]:
    """Return the topic of the first command and its partitions, for the error if the write fails."""
    topics = [topic for _, _, topic, _ in addressed]
    return topics[0] if topics else "", tuple({shard for _, _, topic, shard in addressed if topic == topics[0]})


def payload_of(command: Command) -> bytes:
    """Encode a command; `ConfigurationError` for one that no worker would read."""
    fault = fault_of(command)
    if fault is not None:
        raise ConfigurationError(f"no worker would accept the command {command.id}: {fault}")
    payload = encode_command(command)
    if len(payload) > MAX_COMMAND_BYTES:
        raise ConfigurationError(
            f"the command {command.id} has {len(payload)} bytes, but only {MAX_COMMAND_BYTES} are allowed: split it"
        )
    return payload


def topic_of(command: Command, topics: TopicNames) -> str:
    """Return the topic for commands of this type."""
    for topic, types in zip(topics.commands, TYPES_BY_TOPIC, strict=True):
        if isinstance(command, types):
            return topic
    raise AssertionError(f"{type(command).__name__} is not a command")
