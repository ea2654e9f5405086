"""`drover plan`: propose the moves that reach a goal; nothing is done without --apply."""

import shlex
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from drover.cli.alter import alter_options, check_rate_of, make_commands, submit
from drover.cli.exits import ExitCode, Failure
from drover.cli.invocation import Invocation, all_options, common_options, pass_invocation
from drover.cli.model import (
    exclude_brokers_option,
    read_model,
    source_of,
    source_options,
    topics_matching,
    topics_named,
)
from drover.cli.output import output_option, print_document, say, write_text
from drover.cli.parameters import DURATION, NAMES, RATE, SHARE, SIZE, NamedPath, brokers_argument
from drover.cli.plan_file import SavedProposal, lists_of, name_of, plan_file_type, proposal_json, read_plans
from drover.cli.proposal import print_proposal
from drover.cli.submission import connect, make_request, write_options_of_trial
from drover.client.views.proposal_rows import (
    Request,
    blocking,
    directory_remarks,
    proposal_document,
    unmet_lines,
)
from drover.events.commands import PartitionTarget
from drover.planner import goals
from drover.planner.assess import assess
from drover.planner.goals import DEFAULT_LIMITS, Goal, Limits, SetReplicationFactor
from drover.planner.judgement import broken, emptied
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal
from drover.planner.propose import propose
from drover.planner.solving import filled_by, leaving_of

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


# How a plan is measured, and where it goes.
judging_options = all_options(
    exclude_brokers_option,
    source_options,
    click.option(
        "--disk-limit",
        type=SHARE,
        metavar="PERCENT",
        help="How full a disk may be at any moment.  [default: the setting planning.disk_limit, else 85%]",
    ),
    click.option(
        "--to",
        type=NamedPath(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Write the plan for `drover alter`, in the format of kafka-reassign-partitions.",
    ),
)
# The options that every goal takes.
planning_options = all_options(
    write_options_of_trial,
    alter_options,
    judging_options,
    click.option(
        "--exclude-topics",
        type=NAMES,
        multiple=True,
        metavar="NAME,NAME",
        help="Topics that stay where they are; * and ? stand for anything.",
    ),
    click.option("--include-internal", is_flag=True, help="Move the topics of Kafka and of Drover itself too."),
    click.option(
        "--time-limit",
        type=DURATION,
        metavar="DURATION",
        help="Print the best plan found in this time; Ctrl-C does so too.  [default: until it is done]",
    ),
    click.option("--apply", "apply_", is_flag=True, help="Submit the plan; needs --reason."),
    click.option("--partial", is_flag=True, help="With --apply: submit also what does not meet everything."),
)


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
    additions: dict[str, Any] = {}
    if options["output"] == "table":
        print_proposal(proposal, request, model)
    else:
        additions["proposal"] = proposal_document(proposal, request, model)
    submit(connection, commands, sent, follow=options["follow"], additions=additions)


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


@click.group()
def plan() -> None:
    """Propose the moves that reach a goal: the fewest bytes first, then the best balance.

    Nothing is done without --apply. Exit code 2: the goal makes no sense in this cluster; 4: something cannot be met.
    """


@plan.command()
@brokers_argument("BROKER...")
@planning_options
@pass_invocation
def drain(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Take every replica off these brokers."""
    plan_goal(invocation, _said("drain", *brokers), goals.Drain(brokers), options)


@plan.command()
@brokers_argument("BROKER...")
@planning_options
@pass_invocation
def add(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Fill brokers that have joined."""
    plan_goal(invocation, _said("add", *brokers), goals.Add(brokers), options)


@plan.command(name="replace")
@click.argument("broker", type=click.IntRange(min=0), metavar="BROKER")
@click.option(
    "--with",
    "replacement",
    type=click.IntRange(min=0),
    required=True,
    metavar="BROKER",
    help="The one that takes over.",
)
@planning_options
@pass_invocation
def replace_broker(invocation: Invocation, broker: int, replacement: int, **options: Any) -> None:
    """Give what a broker has, dead or alive, to another one, each replica in its place in the order."""
    plan_goal(invocation, _said("replace", broker, "with", replacement), goals.Replace(broker, replacement), options)


@plan.command()
@click.option("--max-bytes", type=SIZE, metavar="SIZE", help="Copy no more than that: 500GB, 2TiB.")
@click.option("--max-moves", type=click.IntRange(min=0), metavar="N", help="Copy no more replicas than that.")
@planning_options
@pass_invocation
def balance(invocation: Invocation, max_bytes: int | None, max_moves: int | None, **options: Any) -> None:
    """Even out replicas, bytes and preferred leaders, as far as that is worth the bytes."""
    plan_goal(invocation, "balance", goals.Balance(max_bytes, max_moves), options)


@plan.command(name="set-rf")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, type=NAMES)
@click.argument("factor", type=click.IntRange(min=1), metavar="REPLICAS")
@planning_options
@pass_invocation
def set_rf(invocation: Invocation, topics: tuple[tuple[str, ...], ...], factor: int, **options: Any) -> None:
    """Give every partition of these topics so many replicas, more or fewer; * and ? stand for anything."""
    named = tuple(topic for given in topics for topic in given)
    plan_goal(invocation, _said("set-rf", *named, factor), goals.SetReplicationFactor(named, factor), options)


@plan.command()
@click.argument("rack", metavar="RACK")
@planning_options
@pass_invocation
def evacuate(invocation: Invocation, rack: str, **options: Any) -> None:
    """Take every replica off the brokers of a rack."""
    plan_goal(invocation, _said("evacuate", rack), goals.Evacuate(rack), options)


@plan.command()
@planning_options
@pass_invocation
def spread(invocation: Invocation, **options: Any) -> None:
    """Spread partitions over as many racks as the brokers allow, and change nothing else."""
    plan_goal(invocation, "spread", goals.Spread(), options)


@plan.command()
@planning_options
@pass_invocation
def leaders(invocation: Invocation, **options: Any) -> None:
    """Even out the preferred leaders by the order of replica lists alone; nothing is copied."""
    plan_goal(invocation, "leaders", goals.Leaders(), options)


@plan.command()
@click.argument("files", metavar="PLAN.json...", nargs=-1, required=True, type=plan_file_type)
@click.option("--throttle", type=RATE, metavar="RATE", help="Say how long it takes at least at this rate.")
@judging_options
@output_option
@common_options
@pass_invocation
def check(invocation: Invocation, files: tuple[Path, ...], **options: Any) -> None:
    """Judge a plan that somebody else made, by the same figures: stock --generate, Cruise Control, topicmappr.

    Nothing is sent. Exit code 4 says that the plan breaks something.
    """
    check_plan(invocation, files, options)


def _said(*words: object) -> str:
    return " ".join(map(str, words))


def check_plan(invocation: Invocation, files: Sequence[Path], options: dict[str, Any]) -> None:
    """Print what a plan would do, and what it breaks."""
    name = name_of(files)
    lists = lists_of(read_plans(files), name)
    source = source_of(options)
    model = read_model(invocation, source, with_log=True)
    proposal = assess(model, lists, Limits(disk_limit=disk_limit_of(invocation, options)))
    cluster = None if source.file is not None else invocation.cluster_of(invocation.settings())
    request = Request(f"check {name}", cluster, options["throttle"])
    if options["to"] is not None:
        drained = replace(request, leaving=emptied(proposal.brokers))
        save_proposal(options["to"], drained, proposal, targets_of(proposal), model)
    show(proposal, request, model, options)
    raise click.exceptions.Exit(ExitCode.GUARDED if broken(proposal.unmet) else ExitCode.DONE)
