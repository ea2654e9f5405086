"""`drover plan`: propose the moves that reach a goal; nothing is done without --apply."""

import shlex
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from drover.cli.alter import alter_options, check_rate_of, make_commands, submit
from drover.cli.exits import ExitCode, Failure
from drover.cli.help import BROKERS, TOPICS, drover_group
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
from drover.cli.parameters import DURATION, NAMES, RATE, SIZE, NamedPath, brokers_argument
from drover.cli.plan_explanation import explain_option, explained, explanation_document, print_explanation
from drover.cli.plan_file import SavedProposal, lists_of, name_of, plan_file_type, proposal_json, read_plans
from drover.cli.plan_limits import limit_options, limits_of
from drover.cli.proposal import names_meant, print_proposal
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
from drover.planner.goals import DEFAULT_LIMITS, Goal, SetReplicationFactor, TopicSpread
from drover.planner.judgement import broken, emptied
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal
from drover.planner.propose import propose
from drover.planner.solving import filled_by, leaving_of

if TYPE_CHECKING:
    from drover.planner.explaining import Explanation

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


# The options that limit a plan, and those that write it to a file.
judging_options = all_options(
    exclude_brokers_option,
    source_options,
    limit_options,
    explain_option,
    click.option(
        "--out",
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
        shell_complete=TOPICS,
        type=NAMES,
        multiple=True,
        metavar="NAME,NAME",
        help="Topics that stay where they are; * and ? are wildcards.",
    ),
    click.option(
        "--topic-spread",
        type=click.Choice([spread.value for spread in TopicSpread]),
        default=DEFAULT_LIMITS.topic_spread.value,
        show_default=True,
        help="How evenly the replicas and leaders of each topic are spread, where rates are known.",
    ),
    click.option(
        "--leaders",
        "reordering",
        type=click.Choice(["moved", "all"]),
        default="moved",
        show_default=True,
        help="Where rates are known: reorder only the partitions that move, or all, to even out what brokers lead.",
    ),
    click.option("--include-internal", is_flag=True, help="Also move the topics of Kafka and of Drover itself."),
    click.option(
        "--time-limit",
        type=DURATION,
        default="2m",
        show_default=True,
        metavar="DURATION",
        help="Stop after this time with the best plan so far; so does Ctrl-C.",
    ),
    click.option("--apply", "apply_", is_flag=True, help="Submit the plan; needs --reason."),
    click.option(
        "--partial", is_flag=True, help="With --apply: submit the plan even if it does not meet the whole goal."
    ),
)


