"""The steps that all `drover plan` commands share: read the cluster, propose, print, write to a file, submit."""

import shlex
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from drover.cli.altering import alter_options, check_rate_of, make_commands, submit
from drover.cli.exits import ExitCode, Failure
from drover.cli.files import write_text
from drover.cli.invocation import Invocation
from drover.cli.model_source import (
    exclude_brokers_option,
    read_model,
    source_of,
    source_options,
    topics_matching,
    topics_named,
)
from drover.cli.output import print_document, say
from drover.cli.parameters import Duration, NamedPath, Names, Share
from drover.cli.plan_file import proposal_json
from drover.cli.plan_formats import SavedProposal
from drover.cli.proposal_view import print_proposal
from drover.cli.submitting import connect, make_request, write_options_of_trial
from drover.client.views.proposal_rows import (
    Request,
    blocking,
    directory_remarks,
    proposal_document,
    unmet_lines,
)
from drover.events.commands import PartitionTarget
from drover.planner.goals import DEFAULT_LIMITS, Goal, Limits, SetReplicationFactor
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal
from drover.planner.propose import propose
from drover.planner.solving import filled_by, leaving_of

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def judging_options(command: Decorated) -> Decorated:
    """Add the options that say what a plan is measured by, and where it goes."""
    for option in (
        click.option(
            "--to",
            type=NamedPath(dir_okay=False, allow_dash=True),
            metavar="FILE",
            help="Write the plan for `drover alter`, in the format of kafka-reassign-partitions.",
        ),
        click.option(
            "--disk-limit",
            type=Share(),
            metavar="PERCENT",
            help="How full a disk may be at any moment.  [default: the setting planning.disk_limit, else 85%]",
        ),
    ):
        command = option(command)
    return exclude_brokers_option(source_options(command))


def planning_options(command: Decorated) -> Decorated:
    """Add the options that every goal takes."""
    for option in (
        click.option("--partial", is_flag=True, help="With --apply: submit also what does not meet everything."),
        click.option("--apply", "apply_", is_flag=True, help="Submit the plan; needs --reason."),
        click.option(
            "--time-limit",
            type=Duration(),
            metavar="DURATION",
            help="Print the best plan found in this time; Ctrl-C does so too.  [default: until it is done]",
        ),
        click.option("--include-internal", is_flag=True, help="Move the topics of Kafka and of Drover itself too."),
        click.option(
            "--exclude-topics",
            type=Names(),
            multiple=True,
            metavar="NAME,NAME",
            help="Topics that stay where they are; * and ? stand for anything.",
        ),
    ):
        command = option(command)
    return write_options_of_trial(alter_options(judging_options(command)))


def plan_goal(invocation: Invocation, asked: str, goal: Goal, options: dict[str, Any]) -> None:
    """Propose what reaches a goal, print it, and write or submit it if that was asked for.

    Ends with `USAGE` for a goal that makes no sense in this cluster, and with `GUARDED` for one that cannot be met.
    """
    if options["apply_"]:
        _check_apply(options)
    model = read_model(invocation, source_of(options), with_log=True)
    limits = Limits(
        disk_limit=disk_limit_of(invocation, options),
        balance_ingest=any(one.ingest_bytes_per_s is not None for one in model.partitions),
        include_internal=options["include_internal"],
        exclude_topics=topics_matching([one for given in options["exclude_topics"] for one in given], model),
    )
    named: tuple[str, ...] = ()
    if isinstance(goal, SetReplicationFactor):
        named, goal = goal.topics, replace(goal, topics=topics_named(goal.topics, model))
    with stopping(options["time_limit"]) as stop:
        proposal = propose(model, goal, limits, stop=stop)
    request = Request(
        asked=asked,
        cluster=_cluster(invocation, options),
        throttle_bytes_per_second=options["throttle"],
        excluded_topics=frozenset(limits.exclude_topics),
        leaving=leaving_of(model, goal),
        filling=filled_by(goal),
        topics=frozenset(named),
    )
    targets = targets_of(proposal)
    if options["to"] is not None and not proposal.refused:
        save_proposal(options["to"], request, proposal, targets, model)
    if not options["apply_"]:
        show(proposal, request, model, options)
        raise click.exceptions.Exit(code_of(proposal, request, model))
    _apply(invocation, proposal, request, model, options)


def disk_limit_of(invocation: Invocation, options: dict[str, Any]) -> float:
    """Return the share of a disk that may be used: as typed, else as set; a file needs no settings."""
    if options["disk_limit"] is not None:
        return float(options["disk_limit"])
    return DEFAULT_LIMITS.disk_limit if options["model"] is not None else invocation.settings().planning.disk_limit


