"""Send commands, await their outcomes and the end of what they began, and read the log.

It decides nothing and never writes the event log.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from drover.client.answers import Answer, Answers, OutcomeMissingError, Ownership, Sent, ownership_of
from drover.client.commands import check_types, payload_of, topic_of
from drover.client.ends import APPEARS_WITHIN_S, MoveEnds, NotEndedError, PlanEnd
from drover.client.history import (
    FoldedLog,
    ValidRecord,
    about,
    fold_to_end,
    follow_log,
    open_log,
    read_log,
    read_to_end,
    warn_unused,
)
from drover.client.live_view import signs_of_life
from drover.client.time_travel import Ended, Point, travel_in
from drover.client.undo import undo_in
from drover.errors import ConfigurationError, CorruptLogError, DroverError, UnknownPlanError
from drover.events.codec import CONTENT_TYPE_HEADER, MAX_COMMAND_BYTES, MSGPACK_CONTENT_TYPE, decode_record
from drover.events.commands import Alter, Command
from drover.events.topics import shard_of
from drover.fold.log import Folded, RecordVerdict, ShardFold
from drover.journal.access import could_not_connect, unreachable
from drover.journal.client_shutdown import stop_client
from drover.journal.connection import LogConnection
from drover.journal.port import Following
from drover.journal.reader import LogReader, LogRecord, count_partitions
from drover.journal.silent_brokers import go_round_silent_brokers, saying_who_is_silent
from drover.journal.snapshots import load_snapshots
from drover.settings.clusters import cluster_of
from drover.settings.sources import load_settings
from drover.state.cluster import ClusterState
from drover.state.plans import Plan
from drover.time_limits import time_limit

REQUEST_TIMEOUT_MS = 10_000
# If a leader hangs, its broker session (9 s by default) must expire before another broker accepts the command.
WRITE_TIMEOUT_MS = 30_000
HEARING_S = 5.0
# Most commands are decided in less than a second; a user is told why a command takes longer.
NOTICE_S = 2.0
# How often a plan that has not appeared in the log yet is looked for.
LOOK_S = 0.5
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
    """A connection that sends commands and reads the log; an async context manager.

    `cluster` is the one that the log is read of where a method is given no other. Only sending needs the context.

    Raises `LogUnavailableError` if the log's Kafka does not answer, `ConfigurationError` for topics that are not set up
    correctly and for commands that no worker would accept, `TypeError` for what is no command, `RuntimeError` for
    sending outside of the context, or entering it twice, and `CorruptLogError` for a log that is damaged.
    """

    # How long a plan that is waited for may be missing in the log, since one of its brokers may lag.
    appears_within_s = APPEARS_WITHIN_S

    def __init__(self, connection: LogConnection, cluster: str | None = None) -> None:
        self.connection = connection
        self._cluster = cluster
        self._producer: Any = None
        self._shards: dict[str, int] = {}

    @classmethod
    def from_settings(cls, config: str | os.PathLike[str] | None = None, *, cluster: str | None = None) -> "Client":
        """Return a client with the settings that the command line would use, not connected yet.

        `config` is the settings file, in place of the one that the command line finds. `cluster` chooses among several.
        Raises `ConfigurationError` for settings that are wrong.
        """
        settings = load_settings(
            None if config is None else Path(config), {} if cluster is None else {"cluster": cluster}
        )
        is_clear = settings.cluster is not None or len(settings.clusters) == 1
        name = cluster_of(settings, 'cluster="NAME"') if is_clear else None
        return Client(settings.log.connection(), name)

    @property
    def cluster(self) -> str:
        """The cluster of this client. Raises `ConfigurationError` if none was chosen among several."""
        if self._cluster is None:
            raise ConfigurationError('choose a cluster with cluster="NAME"')
        return self._cluster

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
        check_types(commands)
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

    async def send(self, command: Command, timeout_s: float | None = None) -> Answer:
        """Write a command and await its recorded outcome; safe to repeat with the same id. See `outcomes`."""
        (answer,) = await self.send_all([command], timeout_s)
        return answer

    async def send_all(self, commands: Sequence[Command], timeout_s: float | None = None) -> tuple[Answer, ...]:
        """Write commands of one cluster and await their recorded outcomes, in the order of the commands."""
        return await self.outcomes(await self.submit_all(commands), timeout_s)

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

    async def wait_for_plan(self, plan: str, *, cluster: str | None = None, timeout_s: float | None = None) -> Plan:
        """Wait until a plan has ended, and return it with the number of its moves by their end.

        A plan ends when no move is left and no further command for it was announced. Returns at once for a plan that
        has ended. Raises `UnknownPlanError` for a plan that the log's state does not have, and `NotEndedError` after
        `timeout_s` seconds.
        """
        name = cluster or self.cluster
        end, log = PlanEnd(plan, time.monotonic() + self.appears_within_s), FoldedLog({})
        try:
            async with self._reader(timeout_s) as reader:
                log = await fold_to_end(reader, self.connection, name)
                while not end.see([log.cluster(name)], time.monotonic()) and not end.last:
                    await asyncio.sleep(LOOK_S)
                    await read_to_end(reader, self.connection, log)
                async with aclosing(follow_log(reader, self.connection, log)) as following:
                    while not end.see([log.cluster(name)], time.monotonic()):
                        await anext(following)
        except TimeoutError as error:
            _refuse_damage(log)
            raise NotEndedError(
                f"plan {plan} has not ended within {timeout_s} s", next(iter(end.last), None)
            ) from error
        if not end.last:
            raise UnknownPlanError(
                f"there is no plan {plan} in {name}, or it ended long ago: `drover plans --since 30d` lists plans"
            )
        return end.last[0]

    async def wait_for_moves(self, answer: Answer, timeout_s: float | None = None) -> tuple[Ended, ...]:
        """Wait until each partition that a command has accepted has ended, and return how, in the outcome's order.

        After an alter, these are the moves of its plan; after a cancel, the moves that it has cancelled. A partition
        for which nothing was left to do is left out. Raises `NotEndedError` after `timeout_s` seconds.
        """
        ends, log = MoveEnds(answer), FoldedLog({})
        try:
            async with self._reader(timeout_s) as reader:
                log = await self._log_after(reader, answer.shard, answer.offset - 1)
                topic = self.connection.topics.events
                async with aclosing(reader.follow(topic, log.positions)) as following:
                    while not ends.is_over:
                        for record in await anext(following):
                            # One by one, since the ends are judged by the state right after each record.
                            for valid in log.take((record,)):
                                ends.see(valid, log.cluster(answer.outcome.cluster))
        except TimeoutError as error:
            _refuse_damage(log)
            ended = ends.ended()
            message = f"{len(ended)} of {len(answer.outcome.accepted)} moves have ended within {timeout_s} s"
            raise NotEndedError(message, ended=ended) from error
        return ends.ended()

    async def replay(
        self, *, after: int | None = None, cluster: str | None = None
    ) -> AsyncGenerator[ValidRecord, None]:
        """Yield every valid record about a cluster up to the log's present end, from the first or after an offset.

        A record holds the outcomes and events of this cluster only. Offsets are those of the cluster's shard.
        """
        name = cluster or self.cluster
        async with self._reader() as reader:
            if after is None:
                log = await open_log(reader, self.connection, name)
            else:
                log = await self._log_after(reader, name, after)
            async with aclosing(read_log(reader, self.connection, log)) as reading:
                async for records in reading:
                    for record in about(name, records):
                        yield record

    async def follow(
        self, *, after: int | None = None, cluster: str | None = None
    ) -> AsyncGenerator[ValidRecord, None]:
        """Yield every new valid record about a cluster, for ever; with an offset, first those that follow it.

        To go on where a program has ended, keep the offset of the last record, and give it as `after`. See `replay`.
        """
        name = cluster or self.cluster
        async with self._reader() as reader:
            if after is None:
                log = await fold_to_end(reader, self.connection, name)
            else:
                log = await self._log_after(reader, name, after)
            async with aclosing(follow_log(reader, self.connection, log)) as following:
                async for records in following:
                    for record in about(name, records):
                        yield record

    async def state(self, at: Point | None = None, *, cluster: str | None = None) -> ClusterState:
        """Return the state of a cluster by the log: now, after an offset, or at a time of the log.

        It is empty if the log had no entry for the cluster.
        """
        name, point = cluster or self.cluster, at or Point()
        async with self._reader() as reader:
            travelled = await travel_in(reader, self.connection, name, [point])
        return travelled.reached[point].state.clusters.get(name) or ClusterState(name)

    async def undo(self, plan: str, *, id: str, by: str, reason: str, cluster: str | None = None) -> Alter:  # noqa: A002 - the field's name
        """Return the command that takes back the completed moves of a plan, as `drover alter --undo` does.

        It is a new plan of its own. Send it as it is, or with other fields by `msgspec.structs.replace`; `split` it if
        it may be large. Raises `NothingToUndoError` if there is no such plan, or if it has completed no move.
        """
        name = cluster or self.cluster
        async with self._reader() as reader:
            undone = await undo_in(reader, self.connection, name, plan)
        return undone.command(id=id, by=by, reason=reason)

    def _reader(self, timeout_s: float | None = None) -> AbstractAsyncContextManager[Following]:
        """Return a reader to open; `TimeoutError` where what is done with it takes longer."""
        return LogReader(self.connection) if timeout_s is None else _limited(self.connection, timeout_s)

    async def _log_after(self, reader: Following, shard: int | str, offset: int) -> FoldedLog:
        """Fold a shard, or a cluster's shard, up to and with an offset."""
        point = Point(offset=offset)
        fold = (await travel_in(reader, self.connection, shard, [point])).reached[point]
        return FoldedLog({fold.shard: fold})

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


@asynccontextmanager
async def _limited(connection: LogConnection, timeout_s: float) -> AsyncIterator[LogReader]:
    async with time_limit(timeout_s), LogReader(connection) as reader:
        yield reader


def _refuse_damage(log: FoldedLog) -> None:
    """Raise `CorruptLogError` if the log stands still because it is damaged."""
    for detail in log.damaged.values():
        raise CorruptLogError(f"{detail}; see docs/recovery.md")


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
