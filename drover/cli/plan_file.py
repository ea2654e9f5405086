"""PURE, except for reading files: plans in the formats of the stock tool and of other tools."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from drover.cli.exits import ExitCode
from drover.cli.output import listed, read_text, say
from drover.cli.parameters import NamedPath
from drover.errors import ConfigurationError
from drover.events.bounds import visible
from drover.events.commands import PartitionTarget
from drover.events.fields import Index, Replicas
from drover.events.undecodable import UNDECODABLE
from drover.events.words import fault_of_json, said_of
from drover.planner.proposal import Basis

PROPOSED_HEADING = "Proposed partition reassignment configuration"
CURRENT_HEADING = "Current partition replica assignment"
MAX_SHOWN = 300
# As in `orders-0, oldLeader: 1, [1, 2] -> [3, 4]`.
_TEXT_OF_CRUISE_CONTROL = re.compile(r"\{[^{}\"\n]*, oldLeader: ")
_LINE_OF_A_MAP = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
ANY_LOG_DIRECTORY = "any"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition of a plan; only Confluent's brokers have `observers`."""

    topic: str
    partition: Index
    replicas: Replicas | None
    log_dirs: tuple[str, ...] = ()
    original_replicas: Replicas | None = None
    observers: tuple[Index, ...] = ()

    @property
    def names_directories(self) -> bool:
        """Whether a replica is to lie in a certain log directory."""
        return any(directory != ANY_LOG_DIRECTORY for directory in self.log_dirs)


class SavedProposal(msgspec.Struct, frozen=True):
    """The part of a plan file that `drover plan --out` adds: the goal, the plan's hash, and the inputs of the hash.

    `empties` and `fills` are the brokers that the plan empties and fills.
    """

    asked: str
    hash: str
    basis: Basis
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan in the stock tool's format, with Drover's additional fields.

    `empties` and `fills` are the brokers that the plan empties and fills; with a `proposal`, its own fields count.
    """

    partitions: tuple[Entry, ...]
    version: int = 1
    proposal: SavedProposal | None = None
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


class _TopicPartition(msgspec.Struct, frozen=True):
    topic: str
    partition: Index


class _CruiseControlProposal(msgspec.Struct, frozen=True, rename="camel"):
    topic_partition: _TopicPartition
    new_replicas: Replicas


class _CruiseControl(msgspec.Struct, frozen=True):
    """Cruise Control's answer to `rebalance?json=true` and similar requests; its other fields are not read."""

    proposals: tuple[_CruiseControlProposal, ...]


class _Move(msgspec.Struct, frozen=True):
    topic: str
    partition: Index
    before: Replicas
    after: Replicas


class _ShownProposal(msgspec.Struct, frozen=True):
    """A proposal as `drover plan -o json` prints it, reduced to the fields that an alter needs."""

    moves: tuple[_Move, ...]
    refused: bool = False
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


def plan_in(text: str, name: str) -> Plan:
    """Return the plan in a text; only the answer of a program may have no partitions.

    Raises `ConfigurationError` for a text that is not a plan; exceptions of `msgspec` and `json` pass through.
    """
    text = _json_in(text, name)
    fault = fault_of_json(text.encode(errors="surrogatepass"))
    if fault is not None:
        raise ConfigurationError(f"{name}: {fault}")
    document = _decoded(text)
    if isinstance(document, dict) and "partitions" not in document:
        if "proposals" in document:
            return _of_cruise_control(msgspec.convert(document, _CruiseControl))
        if "moves" in document:
            return _of_shown_proposal(msgspec.convert(document, _ShownProposal), name)
        _refuse_others(document, name)
    if isinstance(document, dict) and "brokers" in document:
        raise ConfigurationError(f"{name} is a model of a cluster, not a plan: give it to `drover plan` with --model")
    plan = msgspec.convert(document, Plan)
    if plan.version != 1:
        raise ConfigurationError(f"{name} has version {plan.version}; this Drover reads version 1 only")
    if not plan.partitions:
        raise ConfigurationError(f"{name} names no partition: there is nothing to do")
    return plan


def _of_cruise_control(answer: _CruiseControl) -> Plan:
    # `oldReplicas` begin with the current leader, so that they cannot assert the order of the list.
    return Plan(
        tuple(
            Entry(proposal.topic_partition.topic, proposal.topic_partition.partition, proposal.new_replicas)
            for proposal in answer.proposals
        )
    )


def _of_shown_proposal(shown: _ShownProposal, name: str) -> Plan:
    if shown.refused:
        raise ConfigurationError(f"{name} is not a plan: it holds the reasons why `drover plan` could not make one")
    entries = tuple(
        Entry(move.topic, move.partition, move.after, original_replicas=move.before) for move in shown.moves
    )
    return Plan(entries, empties=shown.empties, fills=shown.fills)


