"""Drives a shard core for the benchmarks: its log in memory, its time that of the caller."""

from collections.abc import Callable, Mapping

from bench.results import check
from drover.agents.calls import carry_out, look
from drover.client.commands import topic_of
from drover.cluster.port import ClusterDriver
from drover.events.codec import encode_command, encode_record
from drover.events.commands import AnyCommand
from drover.events.records import SCHEMA_VERSION, Acquire, Genesis
from drover.events.topics import TopicNames
from drover.fold.log import RecordVerdict, ShardFold
from drover.reconcile.messages import Input, Timestamp
from drover.shard.core import ShardCore
from drover.shard.messages import Arrival
from drover.state.cluster import ClusterState
from drover.state.scheduling import Limits

TOPICS = TopicNames()
TOPIC_IDS = ("id-alter", "id-cancel", "id-blacklist", "id-broker-failed")
TOKEN = b"0123456789abcdef"
CLUSTER = "prod"
WALL_START_MS = 1_700_000_000_000
LOOK_MS = 150


class Owner:
    """Owns the only shard of a log, which it keeps in memory; the clusters are behind their drivers."""

    def __init__(
        self, limits: Mapping[str, Limits], drivers: Mapping[str, ClusterDriver], now: Callable[[], Timestamp]
    ) -> None:
        self._drivers = drivers
        self._now = now
        self._has_input = False
        self._offsets = [0] * len(TOPIC_IDS)
        self.log: list[bytes] = []
        self.events = 0
        self.fold = ShardFold(0, 1)
        self._append(encode_record(Genesis(schema=SCHEMA_VERSION, shards=1, shard=0)))
        self.core = ShardCore(self.fold, topic_ids=TOPIC_IDS, clusters=limits, topics=TOPICS)
        acquire = Acquire(
            schema=SCHEMA_VERSION, epoch=self.fold.epoch + 1, token=TOKEN, owner="worker", group="drover", generation=1
        )
        self._append(encode_record(acquire))
        self.core.own(TOKEN, now())

    def state(self, cluster: str) -> ClusterState:
        """Return the folded state of a cluster."""
        return self.fold.state.cluster(cluster)

    def deliver(self, entry: Input) -> None:
        """Hand an input to the core."""
        self._has_input = True
        self.core.deliver(entry)

    async def look(self, cluster: str) -> None:
        """Look at a cluster as its watcher does."""
        seen = await look(self._drivers[cluster], self.core, cluster, self._now)
        if seen is not None:
            self.deliver(seen)

    async def decide(self, *commands: AnyCommand) -> None:
        """Decide commands that arrived together, and all that follows at once."""
        arrivals = tuple(self._arrival(command) for command in commands)
        while arrivals:
            taken, _ = await self._turn(arrivals)
            check(taken, "the core decides nothing")
            arrivals = arrivals[taken:]
        await self.settle()

    async def settle(self) -> None:
        """Take turns until nothing is left to do at this time, as a worker does."""
        while (await self._turn())[1] or self._is_due:
            pass

    def _arrival(self, command: AnyCommand) -> Arrival:
        index = TOPICS.commands.index(topic_of(command, TOPICS))
        self._offsets[index] += 1
        return Arrival(index, self._offsets[index] - 1, self._now().wall_ms, encode_command(command), command)

    async def _turn(self, arrivals: tuple[Arrival, ...] = ()) -> tuple[int, bool]:
        """Write one record, if there is anything to write, and make its calls.

        Returns how many arrivals were decided, and whether the turn heard, decided or changed anything.
        """
        for cluster, partitions in self.core.facts_needed(arrivals).items():
            self.deliver(await self._drivers[cluster].observe(partitions, with_min_isr=True))
        has_input, self._has_input = self._has_input, False
        proposed = self.core.propose(self._now(), arrivals, {})
        if proposed is not None:
            self._append(proposed.payload)
            self.events += len(proposed.record.events)
            self.core.commit(proposed)
        effects = self.core.effects(self._now())
        for effect in effects:
            self.deliver(await carry_out(self._drivers[effect.cluster], effect, self._now))
        return 0 if proposed is None else len(proposed.taken), bool(has_input or effects or proposed is not None)

    @property
    def _is_due(self) -> bool:
        """Whether the core has something left to do that one turn had no room for."""
        now = self._now()
        wake_ms = self.core.wake_at_ms(now)
        return wake_ms is not None and wake_ms <= now.monotonic_ms

    def _append(self, payload: bytes) -> None:
        folded = self.fold.fold(self.fold.position, payload)
        valid = {RecordVerdict.GENESIS, RecordVerdict.VALID, RecordVerdict.ACQUIRED}
        check(folded is not None and folded.verdict in valid, "a record is not valid")
        self.log.append(payload)
