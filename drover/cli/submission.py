"""Sending commands, their recorded outcomes, and the questions before a change that cannot be taken back."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

import click
import msgspec

from drover.cli.exits import ExitCode, Failure
from drover.cli.help import did_you_mean, sending_option
from drover.cli.invocation import Invocation, all_options, author_option, common_options
from drover.cli.output import console, listed, output_option, plural, print_document, say, table, timestamp
from drover.cli.parameters import DURATION
from drover.client.answers import Answer, OutcomeMissingError, Ownership, Sent
from drover.client.client import Client
from drover.client.commands import fault_of_command, new_id
from drover.client.history import fold_cluster
from drover.client.views.answer_rows import answer_row
from drover.errors import AppendUnknownError
from drover.events.commands import Command
from drover.events.partitions import TopicPartition
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.journal.connection import LogConnection

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
# An owner sends a heartbeat every two seconds; after this time without one, the shard counts as unowned.
SILENT_S = 10
# Two heartbeats are missing: the owner may have died.
QUIET_S = 5
# The default reason of a command that is shown and not sent.
DRY_RUN_REASON = "dry run"
AnyCommandType = TypeVar("AnyCommandType", bound=Command)
NO_ADDITIONS: Mapping[str, Any] = {}
# Refusals by a rule that protects the cluster: the command is valid, but something has to be corrected first.
GUARDS = frozenset(
    {
        RefusalCode.DROVER_TOPIC,
        RefusalCode.INVALID_REPLICATION_FACTOR,
        RefusalCode.CLUSTER_CHANGED,
        RefusalCode.ORIGINAL_REPLICAS_DIFFER,
        RefusalCode.BROKER_EMPTIED,
    }
)


def can_ask() -> bool:
    """Whether there is a terminal to ask on; standard input may also be closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirmed(question: str) -> bool:
    """Ask a question; the end of the input (Ctrl-D) is a no.

    Raises `KeyboardInterrupt` for Ctrl-C, which click would report as "Aborted!" with exit code 1.
    """
    if sys.stdin is None:
        return False
    try:
        return click.confirm(question, err=True)
    except click.Abort as aborted:
        # Neither key moves the cursor to a new line.
        say(err=True)
        if isinstance(aborted.__context__, EOFError):
            return False
        raise KeyboardInterrupt from None


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def check_brokers(connection: LogConnection, cluster: str, numbers: Sequence[int], *, yes: bool) -> None:
    """Ask before a command about brokers that the cluster has never shown; without a terminal, refuse it.

    Nothing is asked with `yes`, nor while the log has no brokers of the cluster. Raises `LogUnavailableError`.
    """
    if yes:
        return
    known_brokers = asyncio.run(fold_cluster(connection, cluster)).known_brokers
    unknown = [number for number in numbers if number not in known_brokers]
    if not known_brokers or not unknown:
        return
    sentence = f"{cluster} has no broker {listed(unknown)}; it has {listed(sorted(known_brokers))}."
    if not can_ask():
        raise click.UsageError(f"{sentence} Add --yes if it is meant")
    if not confirmed(f"{sentence} Send it anyway?"):
        raise click.UsageError("nothing was sent")


class Envelope(TypedDict):
    """The fields that every command has."""

    id: str
    cluster: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Request:
    """The options that every writing command takes; `timeout_s` is None with `--no-wait`."""

    id: str
    cluster: str
    by: str
    reason: str
    timeout_s: float | None
    output: str

    @property
    def envelope(self) -> Envelope:
        """The common fields of a command, as keyword arguments."""
        return {"id": self.id, "cluster": self.cluster, "by": self.by, "reason": self.reason}


def require_reason(options: Mapping[str, Any]) -> None:
    """Raise click's own error if the reason is missing."""
    if options["reason"] is None:
        raise click.MissingParameter(param_type="option", param_hint="'--reason'")


