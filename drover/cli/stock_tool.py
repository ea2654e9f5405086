"""`drover kafka-reassign-partitions`: the stock tool's flags, files, sentences and exit codes, done by Drover."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from drover.cli.exits import ExitCode, Failure, failure_of
from drover.cli.help import DroverCommand
from drover.cli.invocation import Invocation, all_options, author_option, common_options, pass_invocation
from drover.cli.model import Source, open_driver, read_model
from drover.cli.output import read_text, say
from drover.cli.parameters import BROKERS, NamedPath
from drover.cli.plan_file import parse_plan
from drover.cli.submission import Request, send
from drover.cli.throttle import find_throttles
from drover.client import stock_tool as sentences
from drover.client.commands import new_id, split
from drover.client.history import fold_cluster
from drover.client.stock_generate import generate, topics_to_move
from drover.client.stock_tool import Lists
from drover.errors import DroverError
from drover.events.bounds import MAX_PARTITIONS
from drover.events.commands import Alter, Cancel, Command, PartitionName, PartitionTarget, RestoreThrottles, Throttle
from drover.events.leftover_throttles import LeftoverEntries, LeftoverRates
from drover.events.outcomes import joined
from drover.events.partitions import TopicPartition
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.facts import Move
from drover.settings.settings import Settings
from drover.settings.sources import find_file
from drover.state.cluster import ClusterState

CALL_TIMEOUT_MS = 30_000
ACTIONS = ("generate", "execute", "verify", "cancel", "list")
# The options that each action takes beside those that all take, required ones first.
_REQUIRED = {
    "generate": ("topics_to_move_json_file", "broker_list"),
    "execute": ("reassignment_json_file",),
    "verify": ("reassignment_json_file",),
    "cancel": ("reassignment_json_file",),
    "list": (),
}
_PERMITTED = {
    "generate": ("disable_rack_aware",),
    "execute": (
        "additional",
        "throttle",
        "replica_alter_log_dirs_throttle",
        "timeout",
        "disallow_replication_factor_change",
        "reason",
    ),
    "verify": ("preserve_throttles",),
    "cancel": ("preserve_throttles", "timeout", "reason"),
    "list": (),
}


class StockCommand(DroverCommand):
    """A command that ends as the stock tool does: with 0 or 1, and with its error on standard output."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse the command line; wrong usage ends with 1."""
        try:
            return super().make_context(*arguments, **options)
        except click.UsageError as error:
            error.exit_code = ExitCode.FAILED
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every failure ends with 1."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            error.exit_code = ExitCode.FAILED
            raise
        except (DroverError, Failure) as error:
            if ctx.ensure_object(Invocation).debug:
                raise
            message = error.message if isinstance(error, Failure) else failure_of(error).message
            _fail(f"Error: {message}")


def _fail(*lines: str) -> NoReturn:
    for line in lines:
        say(line)
    raise click.exceptions.Exit(ExitCode.FAILED)


@dataclass(frozen=True, slots=True)
class Situation:
    """The replica lists, the active moves and the living brokers, as the cluster and the log show them."""

    settings: Settings
    lists: Lists
    active: Mapping[TopicPartition, Move]
    live_brokers: tuple[int, ...]
    state: ClusterState


_actions = all_options(
    click.option("--generate", is_flag=True, help="Propose a reassignment; nothing is moved."),
    click.option("--execute", is_flag=True, help="Start the reassignment of --reassignment-json-file."),
    click.option("--verify", is_flag=True, help="Show how far the reassignment of --reassignment-json-file is."),
    click.option("--cancel", is_flag=True, help="Cancel the reassignment of --reassignment-json-file."),
    click.option("--list", is_flag=True, help="List every active reassignment."),
)
_files = all_options(
    click.option(
        "--reassignment-json-file", type=NamedPath(dir_okay=False), metavar="FILE", help="The partitions and replicas."
    ),
    click.option(
        "--topics-to-move-json-file", type=NamedPath(dir_okay=False), metavar="FILE", help="Topics for --generate."
    ),
    click.option("--broker-list", type=BROKERS, metavar="0,1,2", help="The brokers that --generate places on."),
)


