"""A worker of the simulation: the real shard hosting, with its log, its group and its clusters replaced."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from drover.agents.calls import look
from drover.agents.clusters import PACE_MS, UNREACHABLE_PACE_MS
from drover.agents.shards import HostedShard, ShardServices
from drover.errors import ClusterError
from drover.events.partitions import TopicPartition
from drover.events.records import Record
from drover.events.topics import TopicNames
from drover.facts import Observation, Survey
from drover.fold.decided_commands import DecidedCommands
from drover.fold.log import Folded, RecordVerdict, ShardFold, ShardState
from drover.journal.folded_log import FoldedLog
from drover.reconcile.contract import Urgency
from drover.reconcile.messages import BytesSampled, Effect, Identified, Input, VersionsSeen
from drover.service.metrics import Metrics
from drover.settings.settings import LogSettings, Settings, WorkerSettings
from drover.shard.core import ShardCore
from drover.shard.messages import Arrival, ProposedBatch
from drover.state.cluster import ClusterState
from drover.traits import LATEST, version_of
from tests.simulation.calls import Call
from tests.simulation.coroutines import Point, Running, at_once, reach

if TYPE_CHECKING:
    from tests.simulation.world import World

TOPIC_IDS = ("id-alter", "id-cancel", "id-blacklist", "id-broker-failed")
GROUP = "drover"


class Source:
    """The consumer group as one worker sees it."""

    def __init__(self) -> None:
        self.generation = 0

    def hold(self, topic_index: int, partition: int) -> None: ...

    def release(self, topic_index: int, partition: int) -> None: ...

    async def request_rejoin(self) -> None: ...


class Silence:
    """Metrics that nobody reads."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return _ignore


def _ignore(*_args: object, **_named: object) -> None:
    """Take anything, do nothing."""


class WorkerLog:
    """The log as one worker sees it: what it has folded, and its appends."""

    def __init__(self, world: "World", folds: Sequence[ShardFold]) -> None:
        self.folds = tuple(folds)
        self._world = world

    async def append(self, shard: int, _record: Record, payload: bytes) -> Folded:
        """Append a record; how it was judged is known when everything before it has been folded as well."""
        await reach(Point.APPEND)
        offset = self._world.log.append(shard, payload)
        await reach(Point.ACKNOWLEDGE)
        return self.catch_up(shard, offset + 1)[-1]

    def catch_up(self, shard: int, end: int | None = None) -> list[Folded]:
        """Fold what the tail brings, up to `end`; the last one returned stands just before it."""
        fold, records = self.folds[shard], self._world.log.shards[shard]
        end = len(records) if end is None else end
        if end <= fold.position:
            # The tail was quicker than the acknowledgement.
            return [self._world.checker.judged(shard, end - 1)]
        return [self._fold(fold, offset, records[offset]) for offset in range(fold.position, end)]

    @staticmethod
    def _fold(fold: ShardFold, offset: int, payload: bytes) -> Folded:
        folded = fold.fold(offset, payload)
        assert folded is not None, "records are folded in their order"
        return folded


