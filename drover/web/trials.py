"""PURE: the meaning of a command that somebody is about to send from the page.

It is a trial: the decision that the shard's owner would make of the folded state, in groups of partitions. It promises
nothing: guards that need a look at the cluster are judged by the owner alone.
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
from drover.web.acting import EVERYTHING, needs_word
from drover.web.ranges import ranges

Groups = Mapping[str, Iterable[TopicPartition]]

# What becomes of what waits, and of what copies.
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


def trial(command: AnyCommand, state: ClusterState, shard: int, offset: int) -> Trial:
    """Decide a command on trial; nothing is changed."""
    decision = decide(command, state, Facts())
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
            return _apart(state, ("held to it from the next step on", _WITHHELD[1]))
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
    found[_RETURNING] = list(decision.unchanged)
    return found


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
        # Of the cluster: it is for plans that have none of their own.
        plans = {name for name, plan in state.plans.items() if plan.throttle_bytes_per_second is None}
    mine = [entry for entry in state.reassignments.values() if entry.plan in plans]
    return {
        "to copy under it at once": [entry.key for entry in mine if entry.in_flight],
        "to start under it": [entry.key for entry in mine if not entry.in_flight],
    }


def _apart(state: ClusterState, words: tuple[str, str], plan: str | None = None) -> Groups:
    """Part what waits from what copies, of one plan or of all."""
    entries = [entry for entry in state.reassignments.values() if plan in {None, entry.plan}]
    waits, goes_on = words
    return {
        waits: [entry.key for entry in entries if _waits(entry)],
        goes_on: [entry.key for entry in entries if not _waits(entry) and not entry.is_cancelled],
        _RETURNING: [entry.key for entry in entries if entry.is_cancelled],
        "in the queue": [key for key, entry in state.queue.items() if plan in {None, entry.plan}],
    }


def _of_broker(command: HoldBroker | ReleaseBroker, state: ClusterState) -> Groups:
    """Part the moves that copy into a broker from those that it is the source of if it leads them by then."""
    broker = command.broker
    role = command.role if isinstance(command, HoldBroker) else state.held_brokers[broker].role
    word = "withheld" if isinstance(command, HoldBroker) else "free"
    entries = [entry for entry in state.reassignments.values() if not entry.is_cancelled]
    # The two have no partition in common.
    into = [entry for entry in entries if broker in entry.target and broker not in entry.original]
    out = [entry for entry in entries if broker in entry.original]
    into, out = (into if role is not HoldRole.SOURCE else []), (out if role is not HoldRole.DESTINATION else [])
    return {
        f"{word}: a copy into broker {broker}": [one.key for one in into if _waits(one)],
        f"{word} if broker {broker} leads it": [one.key for one in out if _waits(one)],
        "copying already, which goes on": [one.key for one in (*into, *out) if not _waits(one)],
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
    if isinstance(command, Cancel):
        if command.plan is not None and not decision.refusals:
            yield f"afterwards plan {command.plan} is closed: nothing can be added to it"
        if any(isinstance(event, RollbackRequested | StopRequested) for event in decision.events):
            yield _GUARDED
