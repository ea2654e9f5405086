"""A model of copying: brokers with a port in and one out, streams that share them evenly, and nothing random.

Each copy goes from the leader to the broker that is added. Copies share a port max-min fairly, and none is faster than
one stream can be. Time is in seconds, sizes are bytes, rates are bytes per second.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition

# The rest of a copy below which it has ended: what floating-point numbers leave.
NOTHING_BYTES = 1e-3

Place = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Shift:
    """One partition to reassign: its first replica leads; `ingest` is what producers add per second meanwhile."""

    key: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    bytes: float
    ingest: float = 0.0

    @property
    def leader(self) -> int:
        return self.before[0]

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.after if broker not in self.before)


@dataclass(frozen=True, slots=True)
class Instance:
    """A cluster with a rack of each broker, and what is to be moved.

    `port` is the rate of every way into and out of a broker, `stream` what one copy reaches at most, `uplink` the rate
    of each way into and out of a rack; None is no bound.
    """

    name: str
    family: str
    racks: Mapping[int, str]
    shifts: tuple[Shift, ...]
    port: float
    stream: float
    uplink: float | None = None

    def places(self, source: int, destination: int) -> tuple[Place, ...]:
        """Return everything that a copy between two brokers shares with others."""
        places: tuple[Place, ...] = (("out", source), ("in", destination))
        there, here = self.racks[source], self.racks[destination]
        if self.uplink is not None and there != here:
            places += (("rack out", there), ("rack in", here))
        return places

    def capacity(self, place: Place) -> float:
        return self.uplink if self.uplink is not None and place[0].startswith("rack") else self.port

    @property
    def streams_per_port(self) -> int:
        """How many copies fill a port."""
        return round(self.port / self.stream + 0.49)

    @property
    def bound_s(self) -> float:
        """The time that no schedule can beat: the busiest place, or the longest single copy.

        A copy of a partition that is written to takes at least its bytes at a stream's rate less the ingest, and as
        long as it runs the ingest is copied too.
        """
        loads: dict[Place, float] = {}
        longest = 0.0
        for shift in self.shifts:
            least_s = shift.bytes / (self.stream - shift.ingest)
            longest = max(longest, least_s if shift.added else 0.0)
            for broker in shift.added:
                for place in self.places(shift.leader, broker):
                    loads[place] = loads.get(place, 0.0) + shift.bytes + shift.ingest * least_s
        return max(longest, *(load / self.capacity(place) for place, load in loads.items()))


@dataclass(slots=True)
class _Stream:
    places: tuple[Place, ...]
    left: float
    ingest: float
    rate: float = 0.0

    @property
    def ends_in_s(self) -> float:
        gain = self.rate - self.ingest
        return self.left / gain if gain > 0 else float("inf")


Copy = tuple[TopicPartition, int]


@dataclass(slots=True)
class Network:
    """The copies under way; `now_s` is the model's time."""

    instance: Instance
    now_s: float = 0.0
    _due: list[tuple[float, Shift, int]] = field(default_factory=list)
    _streams: dict[Copy, _Stream] = field(default_factory=dict)
    _is_shared: bool = True

    def start(self, shift: Shift, brokers: Iterable[int], at_s: float) -> None:
        """Begin to copy to these brokers at a moment that is not past."""
        self._due += [(at_s, shift, broker) for broker in brokers]

    def _begin(self) -> None:
        for at_s, shift, broker in self._due:
            if at_s <= self.now_s:
                places = self.instance.places(shift.leader, broker)
                self._streams[shift.key, broker] = _Stream(places, shift.bytes, shift.ingest)
                self._is_shared = False
        self._due = [one for one in self._due if one[0] > self.now_s]

    def stop(self, copies: Collection[Copy]) -> None:
        """Copy these no further."""
        for copy in copies:
            del self._streams[copy]
        self._is_shared = self._is_shared and not copies

    @property
    def next_event_s(self) -> float:
        """When the next copy begins or ends; infinity if neither ever happens."""
        self._share()
        ends_in_s = min((stream.ends_in_s for stream in self._streams.values()), default=float("inf"))
        return min([self.now_s + ends_in_s, *(at_s for at_s, _, _ in self._due)])

    def advance(self, until_s: float) -> list[Copy]:
        """Let time pass, and return what has ended by then, in order."""
        ended: list[Copy] = []
        while True:
            event_s = self.next_event_s
            moment_s = min(event_s, until_s)
            for stream in self._streams.values():
                stream.left -= (stream.rate - stream.ingest) * (moment_s - self.now_s)
            self.now_s = moment_s
            done = [copy for copy, stream in self._streams.items() if stream.left <= NOTHING_BYTES]
            self.stop(done)
            ended += done
            self._begin()
            if self.next_event_s > until_s:
                return ended

    def _share(self) -> None:
        """Share every place evenly; what one stream cannot use is for the others."""
        if self._is_shared:
            return
        self._is_shared = True
        users: dict[Place, dict[Copy, None]] = {}
        for copy, stream in self._streams.items():
            for place in stream.places:
                users.setdefault(place, {})[copy] = None
        left = {place: self.instance.capacity(place) for place in users}
        while users:
            narrowest = min(users, key=lambda place: left[place] / len(users[place]))
            share = left[narrowest] / len(users[narrowest])
            if share >= self.instance.stream:
                for copy in {copy for those in users.values() for copy in those}:
                    self._streams[copy].rate = self.instance.stream
                return
            for copy in tuple(users[narrowest]):
                stream = self._streams[copy]
                stream.rate = share
                for place in stream.places:
                    del users[place][copy]
                    left[place] -= share
                    if not users[place]:
                        del users[place]


def ports_of(instance: Instance, shift: Shift) -> Sequence[Place]:
    """Return the ways that a partition's copies go, one by one."""
    return [place for broker in shift.added for place in instance.places(shift.leader, broker)[:2]]
