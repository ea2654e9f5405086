"""PURE: a command that somebody is about to send from the page: reading it, and what it would mean now.

The meaning is a trial: the decision that the shard's owner would make of the folded state, in groups of partitions. It
promises nothing: guards that need a look at the cluster are judged by the owner alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from drover.capability.decision import Decision, Facts
from drover.reassignment.phase import Phase
from drover.reassignment.state import Reassignment
from drover.shard.decide import decide
from drover.shard.deferral import deferred_commands
from drover.state.cluster import ClusterState
from drover.web.ranges import ranges
from events.base import PartitionEvent
from events.clusters import ClusterUnfrozen
from events.codec import Malformed, decode_command
from events.commands import AnyCommand, Cancel, ChangeLimits, Freeze, PausePlan, ResumePlan, Throttle, Unfreeze
from events.partitions import TopicPartition
from events.reassignments import ReassignmentRolledBack, ReassignmentStopped, RollbackRequested, StopRequested

# The commands that the page sends; the contract has more.
SENDABLE = (Freeze, Unfreeze, Cancel, Throttle, ChangeLimits, PausePlan, ResumePlan)
# What these touch must have been shown. A freeze, a pause and a limit hold for whatever comes meanwhile, too.
SHOWN_FIRST = (Unfreeze, Cancel, Throttle, ResumePlan)
# Typed by whoever acts on a whole cluster at once.
EVERYTHING = "everything"
NO_REASON = "not given yet"

Groups = Mapping[str, Iterable[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Trial:
    """The meaning of a command now: its partitions in groups that say what becomes of them, and sentences.

    `offset` is that of the last record that was folded, on `shard`; `refusals` keep the command, or a part of it, from
    being accepted.
    """

    shard: int
    offset: int
    groups: tuple[tuple[str, tuple[TopicPartition, ...]], ...]
    remarks: tuple[str, ...]
    refusals: tuple[str, ...]
    needs_word: bool

    @property
    def keys(self) -> frozenset[TopicPartition]:
        """Every partition that is touched."""
        return frozenset(key for _, keys in self.groups for key in keys)

    def document(self) -> dict[str, Any]:
        """Return it for the browser: the very partitions, those of a topic as ranges."""
        return {
            "shard": self.shard,
            "offset": self.offset,
            "groups": [{"what": what, "count": len(keys), "topics": ranges(keys)} for what, keys in self.groups],
            "partitions": len(self.keys),
            "remarks": self.remarks,
            "refusals": self.refusals,
            "word": EVERYTHING if self.needs_word else None,
        }


def read_command(fields: Mapping[str, Any], by: str) -> AnyCommand | Malformed:
    """Read a command as the contract has it, for a requester who is known."""
    if "by" in fields:
        return Malformed("by is the user whom the proxy names, and nobody else")
    command = decode_command(msgspec.json.encode({**fields, "by": by}), "application/json")
    if isinstance(command, (Malformed, *SENDABLE)):
        return command
    return Malformed(f"the page does not send {type(command).__struct_config__.tag}")


def is_same(one: AnyCommand, other: AnyCommand) -> bool:
    """Tell whether two commands ask for the same, whatever their ids and reasons."""
    return type(one) is type(other) and _bare(one) == _bare(other)


def _bare(command: AnyCommand) -> AnyCommand:
    return replace(command, id="-", reason="-")


def needs_word(command: AnyCommand) -> bool:
    """Tell whether a command is about everything at once."""
    return isinstance(command, Cancel | Unfreeze) and command.all


def trial(command: AnyCommand, state: ClusterState, shard: int, offset: int) -> Trial:
    """Decide a command on trial; nothing is changed."""
    decision = decide(command, state, Facts(deferred=deferred_commands(state)))
    groups = {what: tuple(sorted(keys)) for what, keys in _groups(command, state, decision).items()}
    return Trial(
        shard,
        offset,
        tuple((what, keys) for what, keys in groups.items() if keys),
        (*decision.remarks, *_remarks(command, state, decision)),
        tuple(dict.fromkeys(refusal.detail for refusal in decision.refusals)),
        needs_word(command),
    )


def _groups(command: AnyCommand, state: ClusterState, decision: Decision) -> Groups:
    match command:
        case Cancel():
            return _cancelled(decision)
        case Throttle() if not decision.refusals:
            return _throttled(command, state)
        case Freeze():
            return _withheld(state, "withheld: no start, and no further step", "going on with the step that copies")
        case Unfreeze() if any(isinstance(event, ClusterUnfrozen) for event in decision.events):
            return _withheld(state, "free to start, or to take the next step", "copying already")
        case PausePlan() if decision.events:
            waits, goes_on = "withheld: no start, and no further step", "going on with the step that copies"
            return _of_plan(command, state, waits, goes_on)
        case ResumePlan() if decision.events:
            return _of_plan(command, state, "free to start, or to take the next step", "copying already")
        case ChangeLimits() if decision.events:
            return _withheld(state, "held to it from the next step on", "going on with the step that copies")
        case _:
            return {}


def _cancelled(decision: Decision) -> Groups:
    kinds: dict[TopicPartition, set[type]] = defaultdict(set)
    for event in decision.events:
        if isinstance(event, PartitionEvent):
            kinds[event.key].add(type(event))
    found: dict[str, list[TopicPartition]] = defaultdict(list)
    for key in decision.accepted:
        found[_fate(kinds.get(key, set()))].append(key)
    found["on the way out already"] = list(decision.unchanged)
    return found


def _fate(kinds: set[type]) -> str:
    if kinds & {ReassignmentRolledBack, ReassignmentStopped}:
        return "to end at once: nothing was changed"
    if RollbackRequested in kinds:
        return "to go back to the original replicas, in their order"
    if StopRequested in kinds:
        return "to stop, and keep what is in sync"
    return "to leave the queue, or withdrawn before the beginning"


def _throttled(command: Throttle, state: ClusterState) -> Groups:
    mine = [entry for entry in state.reassignments.values() if entry.plan == command.plan]
    return {
        "to copy under it at once": [entry.key for entry in mine if entry.in_flight],
        "to start under it": [entry.key for entry in mine if not entry.in_flight],
    }


def _of_plan(command: PausePlan | ResumePlan, state: ClusterState, waits: str, goes_on: str) -> Groups:
    mine = [entry for entry in state.reassignments.values() if entry.plan == command.plan and not entry.is_cancelled]
    return {
        waits: [entry.key for entry in mine if _waits(entry)],
        goes_on: [entry.key for entry in mine if not _waits(entry)],
        "in the queue": [key for key, entry in state.queue.items() if entry.plan == command.plan],
    }


def _withheld(state: ClusterState, waits: str, goes_on: str) -> Groups:
    entries = state.reassignments.values()
    return {
        waits: [entry.key for entry in entries if _waits(entry)],
        goes_on: [entry.key for entry in entries if not _waits(entry) and not entry.is_cancelled],
        "on the way out, frozen or not": [entry.key for entry in entries if entry.is_cancelled],
        "in the queue": list(state.queue),
    }


def _waits(entry: Reassignment) -> bool:
    return not entry.is_cancelled and entry.phase in {Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED}


def _remarks(command: AnyCommand, state: ClusterState, decision: Decision) -> Iterator[str]:
    if isinstance(command, Unfreeze) and decision.events:
        ending = state.freezes if command.all else [one for one in state.freezes if one.by == command.by]
        yield from (f"the freeze of {one.by} ends ({one.reason})" for one in ending)
    if isinstance(command, Throttle) and not decision.refusals:
        known = state.cluster_throttle
        of_cluster = None if known is None else known.bytes_per_second
        before = of_cluster if command.plan is None else state.plans[command.plan].throttle_bytes_per_second
        yield "before, it had none" if before is None else f"before, it was {before:,} bytes per second"
    if isinstance(command, Cancel) and command.plan is not None and not decision.refusals:
        yield f"plan {command.plan} is closed: nothing can be added to it"
    yield from (f"the command {name}, which waits for others, is withdrawn" for name in decision.withdrawn)
