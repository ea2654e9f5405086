"""The owner's cache of observations of a cluster; it ends with the ownership and is never folded.

Times are monotonic.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from itertools import islice, takewhile

from msgspec import Struct

from drover.brokers import Brokers, unreachable_brokers
from drover.events.partitions import TopicPartition
from drover.facts import Move, Observation, PartitionFacts, Survey
from drover.inventory import LogDirectory

FRESH_MS = 2000
# A step starts only on a younger observation, so that it sees what other clients have just changed.
FRESH_TO_START_MS = 500
# How long brokers' metadata usually lags behind the controller.
METADATA_LAG_MS = 2000
# No broker's metadata is older than this. In KRaft mode a broker answers with what it has applied, and a thousand
# replicas to make or delete take it many seconds; what comes after waits for them (Kafka's BrokerMetadataPublisher).
MOST_METADATA_LAG_MS = 30_000
# Beyond so many observations, those that are no longer fresh are dropped, some at a time.
_KEEP = 20_000
_DROP = 1000
# Replica lists of a partition, the latest last: each with the time until which (monotonic) an observation of it may be
# old, and with the id of the topic's incarnation, None if that was not seen.
_Noted = tuple[tuple[tuple[int, ...], int, str | None], ...]
# Not a plain dict: its first entry takes longer to find with every entry that was dropped before it.
_Lists = OrderedDict[TopicPartition, _Noted]


class CallEffect(Enum):
    """Whether an alter call changed a partition: Kafka accepted it, it certainly had no effect, or that is unknown."""

    DONE = "done"
    NONE = "none"
    UNKNOWN = "unknown"


class CachedObservation(Struct, frozen=True, gc=False):
    """One partition as observed between two times; `facts` is None if it does not exist."""

    facts: PartitionFacts | None
    started_ms: int
    ended_ms: int


class ObservationCache:
    """The latest observations of one cluster: its brokers, its moves, and its partitions."""

    def __init__(self) -> None:
        self.live: frozenset[int] = frozenset()
        self.live_seen_ms: int | None = None
        # Brokers that live unlisted, and those with a registration, by the last survey and the observations since.
        self.unreachable: frozenset[int] = frozenset()
        self.registered: frozenset[int] | None = None
        # Of the last survey: when it began, how long it took, its live brokers, and others that replica lists named.
        self.surveyed_ms: int | None = None
        self.survey_took_ms = 0
        self.surveyed_live: frozenset[int] = frozenset()
        self.missing: frozenset[int] = frozenset()
        # Brokers that were unreachable at any time: without the listener, DescribeCluster does not name them either.
        self._unlisted: frozenset[int] = frozenset()
        # The rack that each broker was last seen in; another object whenever one changes.
        self.racks: Mapping[int, str | None] = {}
        self.moves: Mapping[TopicPartition, Move] = {}
        # The moves that the List before did not show.
        self.begun: frozenset[TopicPartition] = frozenset()
        self.min_isr: dict[str, int] = {}
        self.partitions: dict[TopicPartition, CachedObservation] = {}
        # The log directories as each broker last described them.
        self.directories: dict[int, tuple[LogDirectory, ...]] = {}
        self._listed: frozenset[TopicPartition] = frozenset()
        self._topic_ids: dict[str, str] = {}
        self._calling: set[TopicPartition] = set()
        self._call_ended: dict[TopicPartition, int] = {}
        self._predecessors: dict[TopicPartition, int] = {}
        # How old metadata is recognised, and until when (monotonic), oldest first. `_made`: the list that a call has
        # left; an observation of any other is stale. `_replaced`: the list that a call has replaced, and `_merged`: the
        # list during a move, Drover's or another client's, that is over; an observation of either is stale.
        self._made: _Lists = OrderedDict()
        self._replaced: _Lists = OrderedDict()
        self._merged: _Lists = OrderedDict()
        # The leader before an election, and until when an observation that still shows it is stale.
        self._led: OrderedDict[TopicPartition, tuple[int, int]] = OrderedDict()
        # The lists noted before the call under way: they still hold if Kafka does not accept that call.
        self._before_call: dict[TopicPartition, tuple[_Noted, _Noted]] = {}

    def see(self, observation: Observation) -> Observation:
        """Store an observation, and return it without the partitions whose facts are outdated.

        Facts are outdated if the observation began before the partition's last call ended. So they are if it began
        soon after one of these and shows the time before it: within `METADATA_LAG_MS` after a call left a list
        (`call_made`) or an election replaced a leader (`leader_replaced`), within `MOST_METADATA_LAG_MS` after a call
        replaced a list (`call_replaced`) or a move with a merged list ended.
        """
        self.see_live(observation.live_brokers, observation.ended_ms)
        self._see_unreachable(self.unreachable | unreachable_brokers(self.live, observation.partitions.values()))
        self._see_racks(observation.racks)
        self.see_moves(observation.moves, observation.ended_ms)
        self.min_isr.update(observation.min_isr)
        started_ms, ended_ms = observation.started_ms, observation.ended_ms
        partitions, topic_ids, call_ended = self.partitions, self._topic_ids, self._call_ended
        made, replaced, merged, led = self._made, self._replaced, self._merged, self._led
        outdated: set[TopicPartition] = set()
        for key, facts in observation.partitions.items():
            is_noted = key in made or key in replaced or key in merged or key in led
            is_stale = is_noted and facts is not None and self._is_stale(key, facts, started_ms)
            if is_stale or key in self._calling or started_ms < call_ended.get(key, 0):
                outdated.add(key)
                continue
            # The oldest come first, so that expired ones are dropped without a scan.
            partitions.pop(key, None)
            partitions[key] = CachedObservation(facts, started_ms, ended_ms)
            if facts is not None:
                topic_ids[key.topic] = facts.topic_id
        if len(partitions) > _KEEP:
            self._drop_some_of(ended_ms - FRESH_MS, at_most=_DROP + len(observation.partitions))
        if not outdated:
            return observation
        counted = {key: facts for key, facts in observation.partitions.items() if key not in outdated}
        return replace(observation, partitions=counted)

    def see_moves(self, moves: Mapping[TopicPartition, Move], ended_ms: int) -> None:
        """Remember the moves and which of them are new, and note the merged lists of those that are over."""
        # All moves are compared in every observation, so by sets, which keep the hashes of their keys.
        listed, before = frozenset(moves), self._listed
        different = before ^ listed
        for key in before & different:
            if (merged := _never_left(self.moves[key])) is not None:
                self._note(self._merged, key, merged, ended_ms, MOST_METADATA_LAG_MS)
        self.moves, self._listed, self.begun = moves, listed, different & listed

    def outdated(self, observation: Observation) -> frozenset[TopicPartition]:
        """List the partitions that an observation shows from old metadata."""
        outdated = set()
        for key, facts in observation.partitions.items():
            over = self.moves.get(key) if key not in observation.moves else None
            if facts is None or facts.move is not None:
                continue
            if self._is_stale(key, facts, observation.started_ms) or (over and facts.replicas == _never_left(over)):
                outdated.add(key)
        return frozenset(outdated)

    def _drop_some_of(self, before_ms: int, at_most: int) -> None:
        """Drop the oldest: more than came in, but not so many that a batch waits for it."""
        old = takewhile(lambda key: self.partitions[key].ended_ms < before_ms, self.partitions)
        for key in list(islice(old, at_most)):
            del self.partitions[key]

    def _see_racks(self, racks: Mapping[int, str | None]) -> None:
        if not racks.items() <= self.racks.items():
            self.racks = {**self.racks, **racks}

    def see_live(self, brokers: Iterable[int], ended_ms: int) -> None:
        """Remember which brokers are alive; the set stays the same object as long as they are the same."""
        live = frozenset(brokers)
        if live != self.live:
            self.live = live
            self.unreachable -= live
            self._unlisted -= live
            if self.registered is not None:
                self.registered |= live
        self.live_seen_ms = ended_ms

    def see_survey(self, survey: Survey) -> None:
        """Remember the brokers of a survey: only a survey shows that a broker is gone, or unregistered."""
        self.see_live(survey.live_brokers, survey.ended_ms)
        self._see_unreachable(unreachable_brokers(self.live, survey.partitions.values()))
        self.surveyed_ms, self.survey_took_ms = survey.started_ms, survey.ended_ms - survey.started_ms
        self.surveyed_live = self.live
        self.missing = frozenset().union(*{facts.replicas for facts in survey.partitions.values()}) - self.live
        registered = survey.registered_brokers
        self.registered = None if registered is None else registered | self._unlisted

    def see_unregistered(self, broker: int) -> None:
        """Remember Kafka's answer that a broker has no registration, unless it is alive again."""
        if self.registered is not None and broker not in self.live:
            self.registered -= {broker}

    def _see_unreachable(self, brokers: frozenset[int]) -> None:
        if brokers != self.unreachable:
            self.unreachable = brokers
            self._unlisted |= brokers

    @property
    def brokers(self) -> Brokers:
        """Return which brokers are live, unreachable and registered, by everything observed."""
        return Brokers(self.live, self.unreachable, self.registered)

    def see_directories(self, directories: Mapping[int, tuple[LogDirectory, ...]]) -> None:
        """Remember the log directories of the brokers that have answered."""
        self.directories.update(directories)

    def fresh(self, key: TopicPartition, now_ms: int, within_ms: int = FRESH_MS) -> CachedObservation | None:
        """Return the latest observation of a partition if it is recent and began after the last call; else None.

        It no longer counts once another partition has shown that the topic was deleted and created again (S9).
        """
        seen = self.partitions.get(key)
        if seen is None or now_ms - seen.ended_ms > within_ms:
            return None
        if seen.facts is not None and seen.facts.topic_id != self._topic_ids[key.topic]:
            return None
        return seen

    # -- calls

    def call_starts(self, key: TopicPartition, *, changes_list: bool = True) -> None:
        """Ignore observations of a partition while this owner's call about it is under way.

        `changes_list` is False for an election.
        """
        self._calling.add(key)
        if changes_list:
            self._before_call[key] = self._made.pop(key, ()), self._replaced.pop(key, ())
        self.partitions.pop(key, None)

    def call_ends(self, key: TopicPartition, ended_ms: int, effect: CallEffect = CallEffect.DONE) -> None:
        """Let observations count again that begin later.

        A call may ask for a list that was replaced a moment ago. Unless Kafka accepted it, an observation that shows
        that list may come from a lagging broker. `ended_ms` is monotonic.
        """
        self._calling.discard(key)
        self._call_ended[key] = ended_ms
        self.partitions.pop(key, None)
        made, replaced = self._before_call.pop(key, ((), ()))
        if made and effect is CallEffect.NONE:
            self._made[key] = made
        if replaced and effect is not CallEffect.DONE:
            self._replaced[key] = replaced

    def call_made(self, key: TopicPartition, replicas: tuple[int, ...], ended_ms: int) -> None:
        """Note the list that the controller has accepted: for `METADATA_LAG_MS` an observation of another is stale.

        The next accepted call that changes the list ends that. `ended_ms` is monotonic, as everywhere here.
        """
        self._made.pop(key, None)
        self._note(self._made, key, replicas, ended_ms, METADATA_LAG_MS)

    def call_replaced(
        self, key: TopicPartition, replicas: tuple[int, ...], ended_ms: int, *, is_accepted: bool = True
    ) -> None:
        """Note a list that the controller has replaced: for `MOST_METADATA_LAG_MS` an observation of it is stale.

        Where the answer was lost, so that nobody knows that it was, for `METADATA_LAG_MS` only.
        It counts while the partition is moving, since the lists before and during a shrink may be the same. The next
        accepted call that changes the list ends that. `ended_ms` is monotonic.
        """
        lag_ms = MOST_METADATA_LAG_MS if is_accepted else METADATA_LAG_MS
        self._note(self._replaced, key, replicas, ended_ms, lag_ms)

    def leader_replaced(self, key: TopicPartition, leader: int, ended_ms: int) -> None:
        """Note the leader until an election: for `METADATA_LAG_MS` an observation that shows it is stale.

        The partition's next election ends that. `ended_ms` is monotonic.
        """
        self._led[key] = leader, ended_ms + METADATA_LAG_MS
        self._led.move_to_end(key)
        while next(iter(self._led.values()))[1] < ended_ms:
            self._led.popitem(last=False)

    def _is_stale(self, key: TopicPartition, facts: PartitionFacts, started_ms: int) -> bool:
        leader, until_ms = self._led.get(key, (None, 0))
        if started_ms < until_ms and facts.leader == leader:
            return True
        if any(facts.replicas != made for made in _in_force(self._made, key, facts, started_ms)):
            return True
        if facts.move is not None:
            return False
        return any(
            facts.replicas == old
            for lists in (self._replaced, self._merged)
            for old in _in_force(lists, key, facts, started_ms)
        )

    def _note(self, lists: _Lists, key: TopicPartition, replicas: tuple[int, ...], now_ms: int, lag_ms: int) -> None:
        """Note a list for as long as metadata may be old, and drop the lists for which that time is over."""
        others = (other for other in lists.get(key, ()) if other[1] > now_ms and other[0] != replicas)
        lists[key] = (*others, (replicas, now_ms + lag_ms, self._topic_ids.get(key.topic)))
        lists.move_to_end(key)
        while next(iter(lists.values()))[-1][1] < now_ms:
            lists.popitem(last=False)

    def predecessor_calls(self, key: TopicPartition, until_ms: int) -> None:
        """Ignore observations that begin before this time: a predecessor's call may be under way until then."""
        self.call_ends(key, until_ms)
        self._predecessors[key] = until_ms

    def is_calling(self, key: TopicPartition) -> bool:
        """Whether this owner's call about a partition is under way."""
        return key in self._calling

    def awaits_end(self, keys: Iterable[TopicPartition], now_ms: int) -> bool:
        """Whether any of these partitions may still have a call in flight, this owner's or a predecessor's."""
        return any(key in self._calling or self._call_ended.get(key, 0) > now_ms for key in keys)

    def call_ended_ms(self, key: TopicPartition) -> int:
        """Tell when the partition's last call ended, or will have ended at the latest; 0 if there was none."""
        return self._call_ended.get(key, 0)

    def predecessors_end_ms(self, now_ms: int) -> int | None:
        """Tell when the next call of a predecessor will have ended; None if all have."""
        if self._predecessors:
            self._predecessors = {key: due for key, due in self._predecessors.items() if due > now_ms}
        return min(self._predecessors.values(), default=None)

    def forget(self, key: TopicPartition) -> None:
        """Drop everything about a partition whose reassignment has ended."""
        self._calling.discard(key)
        self._before_call.pop(key, None)
        self._call_ended.pop(key, None)
        self.partitions.pop(key, None)


def _never_left(move: Move) -> tuple[int, ...] | None:
    """Return the list during a move if the move cannot end with it: one that both adds and removes; else None."""
    return move.replicas if move.adding and move.removing else None


def _in_force(lists: _Lists, key: TopicPartition, facts: PartitionFacts, started_ms: int) -> Iterator[tuple[int, ...]]:
    """Yield the noted lists that count for an observation of this incarnation of the topic that began at this time."""
    for replicas, until_ms, topic_id in lists.get(key, ()):
        if started_ms < until_ms and topic_id in {None, facts.topic_id}:
            yield replicas