def targets_of(proposal: Proposal) -> tuple[PartitionTarget, ...]:
    """Return the new lists, each with the present one asserted, so that nothing else is changed if it has changed."""
    return tuple(
        PartitionTarget(topic=move.topic, partition=move.partition, replicas=move.after, original_replicas=move.before)
        for move in proposal.moves
    )


def save_proposal(
    file: Path, request: Request, proposal: Proposal, targets: Sequence[PartitionTarget], model: ClusterModel
) -> None:
    """Write a proposal to a file, and say how it is submitted; an empty one is not worth a file."""
    if not targets:
        say(f"There is no plan to write to {file}.", err=True)
        return
    saved = SavedProposal(asked=request.asked, hash=proposal.digest, basis=proposal.basis, **request.goal)
    write_text(file, proposal_json(targets, saved), "plan")
    internal = any(model.partition_by_name[one.topic, one.partition].internal for one in targets)
    also = " --allow-drover-topics" if internal else ""
    say(
        f"Wrote the plan to {file}. Submit it with: "
        f"drover alter {shlex.quote(str(file))} --plan-hash {proposal.digest}{also} --reason WHY",
        err=True,
    )


def show(proposal: Proposal, request: Request, model: ClusterModel, options: dict[str, Any]) -> None:
    """Print a proposal; if the plan itself goes to standard output, only remarks, on standard error."""
    output = options["output"]
    if str(options["to"]) == "-":
        remarks = (remark.text for remark in directory_remarks(proposal, model))
        for line in (*unmet_lines(proposal, request, model), *remarks):
            say(line, err=True)
    elif output == "table":
        print_proposal(proposal, request, model)
    else:
        document = proposal_document(proposal, request, model)
        print_document(document, document["moves"], output)


def code_of(proposal: Proposal, request: Request, model: ClusterModel) -> ExitCode:
    """Return the exit code of a proposal that is only shown."""
    if proposal.refused:
        return ExitCode.USAGE
    return ExitCode.GUARDED if blocking(proposal, request, model) else ExitCode.DONE


def _check_apply(options: dict[str, Any]) -> None:
    if options["model"] is not None:
        raise click.UsageError("--apply submits to a live cluster and --model is a file: use --to, then drover alter")
    if str(options["to"]) == "-":
        raise click.UsageError("--to - prints the plan for somebody else to submit, and --apply submits it: choose one")
    if not options["reason"]:
        raise click.UsageError("--apply needs --reason: it is kept in the log for ever")
    check_rate_of(options)


def _apply(
    invocation: Invocation, proposal: Proposal, request: Request, model: ClusterModel, options: dict[str, Any]
) -> None:
    blocked = bool(blocking(proposal, request, model))
    targets = targets_of(proposal)
    if not targets or proposal.refused or (blocked and not options["partial"]):
        show(proposal, request, model, options)
        if blocked and targets:
            raise Failure(
                "nothing was submitted, since something is not met: --partial submits the rest", ExitCode.GUARDED
            )
        raise click.exceptions.Exit(code_of(proposal, request, model))
    connection, cluster = connect(invocation)
    sent = make_request(invocation, "plan", cluster, options)
    internal = options["include_internal"]
    commands = make_commands(sent, targets, options, allow_drover_topics=internal, **request.goal)
    told: dict[str, Any] = {}
    if options["output"] == "table":
        print_proposal(proposal, request, model)
    else:
        told["proposal"] = proposal_document(proposal, request, model)
    submit(connection, commands, sent, follow=options["follow"], told=told)


def _cluster(invocation: Invocation, options: dict[str, Any]) -> str | None:
    return None if options["model"] is not None else invocation.cluster_of(invocation.settings())


@dataclass(slots=True)
class Stop:
    """Whether the planner shall end with what it has: when the time is over, or at Ctrl-C."""

    time_limit_s: float | None
    began_s: float = field(default_factory=time.monotonic)
    interrupted: bool = False

    def __call__(self) -> bool:
        """Tell it."""
        return self.interrupted or (
            self.time_limit_s is not None and time.monotonic() - self.began_s >= self.time_limit_s
        )


@contextmanager
def stopping(time_limit_s: float | None) -> Iterator[Stop]:
    """Let the first Ctrl-C end the planning with the best plan so far; a second one ends the command."""
    stop = Stop(time_limit_s)
    before = signal.getsignal(signal.SIGINT)

    def interrupt(_number: int, _frame: object) -> None:
        stop.interrupted = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
