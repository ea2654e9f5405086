"""PURE: the predicted effect of a command that a user is about to send from the page.

A trial makes the decision that the shard's owner would make on the folded state, and groups the partitions by effect.
It is no promise: only the owner judges guards that depend on the cluster.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drover.decide.commands import decide
from drover.decide.decision import Decision, Facts
from drover.events.base import PartitionEvent
from drover.events.clusters import ClusterUnfrozen, HoldRole
from drover.events.commands import (
    AnyCommand,
    Cancel,
    ChangeLimits,
    Freeze,
    HoldBroker,
    PausePlan,
    ReleaseBroker,
    ResumePlan,
    Throttle,
    Unfreeze,
)
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentRolledBack, ReassignmentStopped, RollbackRequested, StopRequested
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment
from drover.web.page_commands import EVERYTHING, needs_word
from drover.web.ranges import ranges

Groups = Mapping[str, Iterable[TopicPartition]]

# The effect on waiting moves, and on copying moves.
_WITHHELD = "withheld: no start, and no further step", "going on with the step that copies"
_FREE = "free to start, or to take the next step", "copying already"
_GOES_BACK = "to go back to the original replicas, in their order"
_RETURNING = "on the way out already"
_STOPS = "to stop, and keep what is in sync"
_GUARDED = (
    "the worker looks at the cluster first: where too few of the replicas that would remain are in sync, the move goes "
    "on, and this is tried again until it is safe"
)


@dataclass(frozen=True, slots=True)
class Trial:
    """The predicted effect of a command now: its partitions, grouped by effect, and sentences.

    `offset` is that of the last folded record of `shard`; `refusals` are the reasons why the command, or a part of it,
    would be refused.
    """

    shard: int
    offset: int
    groups: tuple[tuple[str, tuple[TopicPartition, ...]], ...]
    remarks: tuple[str, ...]
    refusals: tuple[str, ...]
    needs_word: bool

    @property
    def keys(self) -> frozenset[TopicPartition]:
        """Every partition that the command would touch."""
        return frozenset(key for _, keys in self.groups for key in keys)

    def document(self) -> dict[str, Any]:
        """Return the trial for the browser, with the partitions of each topic as ranges."""
        return {
            "shard": self.shard,
            "offset": self.offset,
            "groups": [{"what": fate, "count": len(keys), "topics": ranges(keys)} for fate, keys in self.groups],
            "partitions": len(self.keys),
            "remarks": self.remarks,
            "refusals": self.refusals,
            "word": EVERYTHING if self.needs_word else None,
        }


def trial(command: AnyCommand, state: ClusterState, shard: int, offset: int) -> Trial:
    """Predict the effect of a command without changing anything."""
    decision = decide(command, state, Facts())
    groups = {fate: tuple(sorted(keys)) for fate, keys in _groups(command, state, decision).items()}
    return Trial(
        shard,
        offset,
        tuple((fate, keys) for fate, keys in groups.items() if keys),
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
            return _apart(state, _WITHHELD)
        case Unfreeze() if any(isinstance(event, ClusterUnfrozen) for event in decision.events):
            return _apart(state, _FREE)
        case PausePlan() if decision.events:
            return _apart(state, _WITHHELD, command.plan)
        case ResumePlan() if decision.events:
            return _apart(state, _FREE, command.plan)
        case HoldBroker() | ReleaseBroker() if decision.events:
            return _of_broker(command, state)
        case ChangeLimits() if decision.events:
            return _apart(state, ("held to it from the next step on", _WITHHELD[1]), command.plan)
        case _:
            return {}


def _cancelled(decision: Decision) -> Groups:
    kinds: dict[TopicPartition, set[type]] = defaultdict(set)
    for event in decision.events:
        if isinstance(event, PartitionEvent):
            kinds[event.key].add(type(event))
    groups: dict[str, list[TopicPartition]] = defaultdict(list)
    for key in decision.accepted:
        groups[_fate(kinds.get(key, set()))].append(key)
    groups[_RETURNING] = list(decision.unchanged)
    return groups


def _fate(kinds: set[type]) -> str:
    if kinds & {ReassignmentRolledBack, ReassignmentStopped}:
        return "to end at once: nothing was changed"
    if RollbackRequested in kinds:
        return _GOES_BACK
    if StopRequested in kinds:
        return _STOPS
    return "to leave the queue, or withdrawn before the beginning"


def _throttled(command: Throttle, state: ClusterState) -> Groups:
    plans = {command.plan}
    if command.plan is None:
        # The cluster's throttle applies to plans without one of their own.
        plans = {name for name, plan in state.plans.items() if plan.throttle_bytes_per_second is None}
    mine = [entry for entry in state.reassignments.values() if entry.plan in plans]
    return {
        "to copy under it at once": [entry.key for entry in mine if entry.in_flight],
        "to start under it": [entry.key for entry in mine if not entry.in_flight],
    }


def _apart(state: ClusterState, words: tuple[str, str], plan: str | None = None) -> Groups:
    """Group the moves of a plan, or of all plans, into waiting and copying ones."""
    entries = [entry for entry in state.reassignments.values() if plan in {None, entry.plan}]
    waits, goes_on = words
    return {
        waits: [entry.key for entry in entries if _waits(entry)],
        goes_on: [entry.key for entry in entries if not _waits(entry) and not entry.is_cancelled],
        _RETURNING: [entry.key for entry in entries if entry.is_cancelled],
        "in the queue": [key for key, entry in state.queue.items() if plan in {None, entry.plan}],
    }


def _of_broker(command: HoldBroker | ReleaseBroker, state: ClusterState) -> Groups:
    """Group the moves that copy into a broker, and those that would copy out of it if it leads them by then."""
    broker = command.broker
    role = command.role if isinstance(command, HoldBroker) else state.held_brokers[broker].role
    word = "withheld" if isinstance(command, HoldBroker) else "free"
    entries = [entry for entry in state.reassignments.values() if not entry.is_cancelled]
    # No partition is in both groups.
    into = [entry for entry in entries if broker in entry.target and broker not in entry.original]
    out = [entry for entry in entries if broker in entry.original]
    into, out = (into if role is not HoldRole.SOURCE else []), (out if role is not HoldRole.DESTINATION else [])
    return {
        f"{word}: a copy into broker {broker}": [move.key for move in into if _waits(move)],
        f"{word} if broker {broker} leads it": [move.key for move in out if _waits(move)],
        "copying already, which goes on": [move.key for move in (*into, *out) if not _waits(move)],
    }


def _waits(entry: Reassignment) -> bool:
    return not entry.is_cancelled and entry.phase in {Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED}


def _remarks(command: AnyCommand, state: ClusterState, decision: Decision) -> Iterator[str]:
    if isinstance(command, Unfreeze) and decision.events:
        ending = state.freezes if command.all else [freeze for freeze in state.freezes if freeze.by == command.by]
        yield from (f"the freeze of {freeze.by} ends ({freeze.reason})" for freeze in ending)
    if isinstance(command, Throttle) and not decision.refusals:
        throttle = state.cluster_throttle
        of_cluster = None if throttle is None else throttle.bytes_per_second
        before = of_cluster if command.plan is None else state.plans[command.plan].throttle_bytes_per_second
        yield "before, it had none" if before is None else f"before, it was {before:,} bytes per second"
    if isinstance(command, Cancel):
        if command.plan is not None and not decision.refusals:
            yield f"afterwards plan {command.plan} is closed: nothing can be added to it"
        if any(isinstance(event, RollbackRequested | StopRequested) for event in decision.events):
            yield _GUARDED
