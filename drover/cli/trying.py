"""`drover alter --dry-run`: what a worker would refuse, and what the rest takes, by the log and the cluster now."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from drover.cli.altering import show_commands
from drover.cli.estimating import Estimate, estimate, print_estimate
from drover.cli.exits import ExitCode, Failure
from drover.cli.model_source import CONNECT_TIMEOUT_MS, Source, live_model, open_driver, state_of
from drover.cli.output import plural, say
from drover.cli.submitting import checked
from drover.decide.decision import Decision
from drover.decide.targets import refused_anywhere
from drover.decide.trial import partitions_to_see, trial
from drover.errors import ClusterError, ConfigurationError
from drover.events.commands import Alter
from drover.events.partitions import TopicPartition
from drover.events.refusals import Refusal
from drover.facts import Observation
from drover.planner.judgement import broken
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState

MOST_REFUSALS = 20
# The two lists of a partition that has just changed may differ.
LOOKS = 5


def try_plan(settings: Settings, commands: Sequence[Alter], output: str) -> None:
    """Show what would be sent and what it takes.

    Raises `Failure` for what a worker would refuse now, and with `GUARDED` for a plan that `drover plan check` would
    object to.
    """
    for command in commands:
        checked(command)
    refuse_form(commands, settings.log.topics.own)
    tried = try_now(settings, commands)
    found = tried.estimate
    show_commands(commands, output, {"estimate": None if found is None else found.document()})
    if found is not None and output == "table":
        print_estimate(found)
    tell(tried.decisions)
    if found is not None and (problems := broken(found.proposal.unmet)):
        raise Failure(f"the plan breaks {plural(len(problems), 'rule')}, named above", ExitCode.GUARDED)


def refuse_form(commands: Sequence[Alter], own_topics: frozenset[str]) -> None:
    """Raise `Failure` for what is wrong in any cluster."""
    targets = [target for command in commands for target in command.partitions]
    _refuse([refusal for target in targets if (refusal := refused_anywhere(target, own_topics)) is not None])


@dataclass(frozen=True, slots=True)
class Tried:
    """The decisions that a worker would make now, and the cost of what it would accept; None if that is unknown."""

    decisions: tuple[Decision, ...] = ()
    estimate: Estimate | None = None


def try_now(settings: Settings, commands: Sequence[Alter]) -> Tried:
    """Return what a worker would decide; nothing where the cluster cannot be asked, which is told."""
    try:
        return asyncio.run(_tried(settings, commands))
    except (ClusterError, ConfigurationError) as error:
        say(f"Only the form was checked, since the cluster could not be asked: {error}", err=True)
        return Tried()


def tell(decisions: Sequence[Decision]) -> None:
    """Say what would not be done, and raise `Failure` for what would be refused."""
    unchanged = sum(len(decision.unchanged) for decision in decisions)
    if unchanged:
        say(f"{plural(unchanged, 'partition')} would stay: what is asked for is there already.", err=True)
    for remark in dict.fromkeys(remark for decision in decisions for remark in decision.remarks):
        say(remark, err=True)
    _refuse([refusal for decision in decisions for refusal in decision.refusals])


async def _tried(settings: Settings, commands: Sequence[Alter]) -> Tried:
    cluster = commands[0].cluster
    state = await state_of(settings, cluster)
    seen = await _seen(settings, state, partitions_to_see(commands, state))
    decisions = trial(commands, state, seen, settings.log.topics.own, time.time_ns() // 1_000_000)
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
    return Tried(decisions, estimate(commands, accepted, state, model, settings.planning.disk_limit))


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
    what = plural(len(refused), "partition") if any(refusal.key for refusal in refused) else "this"
    raise Failure(f"a worker would refuse {what}:\n{lines}{more}")
