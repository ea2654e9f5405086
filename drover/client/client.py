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
from drover.client.watching import signs_of_life
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
from drover.journal.closing import stop_client
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader, LogRecord, count_partitions
from drover.journal.silent_brokers import go_round_silent_brokers, saying_who_is_silent
from drover.journal.snapshots import load_snapshots
from drover.time_limits import time_limit

REQUEST_TIMEOUT_MS = 10_000
# A leader that hangs costs its broker session (9 s by default) before another one takes a command.
WRITE_TIMEOUT_MS = 30_000
HEARING_S = 5.0
# Commands are mostly decided in less than a second.
NOTICE_S = 2.0
CLIENT_ID = "drover-client"


@dataclass(slots=True)
class _Watch:
    """The knowledge of a client that awaits outcomes; `fresh` is set whenever it grows."""

    answers: Answers
    cluster: str
    fold: ShardFold | None = None
    last_record_ms: int | None = None
    may_be_wrong: bool = False
    fresh: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, fold: ShardFold, *, may_be_wrong: bool = False) -> "_Watch":
        """Go on from this fold; one from a snapshot may be wrong."""
        self.fold = fold
        self.may_be_wrong = may_be_wrong
        self.fresh.set()
        return self

    def take(self, record: LogRecord) -> None:
        """Fold one record and look at what it says."""
        assert self.fold is not None, "it was begun"
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
        """The ownership of the shard; None while it is not known."""
        if self.fold is None:
            return None
        # Where nothing came after the snapshot, its last batch was the last.
        return ownership_of(self.fold, self.last_record_ms or self.fold.at_ms or None, self.cluster)


class Client:
    """A connection that sends commands; an async context manager, usable by any program.

    Raises `LogUnavailableError` when the log's Kafka does not answer, `ConfigurationError` for topics that are not as
    they must be, and for a command that nobody would read. Outcomes can be awaited without the context, sending cannot:
    outside of it, and inside of it twice, is a `RuntimeError`.
    """

    def __init__(self, connection: LogConnection) -> None:
        self.connection = connection
        self._producer: Any = None
        self._shards: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        """Connect."""
        if self._producer is not None:
            raise RuntimeError("this client is connected already: make another one, or use it as it is")
        # Without idempotence on purpose: asking for a producer id takes 0.1 s, and a command that is written twice
        # has no effect the second time (its id is known), nor can two change places (one request per partition).
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
        """Write a command to its topic and return once it is durable there; see `submit_all`."""
        (sent,) = await self.submit_all([command])
        return sent

    async def submit_all(self, commands: Sequence[Command]) -> tuple[Sent, ...]:
        """Write commands in this order and return once all are durable; one that nobody would read: none is written.

        Safe to repeat with the same ids. Raises `LogUnavailableError` when that is not known of every one of them.
        """
        producer = self._producer
        if producer is None:
            raise RuntimeError("this client is not connected: send within `async with Client(...) as client`")
        # First whatever can be wrong with any of them.
        addressed = [(command, payload_of(command), *await self._address(producer, command)) for command in commands]
        writing: list[asyncio.Future[Any]] = []
        try:
            async with saying_who_is_silent(producer.client, *_places(addressed)):
                for command, payload, topic, shard in addressed:
                    writing.append(await _write(producer, topic, shard, command.cluster, payload))
                written = await asyncio.gather(*writing)
        except (KafkaError, OSError) as error:
            # Nobody waits for the acknowledgements of the others any more.
            for acknowledged in writing:
                acknowledged.cancel()
            fault = unreachable(self.connection, error)
            raise type(fault)(
                f"{fault}; some of it may have been written: sending it again under the same id is harmless"
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
        """Await what was recorded about commands of one cluster, in their order.

        The shard is folded, from a snapshot that is older than the commands or from its first record, so that only
        valid records matter. Raises `OutcomeMissingError` after `timeout_s` seconds; without it waits for ever.
        Raises `ValueError` for commands of clusters that live in several shards. `on_waiting` is called once if that
        takes longer than `NOTICE_S` seconds, with the ownership of the shard, or None if the log is not read yet.
        """
        shards_of = {one.shard for one in sent}
        if not shards_of:
            return ()
        if len(shards_of) > 1:
            raise ValueError("these commands are of several clusters: await the outcomes of each cluster by itself")
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
                        # Snapshot and log disagree, or the log is damaged: its first record on will tell which.
                        warn_unused(shard, str(error))
                        watch.answers = Answers(sent)
                return await self._follow(reader, watch.begin(ShardFold(shard, shards)))
        except TimeoutError as error:
            if watch.fold is not None and watch.fold.damage is not None:
                raise CorruptLogError(
                    f"{watch.fold.damage.what}; the command remains valid and will be decided once the shard is "
                    "resumed, see docs/recovery.md"
                ) from error
            answers = watch.answers
            ownership = await self._heard(watch.ownership)
            raise OutcomeMissingError(answers.missing(), answers.found(), ownership) from error

    async def _heard(self, ownership: Ownership | None) -> Ownership | None:
        """Add the owner's last sign of life, if the log's Kafka answers at all."""
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
        """Call `on_waiting` once when the block has taken `NOTICE_S` seconds."""
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
        """Whether the shard's log has been read to its present end, or is within `NOTICE_S` seconds.

        What a part of it says of the owner was true once.
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
        return not any(one.topic in cursors and one.offset < cursors[one.topic].next_offset for one in sent)

    async def _follow(self, reader: LogReader, watch: "_Watch") -> tuple[Answer, ...]:
        fold, answers = watch.fold, watch.answers
        assert fold is not None, "it was begun"
        topic, begin = self.connection.topics.events, fold.position
        async with aclosing(reader.follow(topic, {fold.shard: begin})) as following:
            async for records in following:
                for record in records:
                    watch.take(record)
                if answers.complete:
                    break
        for offset in answers.repeated_from(before=begin):
            # The outcome that a duplicate repeats may be older than the snapshot; a valid batch vouches for it.
            async with aclosing(reader.read(topic, {fold.shard: offset})) as reading:
                (first, *_) = await anext(reading)
            answers.see(Folded(first.offset, RecordVerdict.VALID, decode_record(first.payload)), fold.shard)
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
    """Return the topic and the partitions to name while the first command, and those of its topic, are written."""
    topics = [topic for _, _, topic, _ in addressed]
    return topics[0] if topics else "", tuple({shard for _, _, topic, shard in addressed if topic == topics[0]})


def payload_of(command: Command) -> bytes:
    """Encode a command; `ConfigurationError` for one that no worker would read."""
    fault = fault_of(command)
    if fault is not None:
        raise ConfigurationError(f"nobody would read the command {command.id}: {fault}")
    payload = encode_command(command)
    if len(payload) > MAX_COMMAND_BYTES:
        raise ConfigurationError(
            f"the command {command.id} has {len(payload)} bytes, but only {MAX_COMMAND_BYTES} are allowed: split it"
        )
    return payload


def topic_of(command: Command, topics: TopicNames) -> str:
    """Name the topic on which a command of this type is read."""
    for topic, types in zip(topics.commands, TYPES_BY_TOPIC, strict=True):
        if isinstance(command, types):
            return topic
    raise AssertionError(f"{type(command).__name__} is not a command")