def _options(*, reason_required: bool) -> Callable[[Decorated], Decorated]:
    return all_options(
        common_options,
        author_option,
        sending_option("--reason", required=reason_required, help="Why; kept in the log for ever."),
        sending_option("--id", "id_", metavar="ID", help="Makes a retry harmless: the same id takes effect once."),
        sending_option(
            "--timeout",
            type=DURATION,
            default="30s",
            show_default=True,
            help="How long to wait for the recorded outcome.",
        ),
        sending_option("--no-wait", is_flag=True, help="Return as soon as the command is durable in its topic."),
        output_option,
    )


# `--reason`, `--id`, `--timeout`, `--no-wait` and `-o`.
write_options = _options(reason_required=True)
# The same options without a required reason, for commands with a dry run: see `require_reason`.
write_options_of_trial = _options(reason_required=False)


def make_request(invocation: Invocation, kind: str, cluster: str, options: dict[str, Any]) -> Request:
    """Return the request that the options of a writing command describe."""
    return Request(
        # An empty id, as of an unset variable, is not replaced but refused as malformed.
        id=new_id(kind) if options["id_"] is None else options["id_"],
        cluster=cluster,
        by=invocation.author,
        reason=DRY_RUN_REASON if options["reason"] is None else options["reason"],
        timeout_s=None if options["no_wait"] else options["timeout"],
        output=options["output"],
    )


def checked(command: AnyCommandType) -> AnyCommandType:
    """Refuse a command that a worker would find malformed, before it is sent."""
    fault = fault_of_command(command)
    if fault is not None:
        raise click.UsageError(f"this is not a valid command: {fault}")
    return command


def send(connection: LogConnection, commands: Sequence[Command], request: Request) -> tuple[Answer, ...]:
    """Send commands and await their outcomes; none are returned with `--no-wait`.

    Ctrl-C and a timeout only end the waiting, and the commands are still decided; both print how to look again. After a
    timeout, the outcomes that have arrived are printed.
    """
    for command in commands:
        checked(command)
    sent: list[Sent] = []
    try:
        return asyncio.run(_send(connection, commands, request, sent))
    except KeyboardInterrupt:
        state = (
            "Detached; the command will still be decided."
            if sent
            else "Interrupted; the command may have been written."
        )
        say(f"{state} {_look_again(request)}", err=True)
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    except AppendUnknownError as error:
        raise Failure(
            f"{error}. Send it again with --id {request.id}: the same id takes effect once", ExitCode.UNFINISHED
        ) from error
    except OutcomeMissingError as error:
        _tell_decided(error, request)
        raise _unfinished(error, request) from error


async def _send(
    connection: LogConnection, commands: Sequence[Command], request: Request, sent: list[Sent]
) -> tuple[Answer, ...]:

    async with Client(connection) as client:
        sent.extend(await client.submit_all(commands))
        if request.timeout_s is None:
            _tell_written(sent, request)
            return ()
        return await client.outcomes(sent, request.timeout_s, _tell_waiting)


def _tell_waiting(shard: Ownership | None) -> None:
    """Print on stderr why a command has no outcome yet."""
    why = "the log has not been read yet" if shard is None else _why_undecided(shard)[0]
    say(f"Waiting: {why}.", err=True)


def _tell_written(sent: Sequence[Sent], request: Request) -> None:
    """Print where commands were written, for `--no-wait`; programs get a document."""
    if request.output != "table":
        rows = _written(sent)
        print_document({"outcomes": [], "written": rows}, rows, request.output)
        return
    for written in sent:
        say(f"{written.command.id} was written to {written.topic} {written.shard}@{written.offset}.", err=True)
    say(_look_again(request), err=True)


def _written(sent: Sequence[Sent]) -> list[dict[str, Any]]:
    return [
        {"id": record.command.id, "topic": record.topic, "partition": record.shard, "offset": record.offset}
        for record in sent
    ]