class Shard(HostedShard):
    """One hosted shard. `loop` and `barrier` are its coroutines under way, `looks` when each cluster is looked at."""

    def __init__(self, core: ShardCore, services: ShardServices, worker: "Worker") -> None:
        super().__init__(core, services)
        self.worker = worker
        self.loop: Running[bool] | None = None
        self.barrier: Running[None] | None = None
        self.awake = False
        self.due_ms: int | None = None
        self.looks: dict[str, int] = {}
        self.positions = [0, 0, 0, 0]
        self._sights: list[tuple[int, bytes | None, Input]] = []

    def wake(self) -> None:
        self.awake = True

    def turn(self, points: int | None) -> None:
        """Let the loop go on past so many points; to the end of this pass by default."""
        if self.loop is None:
            self.awake = False
            if not self.assigned:
                return
            self.loop = Running(self._turn())
        if self._advance(self.loop, points):
            self.awake = self.awake or self.loop.result
            self.loop = None
            now = self.worker.world.now()
            self.due_ms = self.core.wake_at_ms(now) if self.assigned and self.core.owned else None

    def _advance(self, running: Running[Any], points: int | None) -> bool:
        world = self.worker.world
        while points is None or points > 0:
            if running.advance():
                return True
            if world.is_interrupted(self.worker):
                return False
            points = None if points is None else points - 1
        return False

    def enter(self, points: int | None) -> None:
        """Let the rebalance barrier go on past so many points."""
        if self.barrier is not None and self._advance(self.barrier, points):
            self.barrier = None

    def begin_barrier(self, generation: int) -> None:
        """The group has assigned the shard: it must be acquired before anything is read."""
        if self.barrier is not None:
            self.barrier.close()
        self.barrier = Running(self._barrier(generation))

    async def _barrier(self, generation: int) -> None:
        if await self.acquire() and self.worker.source.generation == generation:
            self.serve()
            self.positions = list(self.next_offsets)

    def fetch(self, topic_index: int, count: int) -> None:
        """Let the consumer bring commands of one topic."""
        stored = self.worker.world.commands.read(topic_index, self.number)
        start = self.positions[topic_index]
        for offset in range(start, min(start + count, len(stored))):
            record = stored[offset]
            self.delivery.arrive(
                Arrival(topic_index, offset, record.timestamp_ms, record.payload, record.command, record.forwarded)
            )
            self.positions[topic_index] = offset + 1

    def look(self, cluster: str, delay_ms: int = 0) -> None:
        """Look at a cluster once, as closely as the core wants; what is seen may be heard so much later."""
        world, token = self.worker.world, self.core.token
        wire = world.clusters[cluster].wire
        pace_ms = PACE_MS[self.core.cluster(cluster).attention(world.now()).urgency]
        try:
            seen = at_once(look(wire, self.core, cluster, world.now))
            if seen is not None:
                self._sights.append((world.now_ms + delay_ms, token, seen))
        except ClusterError:
            pace_ms = max(pace_ms, UNREACHABLE_PACE_MS)
        if world.settings.traits not in {LATEST, self.core.cluster(cluster).state.traits}:
            versions = dict.fromkeys(world.clusters[cluster].model.live_brokers(), version_of(world.settings.traits))
            self._sights.append((world.now_ms + delay_ms, token, VersionsSeen(cluster, versions)))
        self.looks[cluster] = world.now_ms + max(pace_ms, delay_ms)
        self.hear()
        self.wake()

    def hear(self) -> None:
        """Hear of what was seen, unless the shard has changed hands since."""
        for due_ms, token, seen in list(self._sights):
            if due_ms <= self.worker.world.now_ms:
                self._sights.remove((due_ms, token, seen))
                if self.core.token == token:
                    self.core.deliver(_heard(seen, due_ms))
                    self._moves_seen(seen)
                    self.wake()

    def _moves_seen(self, seen: Input) -> None:
        if isinstance(seen, Observation | Identified):
            self.worker.world.clusters[seen.cluster].moves_seen(seen.moves or (), self.core.fold.epoch)

    def sample(self, cluster: str) -> None:
        """Read the bytes on disk of what is being copied or waits for it."""
        world = self.worker.world
        wire = world.clusters[cluster].wire
        topics = self.core.cluster(cluster).topics_to_sample(world.now())
        if topics and not wire.unreachable:
            seen = at_once(wire.log_directories(topics))
            self.core.deliver(BytesSampled(cluster, world.now_ms, seen.sizes, seen.directories))

    async def _send_aside(self, proposed: ProposedBatch) -> None:
        commands, now_ms = self.worker.world.commands, self.worker.world.now().wall_ms
        for arrival, target in proposed.forward:
            await reach(Point.ASIDE)
            commands.put(arrival.topic_index, target, arrival.payload, now_ms, forwarded=True)
        for arrival, _ in proposed.dead_letters:
            await reach(Point.ASIDE)
            commands.dead_letters.append((self.number, arrival.topic_index, arrival.offset))