@click.command(
    cls=StockCommand,
    name="kafka-reassign-partitions",
    example="drover kafka-reassign-partitions --execute --reassignment-json-file plan.json --throttle 50000000",
)
@_actions
@_files
@click.option("--disable-rack-aware", is_flag=True, help="Let --generate ignore racks.")
@click.option("--throttle", type=int, metavar="BYTES", help="Bytes per second and broker.")
@click.option("--replica-alter-log-dirs-throttle", type=int, metavar="BYTES", help="Without effect.")
@click.option("--timeout", type=int, metavar="MS", help="How long to wait for Drover's decision.  [default: 30000]")
@click.option("--additional", is_flag=True, help="Start it beside other reassignments, or change their throttle.")
@click.option("--disallow-replication-factor-change", is_flag=True, help="Refuse a list of another length.")
@click.option("--preserve-throttles", is_flag=True, help="Leave leftover throttles where they are.")
@click.option("--reason", help="Why; kept in the log for ever.  [default: the stock tool's flag]")
@author_option
@common_options
@pass_invocation
def kafka_reassign_partitions(invocation: Invocation, **options: Any) -> None:
    """Run with the flags of kafka-reassign-partitions, and do what they ask for with Drover.

    Scripts that call the stock tool work with its name replaced: files, sentences and exit codes are the same.
    docs/from-kafka-reassign-partitions.md lists where Drover differs: it removes throttles itself, starts copies only
    within its limits, moves no replica between the log directories of a broker, and cancels only its own moves.
    """
    action = _action_of(options)
    choose_cluster(invocation)
    _ACTIONS[action](invocation, options)


def choose_cluster(invocation: Invocation) -> None:
    """Use the settings of a configured cluster that has one of the brokers of `--bootstrap-server`, if there is one.

    A script names its cluster by brokers; the settings have the name by which workers know it, and where its log is.
    """
    if invocation.bootstrap_server is None or invocation.config is not None or find_file(None) is None:
        return
    brokers = _addresses(invocation.bootstrap_server)
    clusters = replace(invocation, bootstrap_server=None, command_config=None, cluster=None).settings().clusters
    matching = [name for name, cluster in clusters.items() if brokers & _addresses(cluster.bootstrap)]
    if len(matching) == 1:
        invocation.cluster = invocation.cluster or matching[0]
        invocation.bootstrap_server = invocation.command_config = None


def _addresses(bootstrap: str) -> frozenset[str]:
    return frozenset(address.strip() for address in bootstrap.split(","))


def _action_of(options: Mapping[str, Any]) -> str:
    chosen = [action for action in ACTIONS if options[action]]
    if len(chosen) != 1:
        flags = ", ".join(f"--{action}" for action in ACTIONS)
        raise click.UsageError(f"Command must include exactly one action: {flags}")
    (action,) = chosen
    for name in _REQUIRED[action]:
        if options[name] is None:
            raise click.UsageError(f"Missing required argument {_flag(name)}")
    permitted = {*ACTIONS, *_REQUIRED[action], *_PERMITTED[action]}
    for name, value in options.items():
        if name not in permitted and value not in {None, False}:
            raise click.UsageError(f"Option {_flag(name)} can't be used with action --{action}")
    return action


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _read_targets(options: Mapping[str, Any]) -> tuple[PartitionTarget, ...]:
    file: Path = options["reassignment_json_file"]
    plan = parse_plan(read_text(file, "plan"), str(file), ignore_directories=True)
    targets = plan.targets
    if plan.names_directories:
        say(f"The log directories in {file} are ignored: Kafka chooses one on each broker.", err=True)
    for target in targets:
        if target.replicas is None:
            raise Failure(f"{file}: {target.key} has no replicas; `drover alter` stops the move of such a partition")
    return targets


def _look(invocation: Invocation) -> Situation:
    settings = invocation.settings()
    return asyncio.run(_situation(settings, invocation.cluster_of(settings)))


