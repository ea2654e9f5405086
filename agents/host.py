"""All shards of a worker: replay, the rebalance barrier, and the loops; Faust's group drives it through `CommandHost`.

A fault ends the process (`fail`), which is safe, because the next process learns everything from the log.
"""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import structlog

from drover.agents.clock import monotonic, now
from drover.agents.ports import CommandSource
from drover.agents.services import ClusterSide
from drover.agents.shards import HostedShard, ShardServices
from drover.agents.snapshots import SnapshotKeeper
from drover.agents.watchdog import EXIT_FAULT
from drover.errors import ConfigurationError, CorruptLogError, DroverError, LogUnavailableError
from drover.events.codec import encode_progress
from drover.events.progress import OwnedShard, WorkerSample
from drover.events.records import Acquire
from drover.fold.log import Damage, Folded, RecordVerdict
from drover.journal.command_lag import Waiting
from drover.journal.folded_log import FoldedLog
from drover.journal.port import Journal
from drover.service.metrics import Metrics
from drover.settings.settings import Settings
from drover.shard.core import ShardCore
from drover.shard.messages import Arrival
from drover.state.cluster import ClusterState
from drover.time_limits import time_limit

BARRIER_TIMEOUT_S = 30.0
HOUSEKEEPING_S = 0.5
MEASURE_S = 5.0
TOPICS_S = 60.0
# The interval of heartbeats; clients consider a worker gone after five missing ones.
SIGN_OF_LIFE_S = 2.0
_log = structlog.get_logger(__name__)


