"""`drover alter --dry-run`: the copies and steps of a plan, and how long they take at its throttle."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from drover.cli.output import amount, duration, plural, say
from drover.cli.proposal_view import print_brokers
from drover.client.views.proposal_rows import changed_brokers
from drover.events.commands import Alter
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.facts import Observation
from drover.planner.assess import assess
from drover.planner.goals import Limits as PlanningLimits
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal
from drover.reconcile.starts.estimate import Accepted, Around, Course, course_as_accepted, least_time_s
from drover.reconcile.starts.play import expected_time_s
from drover.state.cluster import ClusterState
from drover.state.scheduling import Limits

SHOWN_PROBLEMS = 20
Targets = Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a plan's accepted partitions. `throttle` is bytes per second per broker; None means no throttle.

    The times are None without a throttle; `expected_s` also where the copies are too many to be played through.
    """

    proposal: Proposal
    model: ClusterModel
    stepping: Stepping
    courses: tuple[Course, ...]
    throttle: int | None
    least_s: float | None
    expected_s: float | None

    @property
    def steps(self) -> int:
        """Count the steps of all partitions."""
        return sum(course.steps for course in self.courses)

    def document(self) -> dict[str, Any]:
        """Return everything for programs; fields may be added and never changed."""
        proposal = self.proposal
        return {
            "partitions": len(self.courses),
            "stepping": self.stepping,
            "steps": self.steps,
            "copies": proposal.copies,
            "bytes": proposal.copied_bytes,
            "unknown_sizes": proposal.unknown_sizes,
            "leaders_moved": proposal.leaders_moved,
            "throttle_bytes_per_second": self.throttle,
            "least_time_s": self.least_s,
            "expected_time_s": self.expected_s,
            "brokers": [asdict(figures) for figures in changed_brokers(proposal)],
            "unknown_disks": proposal.unknown_disks,
            "problems": [asdict(one) for one in proposal.unmet],
            "ways": [
                {
                    "topic": course.key.topic,
                    "partition": course.key.partition,
                    "lists": course.lists,
                    "copy_bytes": course.copy_bytes,
                }
                for course in self.courses
            ],
        }


@dataclass(frozen=True, slots=True)
class Known:
    """The inputs of an estimate: the log's state, the observation behind the decisions, the cluster, and its limits.

    `disk_limit` is the share of a disk that may be used at any moment.
    """

    state: ClusterState
    seen: Observation
    model: ClusterModel
    limits: Limits
    disk_limit: float


def estimate(commands: Sequence[Alter], accepted: Targets, known: Known) -> Estimate:
    """Estimate the accepted partitions of one plan, whose commands these are."""
    command, state, limits = commands[0], known.state, known.limits
    there = known.model.partition_by_name.keys()
    targets = {key: after for key, after in accepted.items() if (key.topic, key.partition) in there}
    lists = {(key.topic, key.partition): after for key, after in targets.items()}
    proposal = assess(known.model, lists, PlanningLimits(disk_limit=known.disk_limit))
    stepping = command.stepping or state.steppings.get(command.plan_name, limits.stepping)
    seen = known.seen
    around = Around(state, limits, frozenset(seen.live_brokers), seen.min_isr, seen.racks)
    moves = (_accepted(key, after, known) for key, after in targets.items())
    courses = tuple(course_as_accepted(move, stepping, around) for move in moves)
    throttle = command.throttle_bytes_per_second or state.rate_of(command.plan_name)
    least_s = expected_s = None
    if throttle is not None and proposal.copies:
        least_s = least_time_s(courses, throttle, limits)
        expected_s = expected_time_s(courses, throttle, limits, seen.racks)
    return Estimate(proposal, known.model, stepping, courses, throttle, least_s, expected_s)


def _accepted(key: TopicPartition, after: tuple[int, ...], known: Known) -> Accepted:
    partition = known.model.partition_by_name[key.topic, key.partition]
    return Accepted(key, partition.replicas, after, partition.leader, partition.size_bytes)


def print_estimate(found: Estimate) -> None:
    """Print the cost of a plan for people."""
    proposal = found.proposal
    if not found.courses:
        return
    print_brokers(changed_brokers(proposal), found.model)
    for line in _lines(found):
        say(line, err=True)


def _lines(found: Estimate) -> Iterator[str]:
    proposal = found.proposal
    copies = plural(proposal.copies, "copy", "copies")
    yield (
        f"{plural(len(found.courses), 'partition')} in {plural(found.steps, 'step')} ({found.stepping}): "
        f"{copies} of {amount(proposal.copied_bytes)} together, "
        f"{proposal.leaders_moved:,} with another preferred leader afterwards."
    )
    if found.least_s is not None and found.throttle is not None:
        expected = (
            "" if found.expected_s is None else f", about {duration(found.expected_s * 1000)} by the limits in force"
        )
        rate = amount(found.throttle)
        yield f"At {rate}/s per broker the copies take at least {duration(found.least_s * 1000)}{expected}."
    elif proposal.copies:
        yield "Without a throttle nobody knows how long that takes."
    if proposal.unknown_sizes:
        yield f"{plural(proposal.unknown_sizes, 'partition')} of unknown size count as empty."
    for one in proposal.unmet[:SHOWN_PROBLEMS]:
        yield f"Mind: {one.text} ({one.code.value})"
    if len(proposal.unmet) > SHOWN_PROBLEMS:
        yield f"... and {len(proposal.unmet) - SHOWN_PROBLEMS:,} more to mind: -o json prints all."
