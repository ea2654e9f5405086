"""PURE: the documents that people give as a plan: which JSON in a text is meant, and what it is."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from drover.errors import ConfigurationError
from drover.events.bounds import visible
from drover.events.fields import Index, Replicas
from drover.events.undecodable import UNDECODABLE
from drover.events.words import fault_of_json
from drover.planner.proposal import Basis

PROPOSED_HEADING = "Proposed partition reassignment configuration"
CURRENT_HEADING = "Current partition replica assignment"
MAX_SHOWN = 300
# As in `orders-0, oldLeader: 1, [1, 2] -> [3, 4]`.
_TEXT_OF_CRUISE_CONTROL = re.compile(r"\{[^{}\"\n]*, oldLeader: ")
_LINE_OF_A_MAP = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition of a plan; `observers` are Confluent's, and Apache Kafka has none."""

    topic: str
    partition: Index
    replicas: Replicas | None
    log_dirs: tuple[str, ...] = ()
    original_replicas: Replicas | None = None
    observers: tuple[Index, ...] = ()


class SavedProposal(msgspec.Struct, frozen=True):
    """The part of a plan file that `drover plan --to` adds: the goal, the plan's hash, and what the hash covers.

    `empties` and `fills` are the brokers that the plan empties and fills.
    """

    asked: str
    hash: str
    basis: Basis
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan in the stock tool's format, with what Drover adds to it.

    `empties` and `fills` are the brokers that it empties and fills, where no proposal says so.
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
    """A proposal as `drover plan -o json` prints it, without the fields that no alter needs."""

    moves: tuple[_Move, ...]
    refused: bool = False
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


def plan_in(text: str, name: str) -> Plan:
    """Return the plan in a text; only programs that answered with no move give one without partitions.

    Raises `ConfigurationError` for what is no plan, and whatever `msgspec` and `json` raise for what is no JSON.
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
        raise ConfigurationError(f"{name} is a model of a cluster, and no plan: give it to `drover plan` with --model")
    plan = msgspec.convert(document, Plan)
    if plan.version != 1:
        raise ConfigurationError(f"{name} has version {plan.version}; only version 1 is known")
    if not plan.partitions:
        raise ConfigurationError(f"{name} names no partition: there is nothing to do")
    return plan


def _of_cruise_control(answer: _CruiseControl) -> Plan:
    # Its `oldReplicas` begin with the leader of the moment, and so assert nothing about the order.
    return Plan(
        tuple(
            Entry(one.topic_partition.topic, one.topic_partition.partition, one.new_replicas)
            for one in answer.proposals
        )
    )


def _of_shown_proposal(shown: _ShownProposal, name: str) -> Plan:
    if shown.refused:
        raise ConfigurationError(f"{name} is no plan: it says why `drover plan` could not make one")
    entries = tuple(Entry(one.topic, one.partition, one.after, original_replicas=one.before) for one in shown.moves)
    return Plan(entries, empties=shown.empties, fills=shown.fills)


def _refuse_others(document: dict[str, Any], name: str) -> None:
    """Say what a document is that people take for a plan."""
    if "errorMessage" in document:
        message = visible(str(document["errorMessage"]))[:MAX_SHOWN]
        raise ConfigurationError(f"{name} is no plan: Cruise Control answered with an error: {message}")
    if "progress" in document:
        raise ConfigurationError(
            f"{name} is no plan yet: Cruise Control is still at work. Ask for the same again, with the User-Task-ID "
            "from the header of this answer, until it lists proposals"
        )
    if "summary" in document:
        raise ConfigurationError(
            f"{name} holds the summary of Cruise Control's answer, and not the moves: ask again with "
            "json=true&verbose=true"
        )
    if "topics" in document:
        raise ConfigurationError(
            f"{name} is a list of topics for kafka-reassign-partitions --generate, and no plan: give what that prints, "
            "or let `drover plan` propose one"
        )
    if "commands" in document:
        raise ConfigurationError(f"{name} is what `drover alter --dry-run` printed: give the plan itself")


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
    """Extract the JSON of the plan from what programs print around it."""
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
            f"{name} holds only the current assignment, no proposed one; to go back to it, put its JSON alone into a "
            "file"
        )
    if _TEXT_OF_CRUISE_CONTROL.search(text):
        raise ConfigurationError(f"{name} is Cruise Control's answer as text: ask again with json=true&verbose=true")
    maps = list(_maps_in(text))
    if len(maps) > 1:
        raise ConfigurationError(
            f"{name} holds {len(maps)} JSON documents, and a plan is one: put the plan alone into a file. "
            "`drover plan` writes one with --to"
        )
    return maps[0] if maps else text


def _maps_in(text: str) -> Iterator[str]:
    """Cut out every map that begins a line; what is damaged goes to the end, so that its fault is told."""
    place = 0
    while (line := _LINE_OF_A_MAP.search(text, place)) is not None:
        try:
            _, place = json.JSONDecoder().raw_decode(text, line.end())
        except ValueError:
            place = len(text)
        yield text[line.end() : place]