def plan_goal(invocation: Invocation, asked: str, goal: Goal, options: dict[str, Any]) -> None:
    """Propose a plan for a goal and print it; write or submit it if the options say so.

    Ends with `USAGE` for a goal that makes no sense in this cluster, and with `GUARDED` for a goal that cannot be met.
    """
    if options["apply_"]:
        _check_apply(options)
    model = read_model(invocation, source_of(options), with_log=True)
    limits = replace(
        limits_of(invocation, options),
        topic_spread=TopicSpread(options["topic_spread"]),
        reorder_all=options["reordering"] == "all",
        include_internal=options["include_internal"],
        exclude_topics=topics_matching([pattern for given in options["exclude_topics"] for pattern in given], model),
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
    if options["out"] is not None and not proposal.refused:
        save_proposal(options["out"], request, proposal, targets, model)
    if not options["apply_"]:
        show(proposal, request, model, options, explained(model, proposal, limits, request.leaving, options))
        raise click.exceptions.Exit(code_of(proposal, request, model))
    _apply(invocation, proposal, request, model, options)


def targets_of(proposal: Proposal) -> tuple[PartitionTarget, ...]:
    """Return the new lists, each asserting the current one, so that a list that has changed meanwhile is refused."""
    return tuple(
        PartitionTarget(topic=move.topic, partition=move.partition, replicas=move.after, original_replicas=move.before)
        for move in proposal.moves
    )


def save_proposal(
    file: Path, request: Request, proposal: Proposal, targets: Sequence[PartitionTarget], model: ClusterModel
) -> None:
    """Write a proposal to a file, and print how to submit it; without moves, write no file."""
    if not targets:
        say(f"The plan has no moves; {file} was not written.", err=True)
        return
    saved = SavedProposal(asked=request.asked, hash=proposal.digest, basis=proposal.basis, **request.goal)
    write_text(file, proposal_json(targets, saved), "plan")
    internal = any(model.partition_by_name[target.topic, target.partition].internal for target in targets)
    also = " --allow-drover-topics" if internal else ""
    say(
        f"Wrote the plan to {file}. Submit it with: "
        f"drover alter {shlex.quote(str(file))} --plan-hash {proposal.digest}{also} --reason WHY",
        err=True,
    )


def show(
    proposal: Proposal,
    request: Request,
    model: ClusterModel,
    options: dict[str, Any],
    explanation: "Explanation | None" = None,
) -> None:
    """Print a proposal; if the plan file goes to standard output, only print the remarks, on standard error."""
    output = options["output"]
    for line in names_meant(proposal, model):
        say(line, err=True)
    if str(options["out"]) == "-":
        remarks = (remark.text for remark in directory_remarks(proposal, model))
        for line in (*unmet_lines(proposal, request, model), *remarks):
            say(line, err=True)
    elif output == "table":
        print_proposal(proposal, request, model)
        if explanation is not None:
            print_explanation(explanation)
    else:
        document = proposal_document(proposal, request, model)
        if explanation is not None:
            document["explained"] = explanation_document(explanation)
        print_document(document, document["moves"], output)


def code_of(proposal: Proposal, request: Request, model: ClusterModel) -> ExitCode:
    """Return the exit code of a proposal that is shown and not submitted."""
    if proposal.refused:
        return ExitCode.USAGE
    return ExitCode.GUARDED if blocking(proposal, request, model) else ExitCode.DONE


def _check_apply(options: dict[str, Any]) -> None:
    if options["model"] is not None:
        raise click.UsageError(
            "--apply needs a live cluster, and --model is a file: write the plan with --out, then use drover alter"
        )
    if str(options["out"]) == "-":
        raise click.UsageError("--out - and --apply exclude each other: print the plan or submit it")
    if options["explain"] is not None:
        raise click.UsageError("--explain and --apply exclude each other: read the plan before you submit it")
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
                "nothing was submitted, because the plan does not meet the whole goal: --partial submits it anyway",
                ExitCode.GUARDED,
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
    """Whether the planner should stop with its best plan so far: the time is over, or Ctrl-C was pressed."""

    time_limit_s: float
    began_s: float = field(default_factory=time.monotonic)
    interrupted: bool = False

    def __call__(self) -> bool:
        """Tell it."""
        return self.interrupted or time.monotonic() - self.began_s >= self.time_limit_s


@contextmanager
def stopping(time_limit_s: float) -> Iterator[Stop]:
    """Let the first Ctrl-C end the planning with the best plan so far; the second one ends the command."""
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


@drover_group()
def plan() -> None:
    """Propose the moves that reach a goal: the fewest bytes first, then the best balance.

    Nothing is moved without --apply. Exit code 2: the goal makes no sense in this cluster; 4: it cannot be met in full.
    """


@plan.command(
    example="drover plan drain 3 --out plan.json\n"
    "drover plan drain 3 --throttle 50MB/s --apply --reason 'broker 3 leaves'"
)
@brokers_argument("BROKER...")
@planning_options
@pass_invocation
def drain(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Take every replica off these brokers."""
    plan_goal(invocation, _said("drain", *brokers), goals.Drain(brokers), options)


@plan.command(example="drover plan add 7,8 --out plan.json")
@brokers_argument("BROKER...")
@planning_options
@pass_invocation
def add(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Move replicas to brokers that have joined."""
    plan_goal(invocation, _said("add", *brokers), goals.Add(brokers), options)


@plan.command(name="replace", example="drover plan replace 3 --with 7 --out plan.json")
@click.argument("broker", shell_complete=BROKERS, type=click.IntRange(min=0), metavar="BROKER")
@click.option(
    "--with",
    "replacement",
    shell_complete=BROKERS,
    type=click.IntRange(min=0),
    required=True,
    metavar="BROKER",
    help="The broker that takes over.",
)
@planning_options
@pass_invocation
def replace_broker(invocation: Invocation, broker: int, replacement: int, **options: Any) -> None:
    """Replace a broker, dead or alive, by another one in every replica list, in the same place."""
    plan_goal(invocation, _said("replace", broker, "with", replacement), goals.Replace(broker, replacement), options)


@plan.command(example="drover plan balance --max-bytes 500GB --out plan.json")
@click.option("--max-bytes", type=SIZE, metavar="SIZE", help="The most bytes to copy: 500GB, 2TiB.")
@click.option("--max-moves", type=click.IntRange(min=0), metavar="N", help="The most replicas to copy.")
@planning_options
@pass_invocation
def balance(invocation: Invocation, max_bytes: int | None, max_moves: int | None, **options: Any) -> None:
    """Balance replicas, bytes and preferred leaders, as far as the gain is worth the bytes to copy."""
    plan_goal(invocation, "balance", goals.Balance(max_bytes, max_moves), options)


@plan.command(name="set-rf", example="drover plan set-rf 'orders*' 3 --out plan.json")
@click.argument("topics", shell_complete=TOPICS, metavar="TOPIC...", nargs=-1, required=True, type=NAMES)
@click.argument("factor", type=click.IntRange(min=1), metavar="REPLICAS")
@planning_options
@pass_invocation
def set_rf(invocation: Invocation, topics: tuple[tuple[str, ...], ...], factor: int, **options: Any) -> None:
    """Set the replication factor of these topics, up or down; * and ? are wildcards."""
    named = tuple(topic for given in topics for topic in given)
    plan_goal(invocation, _said("set-rf", *named, factor), goals.SetReplicationFactor(named, factor), options)


@plan.command(example="drover plan evacuate rack-a --out plan.json")
@click.argument("rack", metavar="RACK")
@planning_options
@pass_invocation
def evacuate(invocation: Invocation, rack: str, **options: Any) -> None:
    """Take every replica off the brokers of a rack."""
    plan_goal(invocation, _said("evacuate", rack), goals.Evacuate(rack), options)


@plan.command(example="drover plan spread --out plan.json")
@planning_options
@pass_invocation
def spread(invocation: Invocation, **options: Any) -> None:
    """Spread partitions over as many racks as the brokers allow, and change nothing else."""
    plan_goal(invocation, "spread", goals.Spread(), options)


@plan.command(example="drover plan leaders --out plan.json")
@planning_options
@pass_invocation
def leaders(invocation: Invocation, **options: Any) -> None:
    """Balance the preferred leaders by reordering replica lists; copies nothing."""
    plan_goal(invocation, "leaders", goals.Leaders(), options)


@plan.command(example="drover plan check reassignment.json")
@click.argument("files", metavar="PLAN.json...", nargs=-1, required=True, type=plan_file_type)
@click.option("--throttle", type=RATE, metavar="RATE", help="Also estimate the least time at this rate.")
@judging_options
@output_option
@common_options
@pass_invocation
def check(invocation: Invocation, files: tuple[Path, ...], **options: Any) -> None:
    """Judge a plan of another tool by the same figures: stock --generate, Cruise Control, topicmappr.

    Nothing is sent. Exit code 4: the plan breaks a rule.
    """
    check_plan(invocation, files, options)


def _said(*words: object) -> str:
    return " ".join(map(str, words))


def check_plan(invocation: Invocation, files: Sequence[Path], options: dict[str, Any]) -> None:
    """Print the moves of a plan, and the rules that it breaks."""
    name = name_of(files)
    lists = lists_of(read_plans(files), name)
    source = source_of(options)
    model = read_model(invocation, source, with_log=True)
    limits = limits_of(invocation, options)
    proposal = assess(model, lists, limits)
    cluster = None if source.file is not None else invocation.cluster_of(invocation.settings())
    request = Request(f"check {name}", cluster, options["throttle"])
    if options["out"] is not None:
        drained = replace(request, leaving=emptied(proposal.brokers))
        save_proposal(options["out"], drained, proposal, targets_of(proposal), model)
    leaving = emptied(proposal.brokers)
    show(proposal, request, model, options, explained(model, proposal, limits, leaving, options))
    raise click.exceptions.Exit(ExitCode.GUARDED if broken(proposal.unmet) else ExitCode.DONE)
