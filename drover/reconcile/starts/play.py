"""Moves played through at a throttle, within the limits: how long they are likely to take."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.reconcile.starts.estimate import Course, copied, least_time_s
from drover.reconcile.starts.rack_traffic import uplinks_of
from drover.reconcile.starts.resources import Uplink
from drover.reconcile.starts.room import limit_of
from drover.state.ports import Port, Ports
from drover.state.scheduling import Limits
from drover.state.slot_share import WHOLE_SLOT, share_of

# More copies are not played through: it would take too long.
MOST_PLAYED = 2_000
# How many that wait are looked at for one that has room, whenever a copy ends.
WINDOW = 200


def expected_time_s(
    courses: Sequence[Course], bytes_per_second: int, limits: Limits, racks: Mapping[int, str | None]
) -> float | None:
    """Play the moves through at this rate per broker, within the limits; None if they are too many.

    `racks` are those of the brokers, for `max_moves_per_rack`. Copies that share a broker share its rate, and a step
    begins when there is room: the busiest port's first, then the largest. What Kafka and Drover need besides copying is
    not in it.
    """
    todo = [course for course in courses if course.copy_bytes and course.copies]
    if sum(copied(step) for course in todo for step in course.copies) > MOST_PLAYED:
        return None
    played_s = _Play(todo, bytes_per_second, limits, racks).run()
    # A sum of many floats may be a digit below what no schedule beats.
    return max(played_s, least_time_s(todo, bytes_per_second, limits))


@dataclass(eq=False, slots=True)
class _Running:
    """A partition under way: its step, and the bytes that are left of each copy, by the way in."""

    course: Course
    step: int = 0
    left: dict[Port, float] = field(default_factory=dict)
    source: Port | None = None


class _Play:
    """A schedule in the making: what runs, what waits, and the load of each port."""

    def __init__(
        self, courses: Sequence[Course], bytes_per_second: int, limits: Limits, racks: Mapping[int, str | None]
    ) -> None:
        self._rate, self._limits = bytes_per_second, limits
        self._racks = racks if limits.budgets.max_moves_per_rack is not None else {}
        self._waiting = _ranked(courses)
        self._running: list[_Running] = []
        self._loads: Counter[Port] = Counter()
        # What they take of the slots of each port and of each rack's uplink, in sixteenths.
        self._slots: Counter[Port | Uplink] = Counter()

    def run(self) -> float:
        """Let copies end one after the other until none is left; returns the seconds."""
        elapsed_s = 0.0
        self._start()
        while self._running:
            rates = [(one, port, self._rate_of(one, port)) for one in self._running for port in one.left]
            spent_s = min(one.left[port] / rate for one, port, rate in rates)
            elapsed_s += spent_s
            for one, port, rate in rates:
                one.left[port] -= rate * spent_s
            for one in tuple(self._running):
                self._end_copies(one)
            self._start()
        return elapsed_s

    def _rate_of(self, one: _Running, port: Port) -> float:
        sharing = self._loads[port] if one.source is None else max(self._loads[port], self._loads[one.source])
        return self._rate / sharing

    def _end_copies(self, one: _Running) -> None:
        for port in [port for port, left in one.left.items() if left < 1]:
            del one.left[port]
            ended = (port,) if one.source is None else (one.source, port)
            self._loads.subtract(ended)
            for shared in self._shared(ended):
                self._slots[shared] -= share_of(one.course.copy_bytes)
        if one.left:
            return
        one.step += 1
        if one.step == len(one.course.copies):
            self._running.remove(one)
        else:
            # The next step of what is in flight waits for nobody.
            self._begin(one)

    def _begin(self, one: _Running) -> None:
        step = one.course.copies[one.step]
        self._loads.update(step)
        for shared in self._shared(step):
            self._slots[shared] += share_of(one.course.copy_bytes)
        one.left = {port: float(one.course.copy_bytes or 0) for port in step if port.way == "in"}
        one.source = next((port for port in step if port.way == "out"), None)

    def _start(self) -> None:
        """Begin what has room, in the order of the ranks."""
        free = max(0, self._limits.max_partitions_in_flight - len(self._running))
        begun: set[TopicPartition] = set()
        for course in self._waiting[:WINDOW]:
            if len(begun) < free and self._has_room(course):
                one = _Running(course)
                self._begin(one)
                self._running.append(one)
                begun.add(course.key)
        if begun:
            self._waiting = [course for course in self._waiting if course.key not in begun]

    def _has_room(self, course: Course) -> bool:
        step, share = course.copies[0], share_of(course.copy_bytes)
        most = self._limits.budgets.max_replica_copies_in_flight
        running = sum(len(one.left) for one in self._running)
        if running and most is not None and running + copied(step) > most:
            return False
        needed = Counter(self._shared(step))
        return not any(
            self._slots[shared] and self._slots[shared] + count * share > self._limit(shared) * WHOLE_SLOT
            for shared, count in needed.items()
        )

    def _shared(self, step: Ports) -> tuple[Port | Uplink, ...]:
        """Return everything whose slots a step takes: its ports, and the uplinks where they have a limit."""
        if not self._racks:
            return step
        leader = next((port.broker for port in step if port.way == "out"), None)
        return *step, *uplinks_of((port.broker for port in step if port.way == "in"), leader, self._racks)

    def _limit(self, shared: Port | Uplink) -> int:
        if isinstance(shared, Port):
            return limit_of(self._limits, shared)
        # There are uplinks only where they have a limit.
        return self._limits.budgets.max_moves_per_rack or 0


def _ranked(courses: Sequence[Course]) -> list[Course]:
    backlog: Counter[Port] = Counter()
    for course in courses:
        for port in (port for step in course.copies for port in step):
            backlog[port] += course.copy_bytes or 0

    def rank(course: Course) -> tuple[int, int, tuple[str, int]]:
        busiest = max(backlog[port] for step in course.copies for port in step)
        return -busiest, -(course.copy_bytes or 0), course.key

    return sorted(courses, key=rank)