def _tell_decided(error: OutcomeMissingError, request: Request) -> None:
    """Print the outcomes that arrived in time; programs also get the places of the other commands."""
    if request.output == "table":
        print_answers(error.answers, request.output)
        return
    decided, written = [answer_row(answer) for answer in error.answers], _written(error.sent)
    print_document({"outcomes": decided, "written": written}, [*decided, *written], request.output)


def _look_again(request: Request) -> str:
    return f"Look again with: drover history --cluster {request.cluster} --id {request.id}"


def _unfinished(error: OutcomeMissingError, request: Request) -> Failure:
    word, what_next = _why_undecided(error.ownership)
    count = f"{len(error.sent)} of {len(error.sent) + len(error.answers)} commands"
    return Failure(
        f"no outcome was recorded within {request.timeout_s:g} s for {count}; {word}. {what_next} "
        f"{_look_again(request)}",
        ExitCode.UNFINISHED,
    )


def _is_owned(shard: Ownership | None) -> bool:
    """Whether the shard has an owner with a recent sign of life."""
    if shard is None or not shard.owner:
        return False
    return _silent_s(shard) <= SILENT_S


def _silent_s(shard: Ownership) -> float:
    """Return the seconds since the last sign of life of the shard's owner."""
    return time.time() - max(shard.last_record_ms or 0, shard.heard_ms or 0) / 1000


def _why_undecided(shard: Ownership | None) -> tuple[str, str]:
    """Say why a command has no outcome yet, and when it will have one."""
    later = "The command remains valid and will be decided once the shard has an owner."
    if shard is None:
        return "the log itself could not be read in that time", later
    if not _is_owned(shard):
        return _why_unowned(shard), later
    owner = f"{shard.owner} (epoch {shard.epoch})"
    if (silent_s := _silent_s(shard)) > QUIET_S:
        silence = f"silent for {silent_s:.0f} s; another worker takes over after its session timeout"
        return f"shard {shard.shard} is owned by {owner}, {silence}", later
    if shard.outage is not None:
        return (
            (
                f"shard {shard.shard} is owned by {owner}, for which the cluster has been out of reach since "
                f"{timestamp(shard.outage.since_ms)}: {shard.outage.detail}"
            ),
            "The command remains valid, and the owner decides it: it is refused if the cluster stays out of reach.",
        )
    return (
        f"shard {shard.shard} is owned by {owner}, which is running: look at its log",
        "The command remains valid, and the owner decides it.",
    )


def _why_unowned(shard: Ownership) -> str:
    """Say why a shard has no owner: the workers are rebalancing, or no worker runs."""
    running = sorted(name for name, at_ms in shard.running.items() if time.time() - at_ms / 1000 <= SILENT_S)
    last = f" (the last owner was {shard.owner} (epoch {shard.epoch}))" if shard.owner else ""
    if running:
        run = "is running" if len(running) == 1 else "are running"
        return (
            f"no worker owns shard {shard.shard} yet{last}: {' and '.join(running)} {run}, and their consumer group is "
            "rebalancing, which takes some seconds after a worker has started or ended"
        )
    if not shard.owner:
        return f"shard {shard.shard} has never had an owner: start a worker with `drover worker`"
    return (
        f"shard {shard.shard} has shown no sign of an owner for {_silent_s(shard):.0f} s: start a worker with "
        f"`drover worker`{last}"
    )


def connect(invocation: Invocation) -> tuple[LogConnection, str]:
    """Return the log's connection and the cluster of a writing command."""
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    return settings.log.connection(), cluster


def plain(command: Command) -> Any:
    """Return a command as maps and lists."""
    return msgspec.to_builtins(command)


