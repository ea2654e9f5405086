"""The way of a partition, step by step, and the time that no schedule of many can beat at a throttle."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from drover.decide.leader_order import deprioritise
from drover.decide.replica_sets import adding
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.reconcile.moves.stepping import Situation, next_list
from drover.state.cluster import ClusterState
from drover.state.ports import Port, Ports, ports_of
from drover.state.scheduling import Limits


@dataclass(frozen=True, slots=True)
class Course:
    """The way of one partition: the lists that it goes through, from the present one to its target.

    `leader` is the present one, `copy_bytes` the size of one copy, None if unknown.
    """

    key: TopicPartition
    lists: tuple[tuple[int, ...], ...]
    leader: int
    copy_bytes: int | None

    @property
    def steps(self) -> int:
        """Count the steps: alter calls that Kafka is sent."""
        return len(self.lists) - 1

    @property
    def copies(self) -> tuple[Ports, ...]:
        """Return, for each step that copies, the ports that it weighs on; the leader leads until it is dropped."""
        found = []
        leader = self.leader
        for before, after in pairwise(self.lists):
            leader = leader if leader in before else before[0]
            added = adding(before, after)
            if added:
                found.append(ports_of(added, leader))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A partition as a plan takes it on: its list and the target, its leader, and the size of one copy, if known."""

    key: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    leader: int | None
    copy_bytes: int | None


@dataclass(frozen=True, slots=True)
class Around:
    """The cluster that a plan runs on: its state and limits, its live brokers, and what the brokers say.

    `min_isr` is each topic's min.insync.replicas, `racks` each broker's rack. A missing topic counts as 1.
    """

    state: ClusterState
    limits: Limits
    live: frozenset[int]
    min_isr: Mapping[str, int]
    racks: Mapping[int, str | None]


def course_as_accepted(move: Accepted, stepping: Stepping, around: Around) -> Course:
    """Follow the steps of a partition from its list when it was accepted, as if all of that were in sync.

    What lags is repaired first, which takes no step more.
    """
    topic = move.key.topic
    listed = around.state.listed_for(topic)
    now = Situation(
        current=move.before,
        target=deprioritise(move.after, listed),
        original=move.before,
        live=around.live,
        isr=move.before,
        leader=move.leader,
        min_isr=around.min_isr.get(topic, 1),
        max_replicas_per_step=around.limits.max_replicas_per_step,
        listed=listed,
    )
    return course_of(move.key, now, stepping, move.copy_bytes)


def course_of(key: TopicPartition, now: Situation, stepping: Stepping, copy_bytes: int | None) -> Course:
    """Follow the steps of a partition from how it is now, as if each copy succeeded (R435-4, R435-7)."""
    lists = [now.current]
    leader = now.current[0] if now.leader is None else now.leader
    while lists[-1] != now.target and len(lists) <= 2 * len(now.target) + len(now.current):
        current = lists[-1]
        leads = leader if leader in current else current[0]
        ahead = next_list(stepping, replace(now, current=current, isr=current, leader=leads))
        if ahead is None or ahead == current:
            # The rest of the target is dead: it waits there.
            break
        lists.append(ahead)
    return Course(key, tuple(lists), leader, copy_bytes)


def least_time_s(courses: Collection[Course], bytes_per_second: int, limits: Limits) -> float:
    """Return the seconds that no schedule can beat at this rate per broker; copies of unknown size count as none.

    It is the busiest way into or out of a broker, the longest chain of steps of one partition, or all bytes together if
    budgets let few copies run at a time.
    """
    loads: Counter[Port] = Counter()
    total = chain = most_at_once = 0
    for course in courses:
        size = course.copy_bytes or 0
        for step in course.copies:
            loads.update(dict.fromkeys(step, 0))
            for port in step:
                loads[port] += size
        counts = [copied(step) for step in course.copies]
        total += size * sum(counts)
        chain = max(chain, size * len(counts))
        most_at_once = max(most_at_once, *counts, 0)
    at_once = limits.max_partitions_in_flight * max(1, most_at_once)
    if limits.budgets.max_replica_copies_in_flight is not None:
        at_once = min(at_once, max(most_at_once, limits.budgets.max_replica_copies_in_flight))
    return max(*loads.values(), chain, total / at_once, 0) / bytes_per_second if loads else 0.0


def copied(step: Ports) -> int:
    """Count the copies of a step."""
    return sum(port.way == "in" for port in step)
