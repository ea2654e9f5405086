"""Ranks of what waits for a step: they follow from the state, and from sizes that are known by now."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from drover.decide.replica_sets import adding
from drover.events.partitions import TopicPartition
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.starts.backlog import LEAST_BYTES, Backlog
from drover.reconcile.starts.candidates import Candidates
from drover.reconcile.starts.rank import Rank
from drover.state.cluster import ClusterState
from drover.state.ports import ports_of


class Ranking:
    """Ranks the waiting reassignments of one cluster; `backlog` is what is pending."""

    def __init__(self, state: ClusterState, sizes: CopySizes) -> None:
        self._state = state
        self._sizes = sizes
        self.backlog = Backlog()
        self._resized: dict[TopicPartition, None] = {}
        # Those that were weighed without a size: any size is news, since a copy of next to nothing takes less room.
        self._unsized: dict[TopicPartition, None] = {}

    def weigh(self, key: TopicPartition, leader: int | None) -> None:
        """Note how much a reassignment is to copy, and from where: the first of its list, if its leader is unknown."""
        entry = self._state.reassignments[key]
        if key in self._state.moves.pending:
            source = entry.current[0] if leader is None else leader
            ports = ports_of(adding(entry.current, entry.heading), source)
            size = self._sizes.copy_bytes(key)
            self.backlog.put(key, ports, size)
            if size is None:
                self._unsized[key] = None
            else:
                self._unsized.pop(key, None)
        else:
            self.forget(key)

    def forget(self, key: TopicPartition) -> None:
        """Drop what waits no longer."""
        self.backlog.drop(key)
        self._unsized.pop(key, None)

    def rank(self, key: TopicPartition) -> Rank:
        """Rank a reassignment by what is known now."""
        entry = self._state.reassignments[key]
        if key not in self._state.moves.pending:
            return Rank(0, 0, 0, entry.number, entry.plan)
        return Rank(1, -self.backlog.busiest(key), -self.backlog.size(key), entry.number, entry.plan)

    def is_outdated(self, key: TopicPartition, rank: Rank) -> bool:
        """Whether another reassignment has taken the key, or the same one is in flight by now, or again pending."""
        return (rank.tier, rank.number) != (
            int(key in self._state.moves.pending),
            self._state.reassignments[key].number,
        )

    def sampled(self, sizes: Mapping[TopicPartition, Mapping[int, int]]) -> None:
        """Note which sizes are so different from those that were known that the order may be.

        All weigh what they weigh before the first one is ranked anew.
        """
        for key, copies in sizes.items():
            if key in self._state.moves.pending:
                known, size = self.backlog.size(key), max(LEAST_BYTES, *copies.values(), LEAST_BYTES)
                if key in self._unsized or not known // 2 < size < known * 2:
                    self.backlog.resize(key, size)
                    self._resized[key] = None

    @property
    def has_resized(self) -> bool:
        """Whether there are more of those."""
        return bool(self._resized)

    def take_resized(self, at_most: int) -> Iterator[TopicPartition]:
        """Take some of those that are to be ranked anew."""
        for key in tuple(islice(self._resized, at_most)):
            del self._resized[key]
            yield key

    def offer_again(self, candidates: Candidates, keys: Iterable[TopicPartition]) -> None:
        """Queue those of them for a try that wait for anything."""
        for key in keys:
            if key in candidates:
                candidates.offer(key, self.rank(key))
