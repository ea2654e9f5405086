"""The fold of limits, the freeze and the queue."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from drover.events.base import Event
from drover.events.clusters import (
    BrokerHeld,
    BrokerReleased,
    Budgets,
    ClusterFrozen,
    ClusterUnfrozen,
    FreezeEnded,
    LimitsChanged,
    LimitsSet,
    PlanWindowsSet,
    WindowClosed,
    WindowOpened,
)
from drover.events.queue_entries import (
    QueueEntryAdded,
    QueueEntryRemoved,
    QueueExit,
)
from drover.fold.plans import stop_waiting, wait
from drover.state.cluster import ClusterState
from drover.state.limit_names import in_force, of_settings, value_of
from drover.state.scheduling import (
    ChangedLimit,
    ClosedWindow,
    Freeze,
    HeldBroker,
    Limits,
    QueueEntry,
    SchedulingState,
)


def _limits_set(state: SchedulingState, event: LimitsSet, _at_ms: int) -> None:
    """Take the limits of the settings; those that commands have set still hold."""
    settings = Limits(
        event.max_partitions_in_flight,
        event.max_moves_per_broker,
        event.max_replicas_per_step,
        event.repairs_by_itself,
        event.stepping,
        event.healing,
        event.max_leader_movements,
        event.lazy_leadership,
        event.balances_after_return,
        event.budgets or Budgets(),
        event.adapts_to_health,
        event.windows,
    )
    for name, changed in state.changed_limits.items():
        state.changed_limits[name] = replace(changed, settings_value=value_of(settings, name))
    state.limits = in_force(settings, state.changed_limits)


def _limits_changed(state: SchedulingState, event: LimitsChanged, at_ms: int) -> None:
    settings = of_settings(state)
    for change in event.changed:
        value = value_of(settings, change.name)
        state.changed_limits[change.name] = ChangedLimit(change.value, value, event.by, event.reason, at_ms)
    for change in event.reset:
        state.changed_limits.pop(change.name, None)
    state.limits = in_force(settings, state.changed_limits)


def _window_closed(state: SchedulingState, event: WindowClosed, at_ms: int) -> None:
    before = state.closed_windows.get(event.plan)
    since_ms = at_ms if before is None else before.since_ms
    state.closed_windows[event.plan] = ClosedWindow(event.windows, event.opens_at_ms, since_ms)


def _window_opened(state: SchedulingState, event: WindowOpened, _at_ms: int) -> None:
    state.closed_windows.pop(event.plan, None)


def _plan_windows_set(state: SchedulingState, event: PlanWindowsSet, _at_ms: int) -> None:
    if event.windows is None:
        state.plan_windows.pop(event.plan, None)
    else:
        state.plan_windows[event.plan] = event.windows


def _held(state: SchedulingState, event: BrokerHeld, at_ms: int) -> None:
    state.held_brokers[event.broker] = HeldBroker(event.by, event.reason, at_ms, event.role)


def _broker_released(state: SchedulingState, event: BrokerReleased, _at_ms: int) -> None:
    state.held_brokers.pop(event.broker, None)


def _frozen(state: SchedulingState, event: ClusterFrozen, at_ms: int) -> None:
    freeze = Freeze(event.by, event.reason, at_ms)
    if state.freeze is None:
        state.freeze = freeze
    else:
        state.later_freezes[event.by] = freeze


def _freeze_ended(state: SchedulingState, event: FreezeEnded, _at_ms: int) -> None:
    if event.by in state.later_freezes:
        del state.later_freezes[event.by]
    else:
        oldest = next(iter(state.later_freezes))
        state.freeze = state.later_freezes.pop(oldest)


def _unfrozen(state: SchedulingState, _event: ClusterUnfrozen, _at_ms: int) -> None:
    state.freeze = None
    state.later_freezes.clear()


def _queued(state: ClusterState, event: QueueEntryAdded, at_ms: int) -> None:
    assert event.key not in state.queue, f"{event.key} is in the queue already"
    state.queue[event.key] = QueueEntry(
        id=event.id,
        plan=event.plan,
        target=event.target,
        since_ms=at_ms,
        original_replicas=event.original_replicas,
        allow_replication_factor_change=event.allow_replication_factor_change,
        allow_drover_topics=event.allow_drover_topics,
        topic_id=event.topic_id,
        allow_emptied_brokers=event.allow_emptied_brokers,
    )
    wait(state, event.plan)


def _unqueued(state: ClusterState, event: QueueEntryRemoved, at_ms: int) -> None:
    entry = state.queue.pop(event.key)
    stop_waiting(state, entry.plan, at_ms, withdrawn=event.why is not QueueExit.STARTED)


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    LimitsSet: _limits_set,
    PlanWindowsSet: _plan_windows_set,
    WindowClosed: _window_closed,
    WindowOpened: _window_opened,
    LimitsChanged: _limits_changed,
    BrokerHeld: _held,
    BrokerReleased: _broker_released,
    ClusterFrozen: _frozen,
    FreezeEnded: _freeze_ended,
    ClusterUnfrozen: _unfrozen,
    QueueEntryAdded: _queued,
    QueueEntryRemoved: _unqueued,
}