async def _situation(settings: Settings, cluster: str) -> Situation:
    """Read the log and then the cluster, so that a move that ends meanwhile is still shown as active."""
    state = await fold_cluster(settings.log.connection(), cluster)
    async with open_driver(settings, cluster, CALL_TIMEOUT_MS) as driver:
        moves = (await driver.list_moves()).moves
        survey = await driver.survey()
    lists = {key: facts.replicas for key, facts in survey.partitions.items()}
    active = sentences.active_moves(moves, lists, state)
    return Situation(settings, lists, active, survey.live_brokers, state)


def _list(invocation: Invocation, _options: Mapping[str, Any]) -> None:
    situation = _look(invocation)
    for line in sentences.list_lines(situation.active):
        say(line)


def _verify(invocation: Invocation, options: Mapping[str, Any]) -> None:
    targets = _read_targets(options)
    situation = _look(invocation)
    for line in sentences.verify_lines(targets, situation.active, situation.lists):
        say(line)
    # Here the stock tool says how far moves between log directories are; there are none.
    say()
    if not situation.active and not options["preserve_throttles"]:
        _clear_throttles(invocation, targets, situation, "--verify")


def _execute(invocation: Invocation, options: Mapping[str, Any]) -> None:
    targets = _read_targets(options)
    situation = _look(invocation)
    if situation.active and not options["additional"]:
        _fail(sentences.EXISTING_ASSIGNMENT)
    _check_targets(targets, situation)
    for line in sentences.rollback_lines({target.key: situation.lists[target.key] for target in targets}):
        say(line)
    if options["replica_alter_log_dirs_throttle"] is not None:
        say("No replica moves between log directories: --replica-alter-log-dirs-throttle has no effect.", err=True)
    rate = options["throttle"] if (options["throttle"] or -1) >= 0 else None
    request = _request(invocation, situation, options, f"--execute of {options['reassignment_json_file']}")
    outcome = _sent(situation, _alters(targets, request, rate, options), request)
    _check_started(outcome)
    if rate is not None:
        for plan in sorted(set(sentences.plans_moving(targets, situation.state)) - {outcome.plan}):
            throttle = Throttle(**replace(request, id=new_id("throttle")).envelope, plan=plan, bytes_per_second=rate)
            _check(_sent(situation, [throttle], request))
        say(f"The inter-broker throttle limit was set to {rate} B/s")
    say(sentences.started_line([target.key for target in targets]))


def _alters(
    targets: Sequence[PartitionTarget], request: Request, rate: int | None, options: Mapping[str, Any]
) -> list[Alter]:
    whole = Alter(
        **request.envelope,
        partitions=tuple(targets),
        throttle_bytes_per_second=rate,
        allow_replication_factor_change=not options["disallow_replication_factor_change"],
    )
    return list(split(whole))


def _check_targets(targets: Sequence[PartitionTarget], situation: Situation) -> None:
    """Refuse brokers and partitions that do not exist, with the stock tool's words."""
    unknown = sorted({broker for target in targets for broker in target.replicas or ()} - {*situation.live_brokers})
    if unknown:
        _fail(f"Error: Unknown broker id {unknown[0]}")
    missing = sorted(target.key for target in targets if target.key not in situation.lists)
    if missing:
        topics = {key.topic for key in situation.lists}
        for key in missing:
            if key.topic not in topics:
                _fail(f"Error: Topic {key.topic} not found.")
        _fail(f"Error: Unable to find partition: {', '.join(map(sentences.named, missing))}")


def _check_started(outcome: Outcome) -> None:
    refused = {refusal.key: refusal.detail for refusal in outcome.refusals if refusal.key is not None}
    if refused:
        _fail(*sentences.error_lines("Error reassigning partition(s):", refused))
    _check(outcome)


def _check(outcome: Outcome) -> None:
    """Fail if the whole command was refused."""
    whole = [refusal for refusal in outcome.refusals if refusal.key is None]
    if whole and whole[0].code is RefusalCode.REASSIGNMENT_IN_PROGRESS:
        _fail(sentences.EXISTING_ASSIGNMENT)
    if whole:
        raise Failure(whole[0].detail)


