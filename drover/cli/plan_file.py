"""PURE: the stock tool's reassignment file, and the commands that carry its partitions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from drover.cli.plan_formats import Entry, SavedProposal, plan_in
from drover.errors import ConfigurationError
from drover.events.bounds import MAX_PARTITIONS
from drover.events.codec import MAX_COMMAND_BYTES
from drover.events.commands import Alter, PartitionTarget
from drover.events.plans import Priority, Stepping
from drover.events.undecodable import UNDECODABLE
from drover.events.words import said_of

ANY_LOG_DIRECTORY = "any"
# What the fields beside `partitions` may take of a command; they are bounded by the contract.
ENVELOPE_BYTES = 64 * 1024
# A decision says more about each partition than the command does, and has a bound of its own.


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that was read, and the proposal that it was, if `drover plan` has written it.

    `empties` and `fills` are the brokers that it says to empty and to fill.
    """

    targets: tuple[PartitionTarget, ...]
    proposal: SavedProposal | None = None
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


Lists = dict[tuple[str, int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """The request of one `drover alter`, besides the partitions."""

    id: str
    cluster: str
    by: str
    reason: str
    plan: str | None = None
    throttle_bytes_per_second: int | None = None
    throttle_may_rise_to: int | None = None
    stepping: Stepping | None = None
    priority: Priority | None = None
    queue: bool = False
    allow_drover_topics: bool = False
    allow_emptied_brokers: bool = False
    drops_unregistered: bool = False
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


def parse_plan(text: str, name: str) -> PlanFile:
    """Read `{"version": 1, "partitions": [{"topic", "partition", "replicas"}]}`, or the output of `--generate`.

    Of that output the proposed block is taken; text around a plan is passed over. Three things are read beyond the
    stock format: `replicas` may be null, which stops that partition's move, `original_replicas` (KIP-236) is an
    assertion about the present list, and `proposal` is what `drover plan --to` adds. Cruise Control's JSON and what
    `drover plan -o json` prints are read too, and may name no partition. Raises `ConfigurationError` that names the
    file and the place and, for what people take for a plan, says what it is.
    """
    try:
        plan = plan_in(text, name)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} is not in the stock tool's format: {said_of(error)}") from None
    except RecursionError:
        raise ConfigurationError(f"{name} is no plan: its lists and maps are nested too deeply") from None
    except UNDECODABLE as error:
        raise ConfigurationError(f"{name} is not JSON: {said_of(error)}") from None
    except ValueError as error:
        # Of Python's reader, which finds the end of a block: it refuses a number of thousands of digits, too.
        raise ConfigurationError(f"{name} is not JSON: {error}") from None
    _check_entries(plan.partitions, name)
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
    return PlanFile(targets, plan.proposal, goal.empties, goal.fills)


def lists_of(plan: PlanFile, name: str) -> Lists:
    """Return the lists that a plan asks for. Raises `ConfigurationError` for one that stops moves, which has none."""
    lists: Lists = {}
    for target in plan.targets:
        if target.replicas is None:
            raise ConfigurationError(f"{name} stops the move of {target.key}: only plans that move can be judged")
        lists[target.topic, target.partition] = target.replicas
    return lists


def stock_json(lists: Iterable[tuple[str, int, Sequence[int]]]) -> str:
    """Write replica lists in the stock tool's format, one partition to a line, so that people can edit them."""
    entries = ({"topic": topic, "partition": number, "replicas": replicas} for topic, number, replicas in lists)
    return f'{{"version": 1, "partitions": [\n{_lines(entries)}\n]}}\n'


def proposal_json(targets: Iterable[PartitionTarget], proposal: SavedProposal) -> str:
    """Write a proposal in the stock tool's format, which ignores what Drover adds to it."""
    partitions = _lines(msgspec.to_builtins(target) for target in targets)
    added = msgspec.json.encode(proposal).decode()
    return f'{{"version": 1, "partitions": [\n{partitions}\n],\n"proposal": {added}}}\n'


def _lines(entries: Iterable[object]) -> str:
    return ",\n".join(f"  {msgspec.json.encode(entry).decode()}" for entry in entries)


def _check_entries(entries: Iterable[Entry], name: str) -> None:
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
                f"{name}: {where} names observers, which only Confluent's brokers have: leave them out, and write the "
                "replicas alone"
            )
        if any(directory != ANY_LOG_DIRECTORY for directory in entry.log_dirs):
            raise ConfigurationError(
                f'{name}: {where} names a log directory; Drover moves between brokers only: write "any" or leave '
                "log_dirs out"
            )


def alter_commands(request: AlterRequest, targets: Sequence[PartitionTarget]) -> tuple[Alter, ...]:
    """Make the commands that carry these partitions: one if it fits, else several under `id`, `id.2`, `id.3`.

    All but the last say that more will follow, so that the plan is not finished in between.
    """
    parts = _split(targets, MAX_COMMAND_BYTES - ENVELOPE_BYTES)
    plan = request.plan if len(parts) == 1 else request.plan or request.id
    return tuple(
        Alter(
            id=request.id if number == 1 else f"{request.id}.{number}",
            cluster=request.cluster,
            by=request.by,
            reason=request.reason,
            partitions=part,
            plan=plan,
            more=number < len(parts),
            throttle_bytes_per_second=request.throttle_bytes_per_second,
            throttle_may_rise_to=request.throttle_may_rise_to,
            stepping=request.stepping,
            priority=request.priority,
            queue=request.queue,
            allow_drover_topics=request.allow_drover_topics,
            allow_emptied_brokers=request.allow_emptied_brokers,
            empties=request.empties,
            fills=request.fills,
        )
        for number, part in enumerate(parts, start=1)
    )


def _split(targets: Sequence[PartitionTarget], room: int) -> list[tuple[PartitionTarget, ...]]:
    parts: list[tuple[PartitionTarget, ...]] = []
    part: list[PartitionTarget] = []
    size = 0
    for target in targets:
        weight = len(msgspec.msgpack.encode(target))
        if part and (size + weight > room or len(part) >= MAX_PARTITIONS):
            parts.append(tuple(part))
            part, size = [], 0
        part.append(target)
        size += weight
    return [*parts, tuple(part)]
