"""PURE: the stock tool's reassignment file, and the commands that carry its partitions."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from drover.errors import ConfigurationError
from events.codec import MAX_COMMAND_BYTES
from events.commands import Alter, PartitionTarget

PROPOSED_HEADING = "Proposed partition reassignment configuration"
CURRENT_HEADING = "Current partition replica assignment"
ANY_LOG_DIRECTORY = "any"
# What the fields beside `partitions` may take of a command; they are bounded by the contract.
ENVELOPE_BYTES = 64 * 1024
# A decision says more about each partition than the command does, and has a bound of its own.
MAX_PARTITIONS = 5000


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    partition: int
    replicas: tuple[int, ...] | None
    log_dirs: tuple[str, ...] = ()
    original_replicas: tuple[int, ...] | None = None


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partitions: tuple[_Entry, ...]
    version: int = 1


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """The request of one `drover alter`, besides the partitions."""

    id: str
    cluster: str
    by: str
    reason: str
    plan: str | None = None
    throttle_bytes_per_second: int | None = None
    queue: bool = False
    after: tuple[str, ...] = ()
    allow_drover_topics: bool = False


def parse_plan(text: str, name: str) -> tuple[PartitionTarget, ...]:
    """Read `{"version": 1, "partitions": [{"topic", "partition", "replicas"}]}`, or the output of `--generate`.

    Of that output the proposed block is taken. Two things are read beyond the stock format: `replicas` may be null,
    which stops that partition's move, and `original_replicas` (KIP-236) is an assertion about the present list. Raises
    `ConfigurationError` that names the file and the place.
    """
    try:
        plan = msgspec.json.decode(_document(text, name), type=_Plan)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} is not in the stock tool's format: {error}") from None
    except (msgspec.DecodeError, json.JSONDecodeError) as error:
        raise ConfigurationError(f"{name} is not JSON: {error}") from None
    if plan.version != 1:
        raise ConfigurationError(f"{name} has version {plan.version}; only version 1 is known")
    if not plan.partitions:
        raise ConfigurationError(f"{name} names no partition: there is nothing to do")
    _check_entries(plan.partitions, name)
    return tuple(
        PartitionTarget(
            topic=entry.topic,
            partition=entry.partition,
            replicas=entry.replicas,
            original_replicas=entry.original_replicas,
        )
        for entry in plan.partitions
    )


def stock_json(lists: Iterable[tuple[str, int, Sequence[int]]]) -> str:
    """Write replica lists in the stock tool's format, one partition to a line, so that people can edit them."""
    entries = ({"topic": topic, "partition": number, "replicas": replicas} for topic, number, replicas in lists)
    lines = ",\n".join(f"  {msgspec.json.encode(entry).decode()}" for entry in entries)
    return f'{{"version": 1, "partitions": [\n{lines}\n]}}\n'


def _document(text: str, name: str) -> str:
    """Extract the JSON of the plan from pasted output."""
    _, heading, proposed = text.partition(PROPOSED_HEADING)
    if heading:
        start = proposed.find("{")
        if start < 0:
            raise ConfigurationError(f"{name}: nothing follows the heading {PROPOSED_HEADING!r}")
        _, end = json.JSONDecoder().raw_decode(proposed, start)
        return proposed[start:end]
    if text.lstrip().startswith(CURRENT_HEADING):
        raise ConfigurationError(f"{name} holds only the current assignment, no proposed one")
    return text


def _check_entries(entries: Iterable[_Entry], name: str) -> None:
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
            queue=request.queue,
            after=request.after,
            allow_drover_topics=request.allow_drover_topics,
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
