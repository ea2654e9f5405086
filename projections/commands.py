"""PURE: turn nodes that operators write into commands or faults, and encode the answers beside them.

The identity of a node's version becomes the command's id, so that it takes effect once, no matter how often and by how
many processes it is read (R5).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from drover.events.bounds import INTAKE_BY, INTAKE_ID_PREFIX, shortened
from drover.events.bounds import fault_of as fault_of_command
from drover.events.codec import MAX_COMMAND_BYTES, encode_command
from drover.events.commands import (
    Alter,
    AnyCommand,
    Blacklist,
    Cancel,
    Freeze,
    PartitionTarget,
    RequestRefused,
    Unfreeze,
)
from drover.events.fields import Index, Replicas, TopicName
from drover.events.records import Outcome
from drover.events.refusals import Refusal, RefusalCode
from drover.events.undecodable import UNDECODABLE
from drover.events.words import said_of
from drover.projections.store import Examined

PLAN = "/admin/reassign_partitions"
QUEUE = "/admin/reassign_partitions_queue"
CANCEL = "/admin/cancel_reassignment_in_progress"
FREEZE = "/admin/reassign_cancel"
BLACKLIST = "/config/brokers/<default>"
ERROR_SUFFIX = ".error"
# The most partitions and bytes of one command, as with `drover alter`.
MOST_PARTITIONS = 5000
MOST_BYTES = 512_000
# The most refusals in an error node, and the most characters that it quotes.
MOST_REFUSALS = 100
MOST_WORDS = 500
_encoder = msgspec.json.Encoder(order="sorted")
_Kind = TypeVar("_Kind")
# More digits than ZooKeeper counts with; `int` takes no text of thousands.
_REQUEST = re.compile(r"request_([0-9]{1,18})")


class Fault(NamedTuple):
    """The reason why a node cannot become a command."""

    code: RefusalCode
    detail: str


# The answers to writes over a document of Drover's. A plan node that is not empty ignores writes (R455-12),
# and a queue is written while its node is not there (R236-12); here both are answered.
BUSY = {
    PLAN: Fault(
        RefusalCode.REASSIGNMENT_IN_PROGRESS,
        "the plan that stood there is under way: write the next one when the node is gone, or ask for a cancel",
    ),
    QUEUE: Fault(
        RefusalCode.REASSIGNMENT_IN_PROGRESS,
        "the queue that stood there is not empty: write when the node is gone, or queue more with "
        "`drover alter --queue`",
    ),
}


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: TopicName
    partition: Index
    replicas: Replicas
    original_replicas: Replicas | None = None
    log_dirs: tuple[str, ...] = ()


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partitions: tuple[_Entry, ...]
    version: int = 1


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    assignment: dict[TopicName, dict[str, Replicas]]
    version: int = 1
    legacy: bool = False


class _Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    preferred_leader_blacklist: str


class _Blacklist(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    config: _Config
    version: int = 1


class _UnreadableError(Exception):
    """A node cannot be read; the message has the reason. Never leaves this module."""


def identity_of(path: str, node: Examined) -> str:
    """Return the id of a version of a node, which becomes the id of its command.

    The time is part of it because another ensemble counts its transactions from the start, and the path because one
    transaction may write several nodes. The version of an unreadable node is unknown.
    """
    place = f"{crc32(path.encode()):x}"
    if node.data is None:
        return f"{INTAKE_ID_PREFIX}denied-{place}"
    return f"{earlier_identity_of(node)}-{place}"


def earlier_identity_of(node: Examined) -> str:
    """Return the id of a version of a node without its path; older logs have outcomes under such ids."""
    return f"{INTAKE_ID_PREFIX}{node.czxid:x}-{node.mzxid:x}-{node.mtime_ms:x}"


def request_number(name: str) -> int | None:
    """Parse the number in a request's name below `REQUESTS` (R236-20); None for any other name."""
    match = _REQUEST.fullmatch(name)
    return None if match is None else int(match[1])


def command_of(path: str, node: Examined, cluster: str) -> AnyCommand | Fault:
    """Return the command that an operator requests by writing this node.

    The content of a cancel or freeze node does not matter, only its existence (R236-5, R236-9).
    """
    if node.data is None:
        # Its version is unknown, too, so a command could be carried out more than once.
        return Fault(RefusalCode.DENIED, "the node's ACL does not let Drover read it: write it with one that does")
    envelope = _envelope(path, node, cluster)
    if path == CANCEL:
        return Cancel(**envelope, mode="rollback", all=True)
    if path == FREEZE:
        return Freeze(**envelope)
    if len(node.data) > MOST_BYTES:
        detail = f"the node has {len(node.data)} bytes, but at most {MOST_BYTES} are read: split it"
        return Fault(RefusalCode.TOO_LARGE, detail)
    try:
        if path == BLACKLIST:
            blacklist = Blacklist(**envelope, brokers=_brokers(_convert(_json(node.data), _Blacklist)))
            fault = fault_of_command(blacklist)
            return blacklist if fault is None else Fault(RefusalCode.MALFORMED, fault)
        targets, is_legacy = _request(node.data) if path not in {PLAN, QUEUE} else (_plan(node.data), path == PLAN)
        if len(targets) > MOST_PARTITIONS:
            detail = f"{len(targets)} partitions, at most {MOST_PARTITIONS} are taken at once: split it"
            return Fault(RefusalCode.TOO_LARGE, detail)
        # R455-12: a plan at the old path is accepted only when nothing is in progress.
        alter = Alter(**envelope, partitions=targets, only_when_idle=is_legacy, queue=path == QUEUE)
        fault = fault_of_command(alter)
        if fault is not None:
            return Fault(RefusalCode.MALFORMED, fault)
        # The command is larger than the request, since it repeats the topic's name for each partition.
        size_bytes = len(encode_command(alter))
        detail = f"as a command it has {size_bytes} bytes, but at most {MAX_COMMAND_BYTES} are allowed: split it"
        return alter if size_bytes <= MAX_COMMAND_BYTES else Fault(RefusalCode.TOO_LARGE, detail)
    except (_UnreadableError, ValueError) as error:
        return Fault(RefusalCode.MALFORMED, shortened(str(error)))


