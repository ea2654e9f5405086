"""The one place of the benchmarks that drives a shard core: in memory, in a caller's time, with the time counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time

from bench.results import check
from drover.agents.calls import carry_out, look
from drover.client.client import topic_of
from drover.cluster.port import ClusterDriver
from drover.events.codec import encode_command, encode_record
from drover.events.commands import AnyCommand
from drover.events.records import SCHEMA_VERSION, Acquire, Batch, Genesis
from drover.events.topics import TopicNames
from drover.fold.log import RecordVerdict, ShardFold
from drover.reconcile.messages import Input, Moment
from drover.shard.core import ShardCore
from drover.shard.messages import Arrival
from drover.state.cluster import ClusterState
from drover.state.scheduling import Limits

TOPICS = TopicNames()
TOPIC_IDS = ("id-alter", "id-cancel", "id-blacklist", "id-broker-failed")
TOKEN = b"0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one turn, and the processor time that the core took.

    `draft_ms` is what it takes to decide: to say what must be seen, and to make the record. `core_ms` adds what follows
    when the record is durable, `fold_ms` is the fold's own. `inputs` counts what the draft heard.
    """

    draft_ms: float
    core_ms: float
    fold_ms: float
    inputs: int
    taken: int
    effects: int
    record: Batch | None

    @property
    def is_news(self) -> bool:
        """Whether the turn decided or changed anything."""
        return bool(self.inputs or self.taken or self.effects or self.record is not None)


class Owner:
    """Owns the only shard of a log, which it keeps in memory; the clusters are behind their drivers."""

    def __init__(
        self,
        limits: Mapping[str, Limits],
        drivers: Mapping[str, ClusterDriver],
        now: Callable[[], Moment],
        fold: ShardFold | None = None,
    ) -> None:
        self._drivers = drivers
        self._now = now
        self._inputs = 0
        self._offsets = [0] * len(TOPIC_IDS)
        self.log: list[bytes] = []
        self.events = 0
        self.fold = fold or ShardFold(0, 1)
        if fold is None:
            self._append(encode_record(Genesis(schema=SCHEMA_VERSION, shards=1, shard=0)))
        self.core = ShardCore(self.fold, topic_ids=TOPIC_IDS, clusters=limits, topics=TOPICS)
        acquire = Acquire(
            schema=SCHEMA_VERSION, epoch=self.fold.epoch + 1, token=TOKEN, owner="worker", group="drover", generation=1
        )
        self._append(encode_record(acquire))
        self.core.own(TOKEN, now())

    def state(self, cluster: str) -> ClusterState:
        """Return what the log says of a cluster."""
        return self.fold.state.cluster(cluster)

    # -- in

    def deliver(self, entry: Input) -> None:
        """Hand an input to the core."""
        self._inputs += 1
        self.core.deliver(entry)

    def arrival(self, command: AnyCommand) -> Arrival:
        """Write a command to its topic."""
        index = TOPICS.commands.index(topic_of(command, TOPICS))
        self._offsets[index] += 1
        return Arrival(index, self._offsets[index] - 1, self._now().wall_ms, encode_command(command), command)

    async def look(self, cluster: str) -> None:
        """Look at a cluster as its watcher does."""
        seen = await look(self._drivers[cluster], self.core, cluster, self._now)
        if seen is not None:
            self.deliver(seen)

    # -- turns

    async def turn(self, arrivals: tuple[Arrival, ...] = ()) -> Turn:
        """Write one record, if there is anything to write, and make its calls."""
        started = process_time()
        needed = self.core.facts_needed(arrivals)
        draft_s = process_time() - started
        for cluster, partitions in needed.items():
            self.deliver(await self._drivers[cluster].observe(partitions, with_min_isr=True))
        inputs, self._inputs = self._inputs, 0
        started = process_time()
        draft = self.core.propose(self._now(), arrivals, {})
        draft_s += process_time() - started
        core_s, fold_s = draft_s, 0.0
        if draft is not None:
            fold_s = self._append(draft.payload)
            self.events += len(draft.record.events)
            started = process_time()
            self.core.commit(draft)
            core_s += process_time() - started
        started = process_time()
        effects = self.core.effects(self._now())
        self.core.wake_at_ms(self._now())
        core_s += process_time() - started
        for effect in effects:
            self.deliver(await carry_out(self._drivers[effect.cluster], effect, self._now))
        taken = 0 if draft is None else len(draft.taken)
        record = None if draft is None else draft.record
        return Turn(draft_s * 1000, core_s * 1000, fold_s * 1000, inputs, taken, len(effects), record)

    async def decide(self, *commands: AnyCommand) -> None:
        """Decide commands that arrived together, and all that follows at once."""
        arrivals = tuple(self.arrival(command) for command in commands)
        while arrivals:
            turn = await self.turn(arrivals)
            check(turn.taken, "the core decides nothing")
            arrivals = arrivals[turn.taken :]
        await self.settle()

    async def settle(self) -> list[Turn]:
        """Take turns until there is nothing to do at this moment, as a worker does; returns these turns."""
        turns: list[Turn] = []
        while (turn := await self.turn()).is_news or self._is_due:
            turns.append(turn)
        return turns

    @property
    def _is_due(self) -> bool:
        """Whether the core has something left to do that one turn had no room for."""
        now = self._now()
        wake_ms = self.core.wake_at_ms(now)
        return wake_ms is not None and wake_ms <= now.monotonic_ms

    def _append(self, payload: bytes) -> float:
        """Append to the log and fold; returns the processor time of the fold in seconds."""
        started = process_time()
        folded = self.fold.fold(self.fold.position, payload)
        spent_s = process_time() - started
        counts = {RecordVerdict.GENESIS, RecordVerdict.VALID, RecordVerdict.ACQUIRED}
        check(folded is not None and folded.verdict in counts, "a record did not count")
        self.log.append(payload)
        return spent_s
