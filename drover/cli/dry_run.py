"""`drover alter --dry-run` and `--plan-hash`: predict refusals and cost, and detect that the cluster has changed."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from drover.cli.alter import show_commands
from drover.cli.exits import ExitCode, Failure
from drover.cli.invocation import Invocation
from drover.cli.model import CONNECT_TIMEOUT_MS, Source, live_model, open_driver, read_model, state_of
from drover.cli.output import plural, say
from drover.cli.plan_file import PlanFile, lists_of
from drover.cli.proposal import cost_line, note_lines, print_brokers
from drover.cli.submission import checked
from drover.client.views.proposal_rows import changed_brokers, least_time_s
from drover.decide.decision import Decision, OwnTopics
from drover.decide.targets import refused_anywhere
from drover.decide.trial import partitions_to_see, trial
from drover.errors import ClusterError, ConfigurationError
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.events.refusals import Refusal
from drover.facts import Observation
from drover.planner.assess import assess, basis_of, changes, digest_of
from drover.planner.goals import Limits as PlanningLimits
from drover.planner.judgement import broken
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal
from drover.reconcile.gates import Waiting, plan_waits
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState

SHOWN_PROBLEMS = 20
Targets = Mapping[TopicPartition, tuple[int, ...]]
MOST_REFUSALS = 20
# An observation leaves out partitions that change while it is made; another one usually has them.
LOOKS = 5


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a plan's accepted partitions. `throttle` is bytes per second per broker; None means no throttle."""

    partitions: int
    proposal: Proposal
    model: ClusterModel
    throttle: int | None

    @property
    def least_time_s(self) -> float | None:
        """The lower bound of any schedule, in seconds; None without a throttle, or if nothing is copied."""
        return least_time_s(self.proposal, self.throttle)

    def document(self) -> dict[str, Any]:
        """Return the estimate for programs; fields may be added and never changed."""
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
    commands: Sequence[Alter], accepted: Targets, state: ClusterState, model: ClusterModel, limits: PlanningLimits
) -> Estimate:
    """Estimate the cost of the accepted partitions of one plan; `commands` are all commands of the plan."""
    existing = model.partition_by_name.keys()
    lists = {
        (key.topic, key.partition): after for key, after in accepted.items() if (key.topic, key.partition) in existing
    }
    proposal = assess(model, lists, limits)
    throttle = commands[0].throttle_bytes_per_second or state.rate_of(commands[0].plan_name)
    return Estimate(len(lists), proposal, model, throttle)


def print_estimate(cost: Estimate) -> None:
    """Print the cost of a plan for people."""
    if not cost.partitions:
        return
    print_brokers(changed_brokers(cost.proposal), cost.model)
    for line in _estimate_lines(cost):
        say(line, err=True)


def _estimate_lines(cost: Estimate) -> Iterator[str]:
    proposal = cost.proposal
    yield cost_line(proposal, cost.partitions)
    yield from note_lines(proposal, cost.throttle)
    for problem in proposal.unmet[:SHOWN_PROBLEMS]:
        yield f"Problem: {problem.text} ({problem.code.value})"
    if len(proposal.unmet) > SHOWN_PROBLEMS:
        yield f"... and {len(proposal.unmet) - SHOWN_PROBLEMS:,} more problems: -o json prints all."


def try_plan(settings: Settings, commands: Sequence[Alter], output: str) -> None:
    """Show the commands and their cost.

    Raises `Failure` if a worker would refuse any of it now, and with `GUARDED` if `drover plan check` objects to the
    plan.
    """
    for command in commands:
        checked(command)
    refuse_form(commands, _own_topics(settings))
    tried = try_now(settings, commands)
    estimate = tried.estimate
    show_commands(commands, output, {"estimate": None if estimate is None else estimate.document()})
    if estimate is not None and output == "table":
        print_estimate(estimate)
    tell(tried.decisions)
    if tried.waiting is not None:
        say(f"Its moves would wait now: {tried.waiting}", err=True)
    if estimate is not None and (problems := broken(estimate.proposal.unmet)):
        raise Failure(f"the plan breaks {plural(len(problems), 'rule')}, named above", ExitCode.GUARDED)


def _own_topics(settings: Settings) -> OwnTopics:
    return OwnTopics(settings.log.topics.own, settings.worker.allow_drover_topics)


def refuse_form(commands: Sequence[Alter], own_topics: OwnTopics) -> None:
    """Raise `Failure` for targets that are wrong in any cluster."""
    targets = [target for command in commands for target in command.partitions]
    _refuse([refusal for target in targets if (refusal := refused_anywhere(target, own_topics)) is not None])


@dataclass(frozen=True, slots=True)
class Tried:
    """The decisions that a worker would make now, and the cost of what it would accept; None if that is unknown.

    `waiting` is what would keep its moves from beginning now.
    """

    decisions: tuple[Decision, ...] = ()
    estimate: Estimate | None = None
    waiting: Waiting | None = None


