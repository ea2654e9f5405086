"""A model of copying, and seeded instances of plans on it.

Every broker has a port in and one out. Each copy goes from the leader to the broker that is added. Copies share a port
max-min fairly, and none is faster than one stream can be. Time is in seconds, sizes are bytes, rates are bytes per
second. The instances are what operators move: even and skewed sizes, few sources, racks, ingest, replacements.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from drover.events.partitions import TopicPartition

# A copy has ended when less is left: the rest is rounding of floating-point numbers.
NOTHING_BYTES = 1e-3
Place = tuple[str, object]
BROKERS, RACKS, TOPICS = 12, 3, 10
PORT = 50e6
STREAM_SHARES = (1, 3, 8)
MEDIAN_BYTES = 400e6


@dataclass(frozen=True, slots=True)
class Shift:
    """One partition to reassign: its first replica leads; producers add `ingest` bytes per second meanwhile."""

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
    """A cluster with a rack for each broker, and the plan to carry out.

    `port` is the rate into and out of each broker, `stream` the most that one copy reaches, `uplink` the rate into and
    out of each rack; None is no bound.
    """

    name: str
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
        """The time that no schedule can beat: that of the busiest place, or of the longest single copy.

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
        self._due = [due for due in self._due if due[0] > self.now_s]

    @property
    def next_event_s(self) -> float:
        """When the next copy begins or ends; infinity if neither ever happens."""
        self._share()
        ends_in_s = min((stream.ends_in_s for stream in self._streams.values()), default=float("inf"))
        return min([self.now_s + ends_in_s, *(at_s for at_s, _, _ in self._due)])

    def advance(self, until_s: float) -> list[Copy]:
        """Let time pass, and return the copies that have ended by then, in order."""
        ended: list[Copy] = []
        while True:
            event_s = self.next_event_s
            moment_s = min(event_s, until_s)
            for stream in self._streams.values():
                stream.left -= (stream.rate - stream.ingest) * (moment_s - self.now_s)
            self.now_s = moment_s
            done = [copy for copy, stream in self._streams.items() if stream.left <= NOTHING_BYTES]
            for copy in done:
                del self._streams[copy]
            self._is_shared = self._is_shared and not done
            ended += done
            self._begin()
            if self.next_event_s > until_s:
                return ended

    def _share(self) -> None:
        """Share every place evenly; the others get the rest that one stream cannot use."""
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


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of plan: each partition gets another last replica, or, in a replacement, three others.

    Sizes are log-normal with `sigma`. A quarter of the brokers leads `hot` of the partitions, producers write `ingest`
    of a port to each, and racks may have uplinks.
    """

    sigma: float = 1.2
    hot: float = 0.0
    ingest: float = 0.0
    uplink: float | None = None
    is_replacement: bool = False


FAMILIES = {
    "even sizes": Family(sigma=0.2),
    "skewed sizes": Family(),
    "very skewed sizes": Family(sigma=1.8),
    "hot sources": Family(hot=0.5),
    "racks": Family(uplink=2 * PORT),
    "ingest": Family(ingest=0.001),
    "replacement": Family(sigma=0.8, is_replacement=True),
}


def instances(seeds: int, moves: int) -> Iterator[Instance]:
    """Make every family with every share of a port that one stream reaches, for so many seeds."""
    racks = {broker: f"r{broker % RACKS}" for broker in range(1, BROKERS + 1)}
    for share in STREAM_SHARES:
        for name, family in FAMILIES.items():
            for seed in range(seeds):
                chance = Random(f"{name}-{share}-{seed}")
                shifts = (
                    _replacements(chance, moves // 3, family)
                    if family.is_replacement
                    else _moves(chance, moves, family)
                )
                yield Instance(
                    f"{name}, stream 1/{share}, {seed}", racks, tuple(shifts), PORT, PORT / share, family.uplink
                )


def _moves(chance: Random, count: int, family: Family) -> Iterator[Shift]:
    for number in range(count):
        before = chance.sample(range(1, BROKERS + 1), 3)
        if chance.random() < family.hot:
            leader = 1 + chance.randrange(BROKERS // 4)
            before = [leader, *(broker for broker in before if broker != leader)][:3]
        added = chance.choice([broker for broker in range(1, BROKERS + 1) if broker not in before])
        written = PORT * family.ingest * chance.random() * 2
        yield Shift(_key(number), tuple(before), (*before[:2], added), _size(chance, family), written)


def _replacements(chance: Random, count: int, family: Family) -> Iterator[Shift]:
    """Move all three replicas of each partition from one half of the brokers to the other."""
    half = BROKERS // 2
    for number in range(count):
        before = tuple(chance.sample(range(1, half + 1), 3))
        after = tuple(chance.sample(range(half + 1, BROKERS + 1), 3))
        yield Shift(_key(number), before, after, _size(chance, family))


def _size(chance: Random, family: Family) -> float:
    return MEDIAN_BYTES * chance.lognormvariate(0, family.sigma)


def _key(number: int) -> TopicPartition:
    return TopicPartition(f"topic-{number % TOPICS}", number // TOPICS)