def _heard(seen: Input, ended_ms: int) -> Input:
    """A look that took longer ended later."""
    return replace(seen, ended_ms=ended_ms) if isinstance(seen, Observation | Identified | Survey) else seen


class Worker:
    """One process. It is `alive` until it crashes; `paused` it does nothing at all, and knows nothing of that."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.paused = False
        self.resumed_ms = 0
        self.source = Source()
        self.log = WorkerLog(world, [fork(fold) for fold in world.checker.folds])
        services = ShardServices(
            settings=Settings(LogSettings("simulated:9092"), worker=WorkerSettings(name=name, group=GROUP)),
            log=cast("FoldedLog", self.log),
            clusters=Clusters(self),
            source=lambda: self.source,
            fail=_fail,
            metrics=cast("Metrics", Silence()),
            new_token=world.new_token,
        )
        limits = dict.fromkeys(world.settings.names, world.settings.limits)
        self.shards = tuple(
            Shard(ShardCore(fold, topic_ids=TOPIC_IDS, clusters=limits, topics=TopicNames()), services, self)
            for fold in self.log.folds
        )

    def follow(self) -> None:
        """Let the tail of the log bring what is new."""
        for shard in self.shards:
            if shard.fold.position < len(self.world.log.shards[shard.number]):
                folded = self.log.catch_up(shard.number)
                if any(record.verdict is not RecordVerdict.VALID for record in folded):
                    shard.wake()

    def close(self) -> None:
        """The process is no more: whatever it was doing ends where it stands."""
        for shard in self.shards:
            for running in (shard.loop, shard.barrier):
                if running is not None:
                    running.close()


class Clusters:
    """The managed clusters as a worker's shards need them (drover.agents.services.ClusterSide)."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def gather(self, core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        reasons: dict[str, str] = {}
        for name in sorted(needed):
            token = core.token
            await reach(Point.LOOK)
            try:
                seen = await self._worker.world.clusters[name].wire.observe(needed[name], with_min_isr=True)
                if core.token == token:
                    core.deliver(seen)
                    self._worker.world.clusters[name].moves_seen(seen.moves, core.fold.epoch)
            except ClusterError as error:
                reasons[name] = str(error)
        return reasons

    def start(self, core: ShardCore, effects: Sequence[Effect], wake: Callable[[], None]) -> None:  # noqa: ARG002 - a port's own
        shard = self._worker.shards[core.fold.shard]
        for effect in effects:
            self._worker.world.calls.append(Call(self._worker.world, shard, effect))
        for cluster in core.clusters:
            is_idle = core.cluster(cluster).attention(self._worker.world.now()).urgency is Urgency.IDLE
            if cluster not in shard.looks or is_idle:
                shard.looks[cluster] = self._worker.world.now_ms

    def own(self, core: ShardCore, wake: Callable[[], None]) -> None:  # noqa: ARG002 - a port's own
        self._worker.shards[core.fold.shard].looks = dict.fromkeys(core.clusters, self._worker.world.now_ms)

    def disown(self, core: ShardCore) -> None:
        self._worker.shards[core.fold.shard].looks = {}

    async def close(self) -> None: ...


def fork(fold: ShardFold) -> ShardFold:
    """Make what a replay of the same records would make; the end of every run holds the two against each other."""
    twin = ShardFold(fold.shard, fold.shards)
    for name in ShardFold.__slots__:
        value = getattr(fold, name)
        if name not in {"shard", "shards"}:
            setattr(
                twin, name, value.copy() if isinstance(value, ShardState | ClusterState | DecidedCommands) else value
            )
    return twin


def _fail(reason: str, error: BaseException | None) -> None:
    raise AssertionError(f"a worker ends: {reason}") from error