def try_now(settings: Settings, commands: Sequence[Alter]) -> Tried:
    """Return what a worker would decide; if the cluster does not answer, print a warning and return no decisions."""
    try:
        return asyncio.run(_tried(settings, commands))
    except (ClusterError, ConfigurationError) as error:
        say(f"Only the format was checked, because the cluster does not answer: {error}", err=True)
        return Tried()


def tell(decisions: Sequence[Decision]) -> None:
    """Print which partitions would stay, and raise `Failure` if any would be refused."""
    unchanged = sum(len(decision.unchanged) for decision in decisions)
    if unchanged:
        say(f"{plural(unchanged, 'partition')} would stay: the requested replicas are already in place.", err=True)
    for remark in dict.fromkeys(remark for decision in decisions for remark in decision.remarks):
        say(remark, err=True)
    _refuse([refusal for decision in decisions for refusal in decision.refusals])


async def _tried(settings: Settings, commands: Sequence[Alter]) -> Tried:
    cluster = commands[0].cluster
    state = await state_of(settings, cluster)
    seen = await _seen(settings, state, partitions_to_see(commands, state))
    decisions = trial(commands, state, seen, _own_topics(settings), time.time_ns() // 1_000_000)
    taken = {key for decision in decisions for key in decision.accepted}
    accepted = {
        target.key: target.replicas
        for command in commands
        for target in command.partitions
        if target.key in taken and target.replicas is not None
    }
    if not accepted:
        return Tried(decisions)
    model = await live_model(settings, state, Source())
    cost = estimate(commands, accepted, state, model, settings.planning.planner_limits)
    # A cluster that has never been used answers the worker before it decides.
    waiting = None if state.kafka_cluster_id is None else plan_waits(state, commands[0].plan_name)
    return Tried(decisions, cost, waiting)


async def _seen(settings: Settings, state: ClusterState, wanted: frozenset[TopicPartition]) -> Observation:
    """Observe all of these partitions. Raises `ClusterError`."""
    async with open_driver(settings, state.name, CONNECT_TIMEOUT_MS) as driver:
        for _ in range(LOOKS):
            seen = await driver.observe(wanted, with_min_isr=True)
            if wanted <= seen.partitions.keys():
                return seen
    missing = next(iter(wanted - seen.partitions.keys()))
    raise ClusterError(f"{missing} is changing: try again")


def _refuse(refused: Sequence[Refusal]) -> None:
    if not refused:
        return
    lines = "\n".join(f"  {refusal.detail}" for refusal in refused[:MOST_REFUSALS])
    more = f"\n  and {len(refused) - MOST_REFUSALS:,} more" if len(refused) > MOST_REFUSALS else ""
    refused_part = plural(len(refused), "partition") if any(refusal.key for refusal in refused) else "this"
    raise Failure(f"a worker would refuse {refused_part}:\n{lines}{more}")


def hold_to_hash(invocation: Invocation, plan: PlanFile, name: str, wanted: str) -> tuple[PartitionTarget, ...]:
    """Compare the cluster with the plan's hash and return the plan's partitions, each asserting its current list.

    The assertion covers the time from here on: the worker that decides the command refuses a partition whose list has
    changed. Raises `Failure` with `GUARDED`, which says what has changed, if the hash differs.
    """
    lists = lists_of(plan, name)
    model = read_model(invocation, Source(), with_log=False)
    present = basis_of(model, lists)
    if digest_of(present, lists) == wanted:
        return tuple(_asserted(target, model) for target in plan.targets)
    raise Failure(_difference(plan, name, wanted, model), ExitCode.GUARDED)


def _asserted(target: PartitionTarget, model: ClusterModel) -> PartitionTarget:
    partition = model.partition_by_name.get((target.topic, target.partition))
    if partition is None:
        return target
    return PartitionTarget(
        topic=target.topic, partition=target.partition, replicas=target.replicas, original_replicas=partition.replicas
    )


def _difference(plan: PlanFile, name: str, wanted: str, model: ClusterModel) -> str:
    lists = lists_of(plan, name)
    again = "make a new plan, or judge this one with `drover plan check`"
    if plan.proposal is None:
        return (
            f"the hash of {name} in this cluster is not {wanted}: the file or the cluster has changed (the file does "
            f"not record the cluster that it was made for); nothing was submitted: {again}"
        )
    made_for = digest_of(plan.proposal.basis, lists)
    if made_for != wanted:
        return f"{name} is not the plan {wanted}: its hash is {made_for}; nothing was submitted"
    differences = "".join(f"\n  {change}" for change in changes(plan.proposal.basis, basis_of(model, lists)))
    return f"the cluster has changed since {name} was made; nothing was submitted: {again}{differences}"