def refused_request(path: str, node: Examined, fault: Fault, cluster: str) -> RequestRefused:
    """Return the record for a node that cannot become a command."""
    detail = shortened(fault.detail)
    return RequestRefused(**_envelope(path, node, cluster), path=shortened(path), code=fault.code, detail=detail)


def _envelope(path: str, node: Examined, cluster: str) -> dict[str, Any]:
    reason = f"{shortened(path)} was written in ZooKeeper"
    return {"id": identity_of(path, node), "cluster": cluster, "by": INTAKE_BY, "reason": reason}


def command_of_removal(path: str, mark: str, cluster: str) -> AnyCommand | None:
    """Return the command that an operator requests by removing the document with this mark, if any."""
    envelope: Any = {"id": f"{INTAKE_ID_PREFIX}gone-{mark}", "cluster": cluster, "by": INTAKE_BY}
    reason = f"{path} was removed in ZooKeeper"
    if path == FREEZE:
        # The document stands for everyone's freezes.
        return Unfreeze(**envelope, reason=reason, all=True)
    if path == BLACKLIST:
        return Blacklist(**envelope, reason=reason, brokers=())
    return None


def fault_of(outcome: Outcome) -> Fault | None:
    """Return the refusals of a command as a fault; None if there are none."""
    if not outcome.refusals:
        return None
    first, count = outcome.refusals[0], len(outcome.refusals)
    whole = count + len(outcome.accepted) + len(outcome.unchanged)
    detail = first.detail if first.key is None else f"{count} of {whole} partitions were refused; {first.detail}"
    return Fault(first.code, detail)


def error_document(node: Examined, fault: Fault, at_ms: int, refusals: Iterable[Refusal] = ()) -> bytes:
    """Encode the result of a version of a node; projections/README.md describes the form."""
    some = [msgspec.structs.asdict(refusal) for refusal in list(refusals)[:MOST_REFUSALS] if refusal.topic is not None]
    document = {"version": 1, "czxid": node.czxid, "mzxid": node.mzxid, "at_ms": at_ms, **fault._asdict()}
    return _encoder.encode({**document, "refusals": some} if some else document)


class _Answered(msgspec.Struct):
    czxid: int
    mzxid: int


def answers(error: bytes | None, node: Examined) -> bool:
    """Whether an error node is about this version of a node."""
    try:
        answered = msgspec.json.decode(error or b"", type=_Answered)
    except UNDECODABLE:
        return False
    return (answered.czxid, answered.mzxid) == (node.czxid, node.mzxid)


def _plan(data: bytes) -> tuple[PartitionTarget, ...]:
    plan = _convert(_json(data), _Plan)
    _check_version(plan.version)
    for entry in plan.partitions:
        if any(directory != "any" for directory in entry.log_dirs):
            raise _UnreadableError(
                f'{entry.topic}:{entry.partition} names a log directory: write "any" or leave log_dirs out'
            )
    return tuple(
        PartitionTarget(
            topic=entry.topic,
            partition=entry.partition,
            replicas=entry.replicas,
            original_replicas=entry.original_replicas,
        )
        for entry in plan.partitions
    )


def _request(data: bytes) -> tuple[tuple[PartitionTarget, ...], bool]:
    """Decode a request (R236-20), with the topics below `assignment` or, as the KIP prints it, beside `legacy`."""
    document = _json(data)
    if isinstance(document, dict) and "assignment" not in document:
        flags = {key: value for key, value in document.items() if not isinstance(value, dict)}
        document = {**flags, "assignment": {key: value for key, value in document.items() if isinstance(value, dict)}}
    request = _convert(document, _Request)
    _check_version(request.version)
    targets = tuple(
        PartitionTarget(topic=topic, partition=_number(text), replicas=replicas)
        for topic, partitions in request.assignment.items()
        for text, replicas in partitions.items()
    )
    return targets, request.legacy


def _brokers(parsed: _Blacklist) -> tuple[int, ...]:
    _check_version(parsed.version)
    text = parsed.config.preferred_leader_blacklist.strip()
    return tuple(_broker(part) for part in text.split(",")) if text else ()


def _broker(text: str) -> int:
    number = _number(text.strip())
    if number >= 2**31:
        raise _UnreadableError(f"{number} is not a broker id")
    return number


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode(), object_pairs_hook=_once)
    except RecursionError:
        raise _UnreadableError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise _UnreadableError(f"this is not JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse repeated keys, of which JSON readers would silently use the last."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        times = Counter(name for name, _ in pairs)
        raise _UnreadableError(f"{next(name for name in times if times[name] > 1)!r} appears twice")
    return fields


def _convert(value: object, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _UnreadableError(said_of(error)) from None


def _check_version(version: int) -> None:
    if version != 1:
        raise _UnreadableError(f"version {version} is not known, only 1")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise _UnreadableError(f"{text[:MOST_WORDS]!r} is not a number")
    return int(text)