def _cancel(invocation: Invocation, options: Mapping[str, Any]) -> None:
    targets = _read_targets(options)
    situation = _look(invocation)
    keys = sorted(target.key for target in targets if target.key in situation.active)
    if keys:
        request = _request(invocation, situation, options, f"--cancel of {options['reassignment_json_file']}")
        _check_cancelled(_sent(situation, _cancels(keys, request), request))
        say(sentences.cancelled_line(keys))
    else:
        say(sentences.NO_ACTIVE_REASSIGNMENT)
    say(sentences.NO_ACTIVE_MOVE, nl=False)
    if not options["preserve_throttles"]:
        _clear_throttles(invocation, targets, situation, "--cancel")


def _cancels(keys: Sequence[TopicPartition], request: Request) -> list[Cancel]:
    parts = [keys[first : first + MAX_PARTITIONS] for first in range(0, len(keys), MAX_PARTITIONS)]
    return [
        Cancel(
            **replace(request, id=request.id if number == 1 else f"{request.id}.{number}").envelope,
            mode="rollback",
            partitions=tuple(PartitionName(key.topic, key.partition) for key in part),
        )
        for number, part in enumerate(parts, start=1)
    ]


def _check_cancelled(outcome: Outcome) -> None:
    refused = {refusal.key: refusal.detail for refusal in outcome.refusals if refusal.key is not None}
    if refused:
        plural = "" if len(refused) == 1 else "s"
        _fail(*sentences.error_lines(f"Error cancelling partition reassignment{plural} for:", refused))
    _check(outcome)


def _clear_throttles(
    invocation: Invocation,
    targets: Sequence[PartitionTarget],
    situation: Situation,
    action: str,
) -> None:
    """Delete the leftover throttles of the brokers and topics, as the stock tool deletes all; Drover ends its own."""
    brokers = {*situation.live_brokers, *(broker for target in targets for broker in target.replicas or ())}
    topics = {target.topic for target in targets}
    for line in sentences.clearing_lines(brokers, topics):
        say(line)
    throttles = asyncio.run(find_throttles(situation.settings, situation.state.name))
    rates = [row for row in throttles.rates if row.whose == "leftover" and row.broker in brokers]
    entries = [row for row in throttles.entries if row.whose == "leftover" and row.topic in topics]
    if not rates and not entries:
        return
    request = _request(invocation, situation, {"timeout": None, "reason": None}, f"{action} clears throttles")
    command = RestoreThrottles(
        **request.envelope,
        brokers=tuple(LeftoverRates(broker=row.broker, leader=row.leader, follower=row.follower) for row in rates),
        topics=tuple(LeftoverEntries(topic=row.topic, leader=row.leader, follower=row.follower) for row in entries),
    )
    _check(_sent(situation, [command], request))


def _generate(invocation: Invocation, options: Mapping[str, Any]) -> None:
    file: Path = options["topics_to_move_json_file"]
    topics = topics_to_move(read_text(file, "list of topics"), str(file))
    model = read_model(invocation, Source(), with_log=True)
    current, proposed = generate(
        model, topics, frozenset(options["broker_list"]), with_racks=not options["disable_rack_aware"]
    )
    for line in sentences.generated_lines(current, proposed):
        say(line)


def _request(invocation: Invocation, situation: Situation, options: Mapping[str, Any], reason: str) -> Request:
    timeout_ms = 30_000 if options["timeout"] is None else options["timeout"]
    return Request(
        id=new_id("reassign"),
        cluster=situation.state.name,
        by=invocation.author,
        reason=options["reason"] or f"kafka-reassign-partitions {reason}",
        timeout_s=timeout_ms / 1000,
        output="table",
    )


def _sent(situation: Situation, commands: Sequence[Command], request: Request) -> Outcome:
    return joined([answer.outcome for answer in send(situation.settings.log.connection(), commands, request)])


_ACTIONS: Mapping[str, Callable[[Invocation, Mapping[str, Any]], None]] = {
    "generate": _generate,
    "execute": _execute,
    "verify": _verify,
    "cancel": _cancel,
    "list": _list,
}
