"""The asyncio side of the managed clusters: observes them for the shard cores, and makes their calls.

It makes no decisions. Every fault of a cluster becomes an input with the known outcome of the call.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from drover.agents.calls import carry_out, has_answer, look, result_of
from drover.agents.clock import monotonic, now
from drover.cluster.port import ClusterDriver
from drover.errors import ClusterError
from drover.events.partitions import TopicPartition
from drover.events.progress import Progress, ReplicaBytes
from drover.facts import Observation
from drover.inventory import NO_LOG_DIRECTORIES
from drover.planner.rules import Rules
from drover.reconcile.contract import Urgency
from drover.reconcile.messages import BytesSampled, Effect, Input, OutOfReach, ReadThrottles, VersionsSeen
from drover.service.metrics import Metrics
from drover.shard.core import ShardCore
from drover.state.cluster import ClusterState
from drover.time_limits import time_limit

log = structlog.get_logger(__name__)

Wake = Callable[[], None]
PublishProgress = Callable[[Sequence[Progress]], Coroutine[Any, Any, None]]

GATHER_DEADLINE_MS = 10_000
GATHER_RETRY_MS = 100
# On a busy machine the last broker learned of a new topic 269 ms after it was created (docs/kafka-behaviour.md).
NEW_TOPIC_MS = 300
# For a cluster that has just been out of reach, a command tries only once, not until the deadline.
BREAKER_MS = 5000
PACE_MS = {Urgency.BUSY: 150, Urgency.WAITING: 1000, Urgency.IDLE: 10_000}
# The interval of observations while a step could start right after the next one; observations take at most a third of
# the time. The need for one is also checked at this interval.
PRESSING_PACE_MS, PRESSING_SHARE = 30, 2
UNREACHABLE_PACE_MS = 1000
# An outage is recorded only after this time, because a restart of a broker is not an outage.
OUTAGE_MS = 2000
SAMPLE_MS = 1000
# The interval of samples while there are no copies, and no first copies of a plan that wait for their sizes.
IDLE_SAMPLE_MS = 100
VERSIONS_MS = 30_000
# How long the last reading of log directories is used while there are no copies.
DIRECTORIES_MS = 30_000
# The most of the time that sampling may take, because listing the log directories of a large cluster is expensive.
SAMPLE_SHARE = 5


@dataclass(slots=True)
class _Watch:
    """The tasks that observe a cluster for a shard's owner, and the event that wakes them."""

    tasks: tuple[asyncio.Task[None], ...]
    nudge: asyncio.Event


