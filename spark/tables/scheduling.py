"""The tables of scheduling: the limits in force, and the moving and waiting partitions over time."""

from typing import Any

from msgspec import Struct

from drover.events import clusters, queue_entries, reassignments
from drover.events.clusters import LimitValue
from drover.fold.plans import ENDINGS
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler
from drover.spark.tables.measures import window
from drover.spark.tables.schema import CLUSTER, INTEGER, TEXT, WINDOW, Table, key, latest, most, retained
from drover.state.limit_names import KNOWN, value_of
from drover.state.moves import ReassignmentState
from drover.state.scheduling import ChangedLimit, Limits, QueueEntry, SchedulingState

LIMITS_TABLE = Table(
    "limits",
    "The limits in force, and who changed them.",
    "clusters times limits",
    (
        CLUSTER,
        key("limit", TEXT, "a limit of docs/limits.md", "its name"),
        latest("value", TEXT, "as in docs/limits.md", "what holds; null for no bound"),
        latest("requester", TEXT, "name", "who set it by a command; null where the settings hold"),
        latest("reason", TEXT, "a sentence", "why, in their words"),
        latest("since_ms", INTEGER, "ms since epoch", "since when this value holds"),
    ),
)
BUDGETS_TABLE = Table(
    "budgets",
    "How many partitions moved at a time, and how many waited, per minute, beside the limit.",
    "minutes in which a move started or ended",
    (
        CLUSTER,
        WINDOW,
        most("in_flight_most", "most at once in flight", "partitions"),
        retained("in_flight_last", INTEGER, "partitions", "in flight after the window's last change"),
        retained("pending_last", INTEGER, "partitions", "accepted and not started, at that moment"),
        retained("limit_last", INTEGER, "partitions", "that might be in flight, at that moment"),
    ),
    expires_by="window_ms",
)


class SchedulingMemory(Struct, omit_defaults=True):
    """Whether all limits of the cluster have been added once, as its first event of limits does."""

    has_told_limits: bool = False


def _entry_of(state: SchedulingState, event: Any) -> QueueEntry | None:
    return state.queue.get(event.key)


def _added(context: EventContext[SchedulingState, queue_entries.QueueEntryAdded, SchedulingMemory]) -> None:
    context.buffer.put("plans", (context.event.cluster, context.event.plan))


def _removed(context: EventContext[SchedulingState, queue_entries.QueueEntryRemoved, SchedulingMemory]) -> None:
    context.buffer.put("plans", (context.event.cluster, context.before.plan))


def _limits(state: SchedulingState, _event: Any) -> tuple[Limits, dict[str, ChangedLimit]]:
    return state.limits, state.changed_limits.copy()


def _limits_changed(context: EventContext[SchedulingState, Any, SchedulingMemory]) -> None:
    """Add a row for each limit whose value or origin has changed, and at first for all limits."""
    limits, by_command = context.before
    for name in (limit.name for limit in KNOWN):
        changed = context.state.changed_limits.get(name)
        value = value_of(context.state.limits, name)
        is_same = value == value_of(limits, name) and changed == by_command.get(name)
        if is_same and context.memory.has_told_limits:
            continue
        context.buffer.replace(
            "limits",
            (context.event.cluster, name),
            {
                "value": _text(value),
                "requester": None if changed is None else changed.by,
                "reason": None if changed is None else changed.reason,
                "since_ms": context.at_ms if changed is None else changed.since_ms,
            },
        )
    context.memory.has_told_limits = True


def _text(value: LimitValue) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _in_flight(state: ReassignmentState, _event: Any) -> tuple[int, int]:
    return len(state.moves.in_flight), len(state.moves.pending)


def _used(context: EventContext[Any, Any, SchedulingMemory]) -> None:
    """Add the numbers of moving and waiting partitions, if they have changed."""
    state, (before, _) = context.state, context.before
    now = len(state.moves.in_flight)
    if context.before == (now, len(state.moves.pending)):
        return
    context.buffer.put(
        "budgets",
        (context.event.cluster, window(context.at_ms)),
        in_flight_most=max(before, now),
        in_flight_last=now,
        pending_last=len(state.moves.pending),
        limit_last=state.limits.max_partitions_in_flight,
    )


_PLANS = frozenset({"plans"})
_USE, _LIMIT = EventHandler(_used, _in_flight), EventHandler(_limits_changed, _limits)
TABLES = CapabilityTables(
    name="scheduling",
    tables=(LIMITS_TABLE, BUDGETS_TABLE),
    handlers={
        queue_entries.QueueEntryAdded: EventHandler(_added, tables=_PLANS),
        queue_entries.QueueEntryRemoved: EventHandler(_removed, _entry_of, _PLANS),
        clusters.LimitsSet: _LIMIT,
        clusters.LimitsChanged: _LIMIT,
        reassignments.ReassignmentCreated: _USE,
        reassignments.ReassignmentAdopted: _USE,
        reassignments.StepPrepared: _USE,
        reassignments.StepPostponed: _USE,
        reassignments.CallIntended: _USE,
        reassignments.RollbackRequested: _USE,
        reassignments.StopRequested: _USE,
        **dict.fromkeys(ENDINGS, _USE),
    },
    unhandled=frozenset(
        {
            clusters.ClusterFrozen,
            clusters.FreezeEnded,
            clusters.ClusterUnfrozen,
            clusters.BrokerHeld,
            clusters.BrokerReleased,
            clusters.PlanWindowsSet,
            clusters.WindowClosed,
            clusters.WindowOpened,
        }
    ),
    memory=SchedulingMemory,
)
