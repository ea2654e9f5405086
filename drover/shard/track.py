"""What the owner of a shard remembers about one cluster between two records; gone with the ownership, never folded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drover.reassignment.copy_pace import SizeSample, remember
from drover.reassignment.facts import BrokerRates, Move, Observation, PartitionFacts, ThrottledReplicas
from drover.reassignment.throttles import Read
from events.partitions import TopicPartition

DOUBT_MS = 2000
FRESH_MS = 2000
# A step starts on a younger sight: what others did since would go unseen.
FRESH_TO_START_MS = 500
RETRY_FIRST_MS, RETRY_MAX_MS = 250, 5000
THROTTLE_RETRY_MS = 1000
# A predecessor's call starts within 1 s of its intent and ends within 4 s: after that its outcome is on the cluster.
TAKEOVER_WAIT_MS = 5000
_KEEP_SIGHTS = 20_000


@dataclass(frozen=True, slots=True)
class Sight:
    """One partition as seen in an observation between two moments (monotonic); None: it does not exist."""

    facts: PartitionFacts | None
    started_ms: int
    ended_ms: int


class ClusterTrack:
    """The owner's memory of one cluster; every time in it is the owner's monotonic clock."""

    def __init__(self) -> None:
        self.live: frozenset[int] = frozenset()
        self.live_seen_ms: int | None = None
        self.moves: Mapping[TopicPartition, Move] = {}
        self.min_isr: dict[str, int] = {}
        self.sights: dict[TopicPartition, Sight] = {}
        self._topic_ids: dict[str, str] = {}
        self.sizes: dict[TopicPartition, Mapping[int, int]] = {}
        self._step_sizes: dict[TopicPartition, tuple[SizeSample, ...]] = {}
        self.calls: set[TopicPartition] = set()
        self._call_ended: dict[TopicPartition, int] = {}
        self._doubted_since_ms: dict[TopicPartition, int] = {}
        self._not_before: dict[TopicPartition, int] = {}
        self.needed: dict[TopicPartition, None] = {}
        self._broker_rates: dict[int, tuple[BrokerRates, int]] = {}
        self._topic_replicas: dict[str, tuple[ThrottledReplicas | None, int]] = {}
        self._distrusted: set[str] = set()
        self.throttles_changed_ms = 0
        self.throttles_from_ms = 0
        self.reading = False
        self.changing = False
        self.read_brokers: tuple[int, ...] = ()
        self.read_topics: tuple[str, ...] = ()
        self.waiting_plans: set[str] = set()
        self.outsiders: frozenset[TopicPartition] = frozenset()
        self._unrecorded: dict[TopicPartition, tuple[Move | None, int]] = {}

    # -- sights

    def see(self, observation: Observation) -> tuple[TopicPartition, ...]:
        """Take an observation in; returns the partitions it says something about.

        One that began before a partition's last call had ended says nothing about that partition.
        """
        self.see_live(observation.live_brokers, observation.ended_ms)
        self.moves = observation.moves
        self.min_isr.update(observation.min_isr)
        seen: list[TopicPartition] = []
        for key, facts in observation.partitions.items():
            if key in self.calls or observation.started_ms < self._call_ended.get(key, 0):
                continue
            self.sights[key] = Sight(facts, observation.started_ms, observation.ended_ms)
            if facts is not None and self._topic_ids.get(key.topic) != facts.topic_id:
                self._topic_ids[key.topic] = facts.topic_id
                self._distrust_lists(key.topic)
            self.needed.pop(key, None)
            seen.append(key)
        if len(self.sights) > _KEEP_SIGHTS:
            horizon = observation.ended_ms - FRESH_MS
            self.sights = {key: sight for key, sight in self.sights.items() if sight.ended_ms >= horizon}
        return tuple(seen)

    def see_live(self, brokers: Iterable[int], ended_ms: int) -> None:
        """Remember which brokers are alive."""
        self.live = frozenset(brokers)
        self.live_seen_ms = ended_ms

    def fresh(self, key: TopicPartition, now_ms: int, within_ms: int = FRESH_MS) -> Sight | None:
        """Return what was seen of a partition lately and after its last call; None if nothing was.

        What was seen before another partition showed that the topic was created anew counts no more (S9).
        """
        sight = self.sights.get(key)
        if sight is None or now_ms - sight.ended_ms > within_ms:
            return None
        if sight.facts is not None and sight.facts.topic_id != self._topic_ids[key.topic]:
            return None
        return sight

    # -- calls

    def call_starts(self, key: TopicPartition) -> None:
        """Remember that this owner's call about the partition is under way."""
        self.calls.add(key)
        self.sights.pop(key, None)
        self._step_sizes.pop(key, None)

    def call_ends(self, key: TopicPartition, ended_ms: int) -> None:
        """From here on an observation that begins later counts again."""
        self.calls.discard(key)
        self._call_ended[key] = ended_ms
        self.sights.pop(key, None)

    def call_ended_ms(self, key: TopicPartition) -> int:
        """Tell when the partition's last call ended; 0 if none did under this owner."""
        return self._call_ended.get(key, 0)

    def retry_later(self, key: TopicPartition, attempts: int, now_ms: int) -> None:
        """Let the next try wait, longer with every failed one."""
        self._not_before[key] = now_ms + min(RETRY_FIRST_MS << min(attempts, 10), RETRY_MAX_MS)

    def may_try(self, key: TopicPartition, now_ms: int) -> bool:
        """Whether a partition's back-off is over."""
        return self._not_before.get(key, 0) <= now_ms

    def forget(self, key: TopicPartition) -> None:
        """Let go of everything about a partition whose reassignment has ended."""
        self.calls.discard(key)
        for memory in (
            self.sights,
            self.sizes,
            self._step_sizes,
            self._call_ended,
            self._doubted_since_ms,
            self._not_before,
            self.needed,
        ):
            memory.pop(key, None)

    # -- doubts

    def persisted(self, key: TopicPartition) -> bool:
        """Whether the last look at this partition began at least 2 s after one that doubted it had ended.

        A look may take long: what it shows can be as old as its beginning.
        """
        since_ms, sight = self._doubted_since_ms.get(key), self.sights.get(key)
        return since_ms is not None and sight is not None and sight.started_ms - since_ms >= DOUBT_MS

    def doubt(self, key: TopicPartition, ended_ms: int, *, doubtful: bool) -> None:
        """Keep or clear the doubt about a partition after a judgement."""
        if not doubtful:
            self._doubted_since_ms.pop(key, None)
            return
        self._doubted_since_ms.setdefault(key, ended_ms)

    def doubted(self) -> Iterable[TopicPartition]:
        """List the partitions that must be seen again soon."""
        return tuple(self._doubted_since_ms)

    # -- foreign moves

    @property
    def has_unrecorded(self) -> bool:
        """Whether foreign moves have come, changed or gone, and that has not been seen for long enough."""
        return bool(self._unrecorded)

    def unrecorded_for_long(
        self, found: Mapping[TopicPartition, Move | None], ended_ms: int
    ) -> tuple[TopicPartition, ...]:
        """Remember what differs from the record, and list what has done so for 2 s without a change, in order."""
        before = self._unrecorded
        self._unrecorded = {}
        for key, move in found.items():
            known = before.get(key)
            self._unrecorded[key] = known if known is not None and known[0] == move else (move, ended_ms)
        return tuple(sorted(key for key, (_, since_ms) in self._unrecorded.items() if ended_ms - since_ms >= DOUBT_MS))

    # -- throttles

    def read(self, now_ms: int) -> Read:
        """Return what has been read of throttle settings since the last change, and within the last 2 s.

        Others change them as well: an old reading is no baseline.
        """
        since_ms = now_ms - FRESH_MS
        return Read(
            {broker: rates for broker, (rates, read_ms) in self._broker_rates.items() if read_ms >= since_ms},
            {topic: lists for topic, (lists, read_ms) in self._topic_replicas.items() if read_ms >= since_ms},
        )

    def throttles_read(
        self,
        brokers: Mapping[int, BrokerRates],
        topics: Mapping[str, ThrottledReplicas | None],
        started_ms: int,
        heard_ms: int,
    ) -> None:
        """Take read settings in, unless they are older than the last change, or than a topic's new incarnation."""
        self.reading = False
        distrusted, self._distrusted = self._distrusted, set()
        if started_ms < self.throttles_changed_ms:
            return
        topics = {topic: lists for topic, lists in topics.items() if topic not in distrusted}
        self._broker_rates.update((broker, (rates, heard_ms)) for broker, rates in brokers.items())
        self._topic_replicas.update((topic, (lists, heard_ms)) for topic, lists in topics.items())

    def throttles_changed(self, brokers: Iterable[int], topics: Iterable[str], ended_ms: int) -> None:
        """Forget what was read of everything that was just written."""
        self.throttles_changed_ms = ended_ms
        for broker in brokers:
            self._broker_rates.pop(broker, None)
        for topic in topics:
            self._topic_replicas.pop(topic, None)

    def _distrust_lists(self, topic: str) -> None:
        """Forget what was read of a topic that is seen to be another one, and what is just being read of it."""
        self._topic_replicas.pop(topic, None)
        if self.reading:
            self._distrusted.add(topic)

    # -- sizes

    def measured(self, key: TopicPartition, sample: SizeSample) -> None:
        """Remember sizes of a partition that is being copied, unless they were read before its last call had ended."""
        if key not in self.calls and sample.taken_ms >= self._call_ended.get(key, 0):
            self._step_sizes[key] = remember(self._step_sizes.get(key, ()), sample)

    def step_sizes(self, key: TopicPartition) -> tuple[SizeSample, ...]:
        """Return what was measured of a partition since its last call, in order."""
        return self._step_sizes.get(key, ())

    # -- timers

    def next_due_ms(self, now_ms: int) -> int | None:
        """Tell when something waits for nothing but time."""
        times = [due for due in self._not_before.values() if due > now_ms]
        times += [due for key, due in self._call_ended.items() if due > now_ms and key not in self.calls]
        if self.throttles_from_ms > now_ms:
            times.append(self.throttles_from_ms)
        return min(times, default=None)