def exit_code(answers: Sequence[Answer]) -> ExitCode:
    """Return failed if anything was refused, guarded if only guards refused and nothing was accepted, else done."""
    refusals = [refusal for answer in answers for refusal in answer.outcome.refusals]
    if not refusals and all(answer.outcome.verdict != "refused" for answer in answers):
        return ExitCode.DONE
    accepted = any(answer.outcome.verdict == "accepted" for answer in answers)
    if refusals and not accepted and all(refusal.code in GUARDS for refusal in refusals):
        return ExitCode.GUARDED
    return ExitCode.FAILED


def print_answers(answers: Sequence[Answer], output: str, additions: Mapping[str, Any] = NO_ADDITIONS) -> None:
    """Print outcomes, a sentence for each and a line per refusal; in a document, `additions` stand first."""
    if output != "table":
        rows = [answer_row(answer) for answer in answers]
        print_document({**additions, "outcomes": rows}, rows, output)
        return
    for answer in answers:
        say(sentence(answer))
        for remark in answer.outcome.remarks:
            say(f"  {remark}")
    lines = [line for answer in answers for line in (*refusal_lines(answer.outcome), *deferred_lines(answer.outcome))]
    if lines:
        console().print(table(("partition", "code", "detail"), lines))


def suggest_plan(connection: LogConnection, command: Command, answers: Sequence[Answer]) -> None:
    """Name the plans that are like the one of a command, if the command was refused because there is none."""
    plan: str | None = getattr(command, "plan", None)
    refusals = (refusal for answer in answers for refusal in answer.outcome.refusals)
    if plan is None or all(refusal.code is not RefusalCode.UNKNOWN_PLAN for refusal in refusals):
        return
    names = asyncio.run(fold_cluster(connection, command.cluster)).plans
    say(did_you_mean(plan, names) or "`drover plans` lists the plans.", err=True)


def sentence(answer: Answer) -> str:
    """Describe the outcome of a command in one line."""
    outcome = answer.outcome
    parts: list[str] = [outcome.verdict]
    if outcome.plan:
        parts.append(f"plan {outcome.plan}")
    if outcome.accepted:
        parts.append(plural(len(outcome.accepted), "partition"))
    if outcome.unchanged:
        parts.append(f"{len(outcome.unchanged)} already in place")
    of_partitions = sum(1 for refusal in outcome.refusals if refusal.key is not None)
    if of_partitions:
        parts.append(f"{of_partitions} refused")
    if outcome.deferred:
        parts.append(f"{len(outcome.deferred)} deferred")
    again = "; this command had already been decided" if answer.repeated else ""
    return f"{outcome.type} {outcome.id}: {', '.join(parts)} (log {answer.shard}@{answer.offset}){again}"


def refusal_lines(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Return what was refused and why; `(all)` stands for the whole command."""
    return [
        (str(refusal.key) if refusal.key is not None else "(all)", refusal.code.value, refusal.detail)
        for refusal in outcome.refusals
    ]


def deferred_lines(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Return the cancels that were accepted but are deferred by a guard, with the reason."""
    return [
        (
            str(TopicPartition(entry.topic, entry.partition)),
            entry.why.value,
            "deferred for now: the move goes on, and the cancel is tried again when the guard allows it",
        )
        for entry in outcome.deferred
    ]


def send_one(
    invocation: Invocation,
    kind: str,
    options: dict[str, Any],
    command_of: Callable[[Envelope], Command],
    *,
    brokers: Sequence[int] = (),
) -> None:
    """Send the command that `command_of` makes, print its outcome and exit with its code.

    Asks first if the cluster has never shown one of `brokers`; the options then have `yes`.
    """
    connection, cluster = connect(invocation)
    request = make_request(invocation, kind, cluster, options)
    command = checked(command_of(request.envelope))
    if brokers:
        check_brokers(connection, cluster, brokers, yes=options["yes"])
    answers = send(connection, [command], request)
    if request.timeout_s is None:
        return
    print_answers(answers, request.output)
    suggest_plan(connection, command, answers)
    raise click.exceptions.Exit(exit_code(answers))
