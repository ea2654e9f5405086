"""`drover alter --dry-run`: the copies of a plan, and the time that they take at least at its throttle."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from drover.cli.output import amount, duration, plural, say
from drover.cli.proposal_view import print_brokers
from drover.client.views.proposal_rows import changed_brokers, least_time_s
from drover.events.commands import Alter
from drover.events.partitions import TopicPartition
from drover.planner.assess import assess
from drover.planner.goals import Limits as PlanningLimits
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal
from drover.state.cluster import ClusterState

SHOWN_PROBLEMS = 20
Targets = Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a plan's accepted partitions. `throttle` is bytes per second per broker; None means no throttle."""

    partitions: int
    proposal: Proposal
    model: ClusterModel
    throttle: int | None

    @property
    def least_time_s(self) -> float | None:
        """The seconds that no schedule can beat; None without a throttle, or if nothing is copied."""
        return least_time_s(self.proposal, self.throttle)

    def document(self) -> dict[str, Any]:
        """Return everything for programs; fields may be added and never changed."""
        proposal = self.proposal
        return {
            "partitions": self.partitions,
            "copies": proposal.copies,
            "bytes": proposal.copied_bytes,
            "unknown_sizes": proposal.unknown_sizes,
            "leaders_moved": proposal.leaders_moved,
            "throttle_bytes_per_second": self.throttle,
            "least_time_s": self.least_time_s,
            "brokers": [asdict(figures) for figures in changed_brokers(proposal)],
            "unknown_disks": proposal.unknown_disks,
            "problems": [asdict(problem) for problem in proposal.unmet],
        }


def estimate(
    commands: Sequence[Alter], accepted: Targets, state: ClusterState, model: ClusterModel, disk_limit: float
) -> Estimate:
    """Estimate the accepted partitions of one plan, whose commands these are.

    `disk_limit` is the share of a disk that may be used at any moment.
    """
    existing = model.partition_by_name.keys()
    lists = {
        (key.topic, key.partition): after for key, after in accepted.items() if (key.topic, key.partition) in existing
    }
    proposal = assess(model, lists, PlanningLimits(disk_limit=disk_limit))
    throttle = commands[0].throttle_bytes_per_second or state.rate_of(commands[0].plan_name)
    return Estimate(len(lists), proposal, model, throttle)


def print_estimate(cost: Estimate) -> None:
    """Print the cost of a plan for people."""
    if not cost.partitions:
        return
    print_brokers(changed_brokers(cost.proposal), cost.model)
    for line in _lines(cost):
        say(line, err=True)


def _lines(cost: Estimate) -> Iterator[str]:
    proposal, least_s = cost.proposal, cost.least_time_s
    copies = plural(proposal.copies, "copy", "copies")
    yield (
        f"{plural(cost.partitions, 'partition')}: {copies} of {amount(proposal.copied_bytes)} together, "
        f"{proposal.leaders_moved:,} with another preferred leader afterwards."
    )
    if least_s is not None and cost.throttle is not None:
        yield f"At {amount(cost.throttle)}/s per broker the copies take at least {duration(least_s * 1000)}."
    elif proposal.copies:
        yield "With --throttle RATE it says how long the copies take at least."
    if proposal.unknown_sizes:
        yield f"{plural(proposal.unknown_sizes, 'partition')} of unknown size count as empty."
    for problem in proposal.unmet[:SHOWN_PROBLEMS]:
        yield f"Mind: {problem.text} ({problem.code.value})"
    if len(proposal.unmet) > SHOWN_PROBLEMS:
        yield f"... and {len(proposal.unmet) - SHOWN_PROBLEMS:,} more to mind: -o json prints all."