class ClusterServices:
    """Watchers and callers of every configured cluster, for the shards that this worker owns.

    `close` closes the `drivers`. `publish` produces byte samples. `fail` is called with an unexpected exception, after
    which the process must stop. `rules` are those of heals, by cluster.
    """

    def __init__(
        self,
        drivers: Mapping[str, ClusterDriver],
        publish: PublishProgress,
        fail: Callable[[BaseException], None],
        metrics: Metrics,
        rules: Mapping[str, Rules],
    ) -> None:
        self._drivers = drivers
        self._rules = rules
        self._publish = publish
        self._fail = fail
        self._metrics = metrics
        self._watches: dict[tuple[int, str], _Watch] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._unreachable_ms: dict[str, int] = {}

    # -- what the host asks for

    def own(self, core: ShardCore, wake: Wake) -> None:
        """Start observing the clusters of a shard that this worker now owns."""
        for cluster in core.clusters:
            self._watch(core, cluster, wake)

    def disown(self, core: ShardCore) -> None:
        """Stop observing and measuring a shard's clusters; results of calls under way are dropped."""
        for shard, cluster in tuple(self._watches):
            if shard == core.fold.shard:
                for task in self._watches.pop((shard, cluster)).tasks:
                    task.cancel()
                self._metrics.cluster_left(cluster)

    async def gather(self, core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        """Observe the partitions and deliver the observations; return the reason for each cluster that failed."""
        names = sorted(needed)
        reasons = await asyncio.gather(*(self._gather_one(core, name, needed[name]) for name in names))
        return {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}

    def start(self, core: ShardCore, effects: Sequence[Effect], wake: Wake) -> None:
        """Make the calls, each in its own task, and deliver their results; wake the watchers of busy clusters."""
        for effect in effects:
            self._watch(core, effect.cluster, wake)
            self._spawn(self._carry_out(core, core.token, effect, wake))
        for cluster in core.clusters:
            # Observing an idle cluster after every record would cost more than all decisions.
            if core.cluster(cluster).attention(now()).urgency is not Urgency.IDLE:
                self._watch(core, cluster, wake).nudge.set()

    async def close(self) -> None:
        """End every task and close the drivers; idempotent."""
        tasks = [task for watch in self._watches.values() for task in watch.tasks] + list(self._running)
        self._watches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(driver.close() for driver in self._drivers.values()))

    # -- watching

    def _watch(self, core: ShardCore, cluster: str, wake: Wake) -> _Watch:
        place = (core.fold.shard, cluster)
        watch = self._watches.get(place)
        if watch is None:
            # The cluster may have been within reach since an earlier ownership, so an old failure does not count.
            self._unreachable_ms.pop(cluster, None)
            nudge = asyncio.Event()
            tasks = (
                self._spawn(self._observe(core, cluster, wake, nudge)),
                self._spawn(self._sample(core, cluster)),
                self._spawn(self._ask_versions(core, cluster)),
            )
            watch = self._watches[place] = _Watch(tasks, nudge)
        return watch

    async def _observe(self, core: ShardCore, cluster: str, wake: Wake, nudge: asyncio.Event) -> None:
        driver = self._drivers[cluster]
        may_measure_ms = 0
        while core.owned:
            began_ms, is_reached = now().monotonic_ms, True
            try:
                token = core.token
                seen = await look(driver, core, cluster, now)
                self._reached(cluster)
                self._metrics.reassignments(cluster, core.cluster(cluster).phases())
                self._measure_healing(core.cluster(cluster).state)
                if isinstance(seen, Observation) and now().monotonic_ms >= may_measure_ms:
                    may_measure_ms = await self._measure(core, token, cluster, seen)
                if seen is not None:
                    self._deliver(core, token, seen)
            except ClusterError as error:
                is_reached = False
                self._out_of_reach(cluster, error)
                self._deliver_outage(core, core.token, cluster, error)
            wake()
            await self._pause(core, cluster, began_ms, nudge, is_reached=is_reached)

    async def _pause(
        self, core: ShardCore, name: str, began_ms: int, nudge: asyncio.Event, *, is_reached: bool
    ) -> None:
        """Wait until the next observation, whose time may change meanwhile; `began_ms` is when the last one began."""
        ended_ms, is_told = now().monotonic_ms, core.cluster(name).state.outage is not None
        while core.owned:
            moment = now()
            attention = core.cluster(name).attention(moment)
            pace_ms = PACE_MS[attention.urgency]
            if not is_reached:
                # Once its outage is recorded, an unreachable idle cluster is asked only at the usual interval.
                pace_ms = max(pace_ms, UNREACHABLE_PACE_MS) if is_told else UNREACHABLE_PACE_MS
            elif attention.is_pressing:
                pace_ms = min(PACE_MS[Urgency.BUSY], max(PRESSING_PACE_MS, PRESSING_SHARE * (ended_ms - began_ms)))
            left_ms = ended_ms + pace_ms - moment.monotonic_ms
            if left_ms <= 0:
                return
            nudge.clear()
            slice_ms = left_ms if attention.urgency is Urgency.IDLE else min(left_ms, PRESSING_PACE_MS)
            with contextlib.suppress(TimeoutError):
                async with time_limit(slice_ms / 1000):
                    await nudge.wait()

    async def _measure(self, core: ShardCore, token: bytes | None, cluster: str, seen: Observation) -> int:
        """Read the sizes of copies that ended before their first sample; return when that may be done again.

        Without an answer the sizes stay unknown.
        """
        topics = core.cluster(cluster).unmeasured(seen)
        started_ms = now().monotonic_ms
        if not topics:
            return started_ms
        seen_now = await self._drivers[cluster].log_directories(topics)
        self._deliver(core, token, BytesSampled(cluster, started_ms, seen_now.sizes, seen_now.directories))
        ended_ms = now().monotonic_ms
        return ended_ms + (ended_ms - started_ms) * SAMPLE_SHARE

    def _measure_healing(self, state: ClusterState) -> None:
        left = 0 if state.heal_left is None else state.heal_left.count
        alarmed = sum(outage.is_alarmed for outage in state.absent_brokers.values())
        self._metrics.healing(state.name, away=len(state.absent_brokers), alarmed=alarmed, unhealed=left)

    async def _sample(self, core: ShardCore, cluster: str) -> None:
        """Sample the bytes of running copies, at most every second, and now and then those of waiting moves.

        Log directories are also read now and then when no sizes are needed, because decisions remark on those of a
        target.
        """
        publishing: asyncio.Task[None] | None = None
        may_look_ms = 0
        while core.owned:
            started, started_ms = monotonic(), now().monotonic_ms
            copying, topics = core.cluster(cluster).copying(), core.cluster(cluster).topics_to_sample(now())
            if topics or started_ms >= may_look_ms:
                sizes = await self._look_at_directories(core, cluster, topics)
                may_look_ms = started_ms + DIRECTORIES_MS
            if topics:
                samples = _samples(cluster, core.fold.epoch, copying, sizes)
                if sizes:
                    # If a cluster does not answer, the last figure stays, because its copies have not finished.
                    self._metrics.copy_remaining(
                        cluster, sum(sample.bytes_total - sample.bytes_done for sample in samples)
                    )
                if publishing is None or publishing.done():
                    # Not awaited, because decisions need sizes even while the topic of samples is unavailable.
                    publishing = self._spawn(self._publish(samples))
            else:
                self._metrics.copy_remaining(cluster, 0)
            took_ms = (monotonic() - started) * 1000
            await asyncio.sleep((max(SAMPLE_MS, took_ms * SAMPLE_SHARE) if topics else IDLE_SAMPLE_MS) / 1000)

    async def _look_at_directories(
        self, core: ShardCore, cluster: str, topics: Collection[str]
    ) -> Mapping[TopicPartition, Mapping[int, int]]:
        """Deliver the log directories, and return the sizes of these topics' replicas; empty without an answer."""
        started_ms = now().monotonic_ms
        try:
            seen = await self._drivers[cluster].log_directories(topics)
        except ClusterError as error:
            self._out_of_reach(cluster, error)
            seen = NO_LOG_DIRECTORIES
        self._deliver(core, core.token, BytesSampled(cluster, started_ms, seen.sizes, seen.directories))
        return seen.sizes

    async def _ask_versions(self, core: ShardCore, cluster: str) -> None:
        """Ask the brokers now and then for their versions, because a cluster may be upgraded during a plan.

        The next observation wakes the shard.
        """
        driver = self._drivers[cluster]
        while core.owned:
            token = core.token
            with contextlib.suppress(ClusterError):  # the observations report the outage
                self._deliver(core, token, VersionsSeen(cluster, await driver.broker_versions()))
            is_known = core.cluster(cluster).state.traits is not None
            await asyncio.sleep((VERSIONS_MS if is_known else UNREACHABLE_PACE_MS) / 1000)

    async def _gather_one(self, core: ShardCore, cluster: str, partitions: frozenset[TopicPartition]) -> str | None:
        driver, token, started = self._drivers[cluster], core.token, now().monotonic_ms
        missing = partitions
        reason: str | None = None
        while missing:
            try:
                may_be_new = now().monotonic_ms - started < NEW_TOPIC_MS
                observation = await driver.observe(missing, with_min_isr=True)
                self._deliver(core, token, observation)
                missing -= observation.partitions.keys() - core.cluster(cluster).observed.outdated(observation)
                if may_be_new:
                    missing |= {key for key, facts in observation.partitions.items() if facts is None}
                reason = None
                self._reached(cluster)
            except ClusterError as error:
                reason = str(error)
                if not self._out_of_reach(cluster, error):
                    return reason
            if now().monotonic_ms - started > GATHER_DEADLINE_MS:
                return reason
            if missing:
                await asyncio.sleep(GATHER_RETRY_MS / 1000)
        return None

    # -- calling

    async def _carry_out(self, core: ShardCore, token: bytes | None, effect: Effect, wake: Wake) -> None:
        if core.token != token:
            # The shard has another owner, which is now responsible for the intents.
            return
        ended = await carry_out(self._drivers[effect.cluster], effect, now, self._rules[effect.cluster])
        kind, is_answered, result = type(effect).__name__, has_answer(ended), result_of(ended)
        self._metrics.call_ended(effect.cluster, kind, result)
        if not is_answered and result != "rejected":
            log.warning(
                "call without an answer", cluster=effect.cluster, call=kind, detail=getattr(ended, "detail", "")
            )
        if isinstance(effect, ReadThrottles) and result != "accepted":
            # Do not read again at once from a cluster that does not answer, or refuses to.
            await asyncio.sleep(UNREACHABLE_PACE_MS / 1000)
        self._deliver(core, token, ended)
        wake()

    # -- the rest

    def _deliver(self, core: ShardCore, token: bytes | None, entry: Input) -> None:
        """Pass an input to the core, unless the shard has changed owners since it was requested."""
        if core.token == token:
            core.deliver(entry)

    def _deliver_outage(self, core: ShardCore, token: bytes | None, cluster: str, error: ClusterError) -> None:
        """Report a lasting outage to the core, which records it once."""
        moment = now()
        lasted_ms = moment.monotonic_ms - self._unreachable_ms[cluster]
        if lasted_ms >= OUTAGE_MS:
            self._deliver(core, token, OutOfReach(cluster, moment.wall_ms - lasted_ms, str(error)))

    def _reached(self, cluster: str) -> None:
        self._metrics.observed(cluster, "ok")
        if self._unreachable_ms.pop(cluster, None) is not None:
            log.info("cluster is within reach again", cluster=cluster)

    def _out_of_reach(self, cluster: str, error: ClusterError) -> bool:
        """Record a failure, and log it once per outage; return whether it is recent enough to try again at once."""
        self._metrics.observed(cluster, "failed")
        if cluster not in self._unreachable_ms:
            self._unreachable_ms[cluster] = now().monotonic_ms
            log.warning("cluster is out of reach", cluster=cluster, error=str(error))
        return now().monotonic_ms - self._unreachable_ms[cluster] < BREAKER_MS

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)


def _samples(
    cluster: str,
    epoch: int,
    copying: Mapping[TopicPartition, tuple[int, tuple[int, ...], int | None]],
    sizes: Mapping[TopicPartition, Mapping[int, int]],
) -> list[Progress]:
    """Turn sizes on disk into samples; the total is the leader's size for every replica being added.

    Without the size of the leader's replica the total is unknown, and there is no sample.
    """
    samples = []
    for key, (step, adding, leader) in copying.items():
        stored = sizes.get(key)
        if stored is None or not adding or leader is None or leader not in stored:
            continue
        total = max(stored[leader], *(stored.get(broker, 0) for broker in adding)) * len(adding)
        samples.append(
            Progress(
                cluster=cluster,
                topic=key.topic,
                partition=key.partition,
                epoch=epoch,
                at_ms=now().wall_ms,
                step=step,
                bytes_done=sum(stored.get(broker, 0) for broker in adding),
                bytes_total=total,
                adding=tuple(ReplicaBytes(broker, stored.get(broker, 0)) for broker in adding),
                leader=leader,
            )
        )
    return samples
