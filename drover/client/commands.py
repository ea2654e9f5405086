"""Commands before they are sent: their ids, checks and bytes, and the parts of a plan that is too large for one."""

import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from drover.errors import ConfigurationError
from drover.events.bounds import MAX_PARTITIONS, visible
from drover.events.codec import MAX_COMMAND_BYTES, Malformed, decode_command, encode_command
from drover.events.commands import TYPES_BY_TOPIC, Alter, AnyCommand, Command, Freeze, PartitionTarget
from drover.events.python_calls import call_of, form_of
from drover.events.topics import TopicNames

# Bytes of a command that are reserved for the fields other than `partitions`; the contract bounds these.
ENVELOPE_BYTES = 64 * 1024


def split(whole: Alter) -> tuple[Alter, ...]:
    """Split a command that is too large for one message into several with the ids `id`, `id.2`, `id.3`.

    All but the last say that more will follow, so that the plan does not end in between.
    """
    parts = _split(whole.partitions, MAX_COMMAND_BYTES - ENVELOPE_BYTES)
    if len(parts) == 1:
        return (whole,)
    return tuple(
        msgspec.structs.replace(
            whole,
            id=whole.id if number == 1 else f"{whole.id}.{number}",
            partitions=part,
            plan=whole.plan_name,
            more=number < len(parts),
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


def new_id(kind: str) -> str:
    """Return a unique id that contains the kind of command and the time."""
    return f"{kind}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def check_types(commands: Iterable[object]) -> None:
    """Raise `TypeError`, with the right call, for anything that is no command."""
    for command in commands:
        if not isinstance(command, Command):
            raise TypeError(f"a {type(command).__name__} is not a command: write {_call_for(command)}")


def _call_for(value: object) -> str:
    try:
        return call_of(msgspec.convert(value, AnyCommand))
    except msgspec.ValidationError:
        return f"a struct such as {form_of(Freeze)}"


def fault_of_command(command: Command) -> str | None:
    """Say why no worker would accept a command; None for a command that workers can read."""
    try:
        payload = encode_command(command)
    except OverflowError:
        # The number is too large for MessagePack; reading it as JSON gives an error with the field and its bounds.
        payload = encode_command(command, as_json=True)
    except UnicodeEncodeError as error:
        # A command line had bytes that are not UTF-8, for instance from a terminal with Latin-1.
        return f"'{visible(str(error.object))}' is not UTF-8 text"
    read = decode_command(payload)
    return read.detail if isinstance(read, Malformed) else None


def payload_of(command: Command) -> bytes:
    """Encode a command; `ConfigurationError` for one that no worker would read."""
    fault = fault_of_command(command)
    if fault is not None:
        raise ConfigurationError(f"no worker would accept the command {command.id}: {fault}")
    return encode_command(command)


def topic_of(command: Command, topics: TopicNames) -> str:
    """Return the topic for commands of this type."""
    for topic, types in zip(topics.commands, TYPES_BY_TOPIC, strict=True):
        if isinstance(command, types):
            return topic
    raise AssertionError(f"{type(command).__name__} is not a command")