class ShardHost:
    """Hosts every shard of the log and owns those that the group assigns; implements `drover.agents.ports.CommandHost`.

    `topic_ids` are those of the command topics, in their order; `read_topic_ids` reads them again, None for one that is
    not there. `stop` closes journal, clusters and snapshots.
    """

    def __init__(
        self,
        settings: Settings,
        topic_ids: tuple[str, ...],
        journal: Journal,
        clusters: ClusterSide,
        snapshots: SnapshotKeeper,
        metrics: Metrics,
        *,
        read_topic_ids: Callable[[], Awaitable[Sequence[str | None]]],
        end: Callable[[int], NoReturn] = os._exit,
    ) -> None:
        topics = settings.log.topics
        self.log = FoldedLog(journal, topics.events, self._folded, self._damaged)
        self.is_replayed = False
        self.is_joined = False
        self._settings = settings
        self._topic_ids = topic_ids
        self._read_topic_ids = read_topic_ids
        self._clusters = clusters
        self._snapshots = snapshots
        self._metrics = metrics
        self._end = end
        self._source: CommandSource | None = None
        self._waiting = Waiting()
        self._revocations = 0
        self._in_barrier = False
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []
        self._loops: list[asyncio.Task[None]] = []
        services = ShardServices(
            settings=settings,
            log=self.log,
            clusters=clusters,
            source=lambda: self.source,
            fail=self.fail,
            metrics=metrics,
            snapshots=snapshots,
            broker_time_ms=journal.broker_time_ms,
            new_token=self.new_token,
        )
        limits = settings.limits
        self.shards = tuple(
            HostedShard(
                ShardCore(
                    fold,
                    topic_ids=topic_ids,
                    clusters=limits,
                    topics=topics,
                    moves_own_topics=settings.worker.allow_drover_topics,
                ),
                services,
            )
            for fold in self.log.folds
        )

    @property
    def source(self) -> CommandSource:
        """The group that assigns shards and delivers commands."""
        assert self._source is not None, "attach the group before it starts"
        return self._source

    @property
    def is_closing(self) -> bool:
        """Whether the worker was asked to stop."""
        return self._closing

    def owned_states(self) -> Iterator[ClusterState]:
        """Return the clusters of the shards that this worker owns, as the log has them."""
        for shard in self.shards:
            if shard.holds_token:
                yield from shard.fold.state.clusters.values()

    def new_token(self) -> bytes:
        """Return a token that no other ownership has."""
        return secrets.token_bytes(16)

    def attach(self, source: CommandSource) -> None:
        """Set the group."""
        self._source = source

    # -- life

    async def start(self) -> None:
        """Replay the log to its end, then run the shards; only then may it join the group."""
        began = monotonic()
        await self.log.journal.start()
        records = await self._snapshots.replay(self.log)
        for shard in self.shards:
            if shard.fold.position == 0:
                raise ConfigurationError(f"shard {shard.number} has no first record: run `drover log init`")
        _log.info("the log was replayed", records=records, seconds=round(monotonic() - began, 2))
        self.is_replayed = True
        self._tasks = [
            asyncio.create_task(self._guarded("following the log", self.log.follow())),
            asyncio.create_task(self._guarded("housekeeping", self._keep_house())),
            asyncio.create_task(self._guarded("measuring", self._measure())),
            asyncio.create_task(self._guarded("watching the command topics", self._watch_topics())),
            asyncio.create_task(self._guarded("giving signs of life", self._give_signs_of_life())),
        ]
        self._loops = [
            asyncio.create_task(self._guarded(f"the loop of shard {shard.number}", shard.run()))
            for shard in self.shards
        ]

    async def close_shards(self) -> None:
        """Stop deciding and record the state hash of each owned shard, before leaving the group."""
        self._closing = True
        for shard in self.shards:
            shard.end_loop()
        await asyncio.gather(*self._loops)
        await asyncio.gather(*(shard.close() for shard in self.shards))

    async def stop(self) -> None:
        """Close the log and the clusters, after leaving the group."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._snapshots.close()
        await self._clusters.close()
        await self.log.journal.close()

    # -- CommandHost

    def partitions_revoked(self) -> None:
        """Give up every shard now."""
        # A revoke does not change the generation; code that awaits across one must check this counter.
        self._revocations += 1
        self.is_joined = False
        given_up = [shard.number for shard in self.shards if shard.assigned]
        for shard in self.shards:
            shard.revoke()
        if given_up:
            _log.info("shards are given up", shards=given_up)
        self._metrics.shards_owned(0)

    async def partitions_assigned(self, partitions: Mapping[str, Sequence[int]], generation: int) -> None:
        """Acquire every assigned shard; the group reads no records before this returns."""
        if self._closing:
            return
        assigned = {tuple(numbers) for numbers in partitions.values()}
        if len(assigned) > 1:
            gone = [topic for topic, numbers in partitions.items() if not numbers]
            if gone:
                self.fail(f"the group has no partition of {', '.join(gone)} any more: was the topic deleted?", None)
            self.fail(f"the group scattered the shards over the command topics: {dict(partitions)}", None)
        revocations = self._revocations
        # A shard with a damaged log has no owner until an administrator resumes it: docs/recovery.md.
        shards = [
            self.shards[number] for numbers in assigned for number in numbers if not self.shards[number].is_damaged
        ]
        for shard in shards:
            shard.unowned_since = monotonic()
        acquired: Sequence[bool] = ()
        self._in_barrier = True
        try:
            async with time_limit(BARRIER_TIMEOUT_S):
                await self._check_topics(shards)
                # A shard that was revoked meanwhile must not be taken from its next owner.
                if not self._is_overtaken(revocations, generation):
                    acquired = await asyncio.gather(*(shard.acquire() for shard in shards))
        except (DroverError, TimeoutError) as error:
            if not self.is_closing:
                raise
            # The acquired shards were given up, and the next owner takes them.
            _log.warning("a barrier failed while the worker was stopped", error=repr(error))
        finally:
            self._in_barrier = False
        if self._is_overtaken(revocations, generation):
            _log.info("a barrier was overtaken by the next rebalance or a stop", generation=generation)
            return
        # A shard whose log turned out to be damaged does not block the others.
        shards = [shard for shard, is_ours in zip(shards, acquired, strict=True) if is_ours and not shard.is_damaged]
        for shard in shards:
            shard.serve()
        self.is_joined = True
        self._metrics.shards_owned(len(shards))
        _log.info("shards are owned", shards=[shard.number for shard in shards], generation=generation)

    def positions(self) -> Mapping[int, tuple[int, ...]]:
        """Return the next offset of each command topic per shard, from the log."""
        return {shard.number: shard.next_offsets for shard in self.shards}

    def positions_set(self, positions: Mapping[int, tuple[int, ...]]) -> None:
        """Start again at these offsets; the consumer was set to them and has dropped its records."""
        for number, next_offsets in positions.items():
            self.shards[number].delivery.reset(next_offsets)

    def arrive(self, partition: int, arrival: Arrival, generation: int) -> None:
        """Accept a command; records of an earlier assignment are dropped, because they will be read again."""
        shard = self.shards[partition]
        if shard.assigned and generation == self.source.generation:
            shard.delivery.arrive(arrival)

    def fail(self, reason: str, error: BaseException | None) -> NoReturn:
        """Log the fault and end the process at once."""
        _log.critical("the worker ends", reason=reason, error=repr(error), exit_code=EXIT_FAULT, exc_info=error)
        self._end(EXIT_FAULT)

    # -- inside

    def _is_overtaken(self, revocations: int, generation: int) -> bool:
        return self._closing or revocations != self._revocations or generation != self.source.generation

    def _folded(self, number: int, folded: Folded) -> None:
        # Another worker's record may have taken the shard: let its loop check.
        if folded.verdict is not RecordVerdict.VALID and self.is_replayed:
            self.shards[number].wake()
        if isinstance(folded.record, Acquire) and folded.record.resumes_after is not None and self.is_replayed:
            self._resumed(self.shards[number])

    def _damaged(self, number: int, damage: Damage) -> None:
        """Stop a shard whose log is damaged; the others go on."""
        _log.critical(
            "the log of a shard is damaged: the shard stops, the others go on; see docs/recovery.md",
            shard=number,
            offset=damage.offset,
            why=damage.detail,
        )
        self._metrics.shard_damaged(number, is_damaged=True)
        if self.is_replayed:
            self.shards[number].revoke()

    def _resumed(self, shard: HostedShard) -> None:
        if not shard.is_damaged and not shard.assigned:
            _log.warning("a damaged shard was resumed", shard=shard.number, by=shard.fold.owner)
            self._metrics.shard_damaged(shard.number, is_damaged=False)
            # The shard has no owner: join the group again, so that the barrier acquires it.
            shard.unowned_since = monotonic()

    async def _check_topics(self, shards: Sequence[HostedShard]) -> None:
        """Stop the worker if a topic was replaced after decisions from it, or lacks the next offset (R4)."""
        for index, topic in enumerate(self._settings.log.topics.commands):
            for shard in shards:
                cursor = shard.fold.cursors[index] if shard.fold.cursors else None
                if cursor is not None and cursor.next_offset:
                    self._check_topic_id(topic, self._topic_ids[index], cursor.topic_id)
        await self._measure_lag(shards)

    def _check_topic_id(self, topic: str, current: str, expected: str) -> None:
        if current != expected:
            raise CorruptLogError(
                f"{topic} has the id {current}, but the log was decided from a topic with the id {expected}: "
                "it was deleted and made anew; see docs/recovery.md"
            )

    async def _watch_topics(self) -> None:
        """Detect a command topic that was created anew; fetches do not, because they use the name, not the id."""
        while True:
            await asyncio.sleep(TOPICS_S)
            try:
                ids = await self._read_topic_ids()
            except DroverError as error:
                _log.warning("the ids of the command topics could not be read", error=str(error))
                continue
            for topic, current, expected in zip(self._settings.log.topics.commands, ids, self._topic_ids, strict=True):
                if current is not None:
                    self._check_topic_id(topic, current, expected)

    async def _measure_lag(self, shards: Sequence[HostedShard]) -> None:
        """Compare every cursor with its topic: count undecided commands, and check that the topic has it (R4)."""
        # Read the cursors before the bounds, because a competing owner may meanwhile decide commands beyond them.
        positions = self.positions()
        for index, topic in enumerate(self._settings.log.topics.commands):
            bounds = await self.log.journal.bounds(topic, [positions[shard.number][index] for shard in self.shards])
            for number in (shard.number for shard in shards):
                (first, end), offset = bounds[number], positions[number][index]
                if not first <= offset <= end:
                    raise CorruptLogError(
                        f"{topic}/{number} holds offsets {first} to {end}, but {offset} is to be decided next"
                    )
                self._metrics.commands_undecided(topic, number, self._waiting.count((topic, number), offset, end))

    async def _measure_waiting(self) -> None:
        """Correct the lag by transaction markers and aborted records."""
        async with self.log.journal.reader(is_committed=True) as reader:
            counts = await self._waiting.find_out(reader)
        for (topic, number), commands in counts.items():
            if self.shards[number].holds_token:
                self._metrics.commands_undecided(topic, number, commands)

    async def _measure(self) -> None:
        """Keep the figures of `/metrics` up to date; this also detects a topic that was created anew."""
        while True:
            await asyncio.sleep(MEASURE_S)
            owned = [shard for shard in self.shards if shard.holds_token]
            self._metrics.shards_owned(len(owned))
            for shard in self.shards:
                self._metrics.log_position(shard.number, shard.fold.position)
                self._metrics.inbox_size(shard.number, shard.inbox.count)
                if shard not in owned:
                    self._metrics.shard_left(shard.number, self._settings.log.topics.commands)
            try:
                await self._measure_lag(owned)
                if self._waiting.may_be_less:
                    await self._measure_waiting()
            except LogUnavailableError as error:
                _log.warning("the lag could not be measured", error=str(error))

    async def _give_signs_of_life(self) -> None:
        """Publish heartbeats with this worker's shards on the progress topic, so that clients notice lost owners."""
        topic, name = self._settings.log.topics.progress, self._settings.worker.full_name
        while True:
            owned = tuple(OwnedShard(shard.number, shard.fold.epoch) for shard in self.shards if shard.holds_token)
            sample = WorkerSample(worker=name, at_ms=now().wall_ms, shards=owned)
            try:
                await self.log.journal.send(topic, encode_progress(sample), key=name.encode())
            except LogUnavailableError as error:
                # Only telemetry: clients then see a silent worker.
                _log.warning("a sign of life was not published", error=str(error))
            await asyncio.sleep(SIGN_OF_LIFE_S)

    async def _keep_house(self) -> None:
        """Join the group again if a shard of ours is unowned for two session timeouts (R1)."""
        patience_s = 2 * self._settings.worker.session_timeout_s
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            waiting = [
                shard
                for shard in self.shards
                if shard.unowned_since is not None and monotonic() - shard.unowned_since > patience_s
            ]
            if waiting and not self._in_barrier:
                _log.warning("joining the group again", unowned_shards=[shard.number for shard in waiting])
                for shard in waiting:
                    shard.unowned_since = monotonic()
                await self.source.request_rejoin()

    async def _guarded(self, task_name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the supervisor of every task: whatever it is, the process ends
            self.fail(f"{task_name} failed", error)
