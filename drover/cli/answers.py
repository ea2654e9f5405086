"""How recorded outcomes of commands are shown, and the exit code they give."""

from collections.abc import Mapping, Sequence
from typing import Any

from drover.cli.exits import ExitCode
from drover.cli.output import console, plural, print_document, say, table
from drover.client.answers import Answer
from drover.client.views.answer_rows import answer_row
from drover.events.partitions import TopicPartition
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode

NOTHING_ELSE: Mapping[str, Any] = {}
# Refusals by a rule that protects the cluster: the request was understood, but something has to be corrected first.
GUARDS = frozenset(
    {
        RefusalCode.DROVER_TOPIC,
        RefusalCode.INVALID_REPLICATION_FACTOR,
        RefusalCode.CLUSTER_CHANGED,
        RefusalCode.ORIGINAL_REPLICAS_DIFFER,
        RefusalCode.BROKER_EMPTIED,
    }
)


def exit_code(answers: Sequence[Answer]) -> ExitCode:
    """Return failed if anything was refused; guarded if nothing was accepted and only guards refused; else done."""
    refusals = [refusal for answer in answers for refusal in answer.outcome.refusals]
    if not refusals and all(answer.outcome.verdict != "refused" for answer in answers):
        return ExitCode.DONE
    accepted = any(answer.outcome.verdict == "accepted" for answer in answers)
    if refusals and not accepted and all(refusal.code in GUARDS for refusal in refusals):
        return ExitCode.GUARDED
    return ExitCode.FAILED


def print_answers(answers: Sequence[Answer], output: str, told: Mapping[str, Any] = NOTHING_ELSE) -> None:
    """Print outcomes: a sentence each, then one line per refusal; `told` goes before them in a document."""
    if output != "table":
        rows = [answer_row(answer) for answer in answers]
        print_document({**told, "outcomes": rows}, rows, output)
        return
    for answer in answers:
        say(sentence(answer))
        for remark in answer.outcome.remarks:
            say(f"  {remark}")
    lines = [line for answer in answers for line in (*refusal_lines(answer.outcome), *held_off_lines(answer.outcome))]
    if lines:
        console().print(table(("partition", "code", "detail"), lines))


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
    if outcome.held_off:
        parts.append(f"{len(outcome.held_off)} held off")
    again = "; this command had already been decided" if answer.repeated else ""
    return f"{outcome.type} {outcome.id}: {', '.join(parts)} (log {answer.shard}@{answer.offset}){again}"


def refusal_lines(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Return what was refused and why, the whole command as `(all)`."""
    return [
        (str(refusal.key) if refusal.key is not None else "(all)", refusal.code.value, refusal.detail)
        for refusal in outcome.refusals
    ]


def held_off_lines(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Return what is accepted and held off by a guard, and what becomes of it."""
    return [
        (
            str(TopicPartition(one.topic, one.partition)),
            one.why.value,
            "held off for now: the move goes on, and the cancel is tried again when the guard allows it",
        )
        for one in outcome.held_off
    ]
