"""The figures of a plan in the making: sums of what is accepted, and each partition's way while they are few."""

from collections import Counter
from dataclasses import dataclass, field

from drover.decide.replica_sets import adding
from drover.events.plans import BrokerBytes, PlanEstimate, Stepping
from drover.reconcile.starts.estimate import Accepted, Around, copied, course_as_accepted, least_time_s
from drover.reconcile.starts.play import expected_time_s
from drover.state.estimates import busiest_ms
from drover.state.ports import Port, ports_of

# Beyond so many partitions only sums are kept, and beyond so many copies none is played through: the owner of a shard
# has other things to do. That takes it 25 ms, and about 30 ms.
MOST_FOLLOWED, MOST_PLAYED = 500, 100


@dataclass(eq=False, slots=True)
class PlanFigures:
    """What one plan takes, as far as its partitions were added; a copy of unknown size counts as empty."""

    partitions: int = 0
    copies: int = 0
    copied_bytes: int = 0
    leaders_moved: int = 0
    unknown_sizes: int = 0
    known_sizes: int = 0
    _loads: Counter[Port] = field(default_factory=Counter)
    _moves: list[Accepted] = field(default_factory=list)

    def add(self, move: Accepted) -> None:
        """Add one partition."""
        added, size = adding(move.before, move.after), move.copy_bytes or 0
        self.partitions += 1
        self.copies += len(added)
        self.copied_bytes += size * len(added)
        self.leaders_moved += move.before[0] != move.after[0]
        self.unknown_sizes += bool(added) and move.copy_bytes is None
        self.known_sizes += bool(added) and move.copy_bytes is not None
        for port in ports_of(added, move.leader):
            self._loads[port] += size
        if self.partitions <= MOST_FOLLOWED:
            self._moves.append(move)
        else:
            self._moves.clear()

    def estimate(self, stepping: Stepping, bytes_per_second: int | None, around: Around) -> PlanEstimate:
        """Return the figures at this throttle; steps and the likely time are unknown where the partitions are many."""
        is_followed = self.partitions <= MOST_FOLLOWED
        courses = [course_as_accepted(move, stepping, around) for move in self._moves]
        brokers = tuple(
            BrokerBytes(broker, self._loads[Port(broker, "in")], self._loads[Port(broker, "out")])
            for broker in sorted({port.broker for port in self._loads})
        )
        least_ms = expected_ms = None
        if bytes_per_second is not None:
            least_ms = busiest_ms(brokers, bytes_per_second)
            if is_followed:
                least_ms = max(least_ms, round(least_time_s(courses, bytes_per_second, around.limits) * 1000))
            if is_followed and sum(copied(step) for course in courses for step in course.copies) <= MOST_PLAYED:
                expected_s = expected_time_s(courses, bytes_per_second, around.limits, around.racks)
                expected_ms = None if expected_s is None else round(expected_s * 1000)
        return PlanEstimate(
            partitions=self.partitions,
            copies=self.copies,
            copied_bytes=self.copied_bytes,
            leaders_moved=self.leaders_moved,
            steps=sum(course.steps for course in courses) if is_followed else None,
            unknown_sizes=self.unknown_sizes,
            throttle_bytes_per_second=bytes_per_second,
            least_ms=least_ms,
            expected_ms=expected_ms,
            brokers=brokers,
        )
