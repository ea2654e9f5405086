"""PURE: the document of one reassignment's node, and whether two of them are the same reassignment's.

Fields are declared in alphabetical order, so that a plain encoder writes canonical JSON: a sorting encoder takes twice
as long, and most writes are of these nodes.
"""

import msgspec
from msgspec import UNSET, UnsetType

from drover.events.undecodable import UNDECODABLE
from drover.projections.ownership import REASSIGNMENTS
from drover.state.reassignment import Reassignment

_encoder = msgspec.json.Encoder()


class Blocked(msgspec.Struct, frozen=True, gc=False):
    """The reason why a reassignment is blocked, its details, and its start (ms since the epoch, log time)."""

    detail: str
    since_ms: int
    why: str


class Deferred(msgspec.Struct, frozen=True, gc=False):
    """The deferred cancellation, its author, and the guard that defers it (R236-8)."""

    by: str
    cancel: str
    why: str


class ReassignmentDocument(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The content of a reassignment's node (R236-21); `projections/README.md` documents the fields."""

    blocked: Blocked | UnsetType = UNSET
    cancel: str | UnsetType = UNSET
    created_ms: int
    current_replicas: tuple[int, ...]
    deferred: Deferred | UnsetType = UNSET
    number: int
    original_replicas: tuple[int, ...]
    plan: str
    replicas: tuple[int, ...]
    since_ms: int
    state: str
    step: int | UnsetType = UNSET
    step_replicas: tuple[int, ...] | UnsetType = UNSET
    version: int = 1


def encode_reassignment(reassignment: Reassignment) -> bytes:
    """Encode the document as canonical JSON."""
    block, step, asked = reassignment.block, reassignment.step, reassignment.asked
    return _encoder.encode(
        ReassignmentDocument(
            blocked=UNSET if block is None else Blocked(block.detail, block.since_ms, block.why),
            cancel=reassignment.cancel_mode or UNSET,
            created_ms=reassignment.created_ms,
            current_replicas=reassignment.current,
            deferred=UNSET
            if reassignment.deferred_by is None or asked is None
            else Deferred(asked.by, asked.mode, reassignment.deferred_by),
            number=reassignment.number,
            original_replicas=reassignment.original,
            plan=reassignment.plan,
            replicas=reassignment.target,
            since_ms=reassignment.since_ms,
            state=reassignment.phase,
            step=UNSET if step is None else step.number,
            step_replicas=UNSET if step is None else step.replicas,
        )
    )


class _Numbered(msgspec.Struct):
    number: int = -1


_numbered = msgspec.json.Decoder(_Numbered)


def is_another(path: str, before: bytes, after: bytes) -> bool:
    """Whether a node must be deleted and created again, because its czxid names another reassignment (R236-22)."""
    if not path.startswith(f"{REASSIGNMENTS}/") or not before or not after:
        return False
    try:
        return _numbered.decode(before).number != _numbered.decode(after).number
    except UNDECODABLE:
        return True  # somebody else wrote the node