def _refuse_others(document: dict[str, Any], name: str) -> None:
    """Refuse documents of other tools that are easily mistaken for a plan, and say what they are."""
    if "errorMessage" in document:
        message = visible(str(document["errorMessage"]))[:MAX_SHOWN]
        raise ConfigurationError(f"{name} is not a plan: Cruise Control answered with an error: {message}")
    if "progress" in document:
        raise ConfigurationError(
            f"{name} is not a plan yet: Cruise Control is still working. Repeat the request with the User-Task-ID "
            "header of this answer until it lists proposals"
        )
    if "summary" in document:
        raise ConfigurationError(
            f"{name} holds only the summary of Cruise Control's answer, without the moves: repeat the request with "
            "json=true&verbose=true"
        )
    if "topics" in document:
        raise ConfigurationError(
            f"{name} is a list of topics for kafka-reassign-partitions --generate, not a plan: give the output of "
            "--generate, or let `drover plan` propose a plan"
        )
    if "commands" in document:
        raise ConfigurationError(f"{name} is the output of `drover alter --dry-run`: give the plan itself")


def _decoded(text: str) -> Any:
    """Decode JSON; in an answer of Cruise Control, NaN and Infinity stand for loads that it cannot compute."""
    try:
        return msgspec.json.decode(text)
    except UNDECODABLE:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or not document.keys() & {"proposals", "summary", "progress"}:
            raise
        return document


def _json_in(text: str, name: str) -> str:
    """Extract the JSON of the plan from the output of a program."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ConfigurationError(f"{name} is empty")
    _, heading, proposed = text.partition(PROPOSED_HEADING)
    if heading:
        start = proposed.find("{")
        if start < 0:
            raise ConfigurationError(f"{name}: nothing follows the heading {PROPOSED_HEADING!r}")
        _, end = json.JSONDecoder().raw_decode(proposed, start)
        return proposed[start:end]
    if CURRENT_HEADING in text:
        raise ConfigurationError(
            f"{name} holds only the current assignment, not a proposed one; to return to it, save its JSON alone in a "
            "file"
        )
    if _TEXT_OF_CRUISE_CONTROL.search(text):
        raise ConfigurationError(
            f"{name} is Cruise Control's answer as text: repeat the request with json=true&verbose=true"
        )
    maps = list(_maps_in(text))
    if len(maps) > 1:
        raise ConfigurationError(
            f"{name} holds {len(maps)} JSON documents, and a plan is a single one: save the plan alone in a file. "
            "`drover plan --out` writes such a file"
        )
    return maps[0] if maps else text


def _maps_in(text: str) -> Iterator[str]:
    """Yield every map that begins a line; a damaged map extends to the end, so that its error is reported."""
    place = 0
    while (line := _LINE_OF_A_MAP.search(text, place)) is not None:
        try:
            _, place = json.JSONDecoder().raw_decode(text, line.end())
        except ValueError:
            place = len(text)
        yield text[line.end() : place]


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan from a file, and its proposal if `drover plan` has written the file.

    `empties` and `fills` are the brokers that the plan empties and fills. `names_directories` says that `log_dirs`
    were read that have no effect.
    """

    targets: tuple[PartitionTarget, ...]
    proposal: SavedProposal | None = None
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()
    names_directories: bool = False


Lists = dict[tuple[str, int], tuple[int, ...]]


def parse_plan(text: str, name: str, *, ignore_directories: bool = False) -> PlanFile:
    """Parse `{"version": 1, "partitions": [{"topic", "partition", "replicas"}]}`, or the output of `--generate`.

    Of that output, the proposed block counts; other text around the plan is ignored. Three extensions of the stock
    format are read: `replicas` may be null, which stops that partition's move; `original_replicas` (KIP-236) asserts
    the current list; and `proposal` is the part that `drover plan --out` adds. Also reads Cruise Control's JSON and the
    output of `drover plan -o json`, which may have no partitions. With `ignore_directories`, `log_dirs` may name
    directories; the stock tool of Kafka 4.3 prints them in its rollback files. Raises `ConfigurationError` that names
    the file and the place; for documents that are easily mistaken for a plan, it says what they are.
    """
    try:
        plan = plan_in(text, name)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} is not in the stock tool's format: {said_of(error)}") from None
    except RecursionError:
        raise ConfigurationError(f"{name} is not a plan: its lists and maps are nested too deeply") from None
    except UNDECODABLE as error:
        raise ConfigurationError(f"{name} is not JSON: {said_of(error)}") from None
    except ValueError as error:
        # From Python's JSON reader, which finds the end of a block; it also refuses numbers of thousands of digits.
        raise ConfigurationError(f"{name} is not JSON: {error}") from None
    _check_entries(plan.partitions, name, ignore_directories=ignore_directories)
    targets = tuple(
        PartitionTarget(
            topic=entry.topic,
            partition=entry.partition,
            replicas=entry.replicas,
            original_replicas=entry.original_replicas,
        )
        for entry in plan.partitions
    )
    goal = plan if plan.proposal is None else plan.proposal
    names_directories = any(entry.names_directories for entry in plan.partitions)
    return PlanFile(targets, plan.proposal, goal.empties, goal.fills, names_directories)


def lists_of(plan: PlanFile, name: str) -> Lists:
    """Return the replica lists of a plan. Raises `ConfigurationError` for a plan that stops moves."""
    lists: Lists = {}
    for target in plan.targets:
        if target.replicas is None:
            raise ConfigurationError(
                f"{name} stops the move of {target.key}: only plans that give replicas can be judged"
            )
        lists[target.topic, target.partition] = target.replicas
    return lists


def stock_json(lists: Iterable[tuple[str, int, Sequence[int]]]) -> str:
    """Format replica lists in the stock tool's format, one partition to a line, so that people can edit them."""
    entries = ({"topic": topic, "partition": number, "replicas": replicas} for topic, number, replicas in lists)
    return f'{{"version": 1, "partitions": [\n{_entry_lines(entries)}\n]}}\n'


def proposal_json(targets: Iterable[PartitionTarget], proposal: SavedProposal) -> str:
    """Format a proposal in the stock tool's format; the stock tool ignores Drover's additional fields."""
    partitions = _entry_lines(msgspec.to_builtins(target) for target in targets)
    added = msgspec.json.encode(proposal).decode()
    return f'{{"version": 1, "partitions": [\n{partitions}\n],\n"proposal": {added}}}\n'


def _entry_lines(entries: Iterable[object]) -> str:
    return ",\n".join(f"  {msgspec.json.encode(entry).decode()}" for entry in entries)


def _check_entries(entries: Iterable[Entry], name: str, *, ignore_directories: bool) -> None:
    seen = set()
    for entry in entries:
        where = f"{entry.topic}:{entry.partition}"
        if where in seen:
            raise ConfigurationError(f"{name} names partition {where} twice")
        seen.add(where)
        if entry.replicas == ():
            raise ConfigurationError(f"{name}: {where} has no replicas")
        if entry.log_dirs and len(entry.log_dirs) != len(entry.replicas or ()):
            raise ConfigurationError(f"{name}: {where} must have as many log_dirs as replicas")
        if entry.observers:
            raise ConfigurationError(
                f"{name}: {where} names observers, which only Confluent's brokers have: leave out `observers`, and "
                "list only full replicas"
            )
        if entry.names_directories and not ignore_directories:
            raise ConfigurationError(
                f'{name}: {where} names a log directory, but Drover moves replicas between brokers only: write "any" '
                "or leave out `log_dirs`"
            )


plan_file_type = NamedPath(dir_okay=False, allow_dash=True)


def read_plans(files: Sequence[Path]) -> PlanFile:
    """Read the files as one plan; `-` is standard input. Only a single file keeps its proposal.

    Ends the command with `DONE` if no file asks for a move; an answer of Cruise Control may be empty. Raises
    `ConfigurationError` for a file that is not a plan, and for a partition that two files name.
    """
    if len(set(files)) < len(files):
        raise click.UsageError("a PLAN.json is named twice: name each file once (- is standard input)")
    plans = [parse_plan(read_text(file, "plan"), str(file)) for file in files]
    named: dict[object, Path] = {}
    for file, plan in zip(files, plans, strict=True):
        for target in plan.targets:
            if target.key in named:
                raise ConfigurationError(f"{named[target.key]} and {file} both name partition {target.key}: choose one")
            named[target.key] = file
    if not named:
        say(f"{name_of(files)} asks for no move: there is nothing to do.", err=True)
        raise click.exceptions.Exit(ExitCode.DONE)
    if len(plans) == 1:
        return plans[0]
    return PlanFile(
        tuple(target for plan in plans for target in plan.targets),
        empties=tuple(sorted({broker for plan in plans for broker in plan.empties})),
        fills=tuple(sorted({broker for plan in plans for broker in plan.fills})),
    )


def name_of(files: Sequence[Path]) -> str:
    """Return the name of these files in messages."""
    return listed(files)
