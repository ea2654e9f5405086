"""Decide to change limits while moves run: all limits of a command, or none."""

from collections.abc import Iterable

from drover.decide.decision import Decision, Facts, refuse
from drover.events.clusters import LimitChange, LimitsChanged, PlanWindowsSet
from drover.events.commands import ChangeLimits, Command
from drover.events.refusals import RefusalCode
from drover.state.cluster import ClusterState
from drover.state.limit_names import HEALING, KNOWN, KnownLimit, Unit, find, in_words, nearest, value_of
from drover.state.plans import PlanStatus

(_WINDOWS,) = (limit for limit in KNOWN if limit.unit is Unit.WINDOWS)


def decide_limits(command: ChangeLimits, state: ClusterState, _facts: Facts) -> Decision:
    """Change limits from the next step on (R435-1); a value that holds already by command has no effect."""
    if command.plan is not None:
        return _decide_windows(command, command.plan, state)
    reset = tuple(state.changed_limits) if command.reset_all else command.reset
    try:
        names = _limits_named((*command.values, *reset))
    except ValueError as error:
        return refuse(RefusalCode.INVALID_LIMIT, str(error))
    if state.limits.healing is None and any(limit.name.startswith(HEALING) for limit in names[: len(command.values)]):
        detail = f"healing is not set up for {state.name}: add [clusters.{state.name}.healing] and restart the workers"
        return refuse(RefusalCode.HEALING_OFF, detail)
    try:
        values = [limit.read(value) for limit, value in zip(names, command.values.values(), strict=False)]
    except ValueError as error:
        return refuse(RefusalCode.INVALID_LIMIT, str(error))
    changed = tuple(
        LimitChange(limit.name, value_of(state.limits, limit.name), value)
        for limit, value in zip(names, values, strict=False)
        if limit.name not in state.changed_limits or state.changed_limits[limit.name].value != value
    )
    back = tuple(
        LimitChange(limit.name, state.changed_limits[limit.name].value, state.changed_limits[limit.name].settings_value)
        for limit in names[len(values) :]
        if limit.name in state.changed_limits
    )
    if not (changed or back):
        return Decision(remarks=("nothing changes: `drover limits show` lists the limits in force",))
    event = LimitsChanged(
        cluster=state.name, by=command.by, reason=command.reason, changed=tuple(changed), reset=tuple(back)
    )
    remarks = (*map(_said, changed), *(f"{_said(change)}, as the settings say" for change in back))
    return Decision(events=(event,), remarks=remarks)


def _decide_windows(command: ChangeLimits, plan: str, state: ClusterState) -> Decision:
    """Change the maintenance windows of an open plan; they are the only limit that a plan has of its own."""
    before = state.plans.get(plan)
    if before is None:
        return refuse(RefusalCode.UNKNOWN_PLAN, f"there is no plan {plan} in {state.name}", plan=plan)
    if before.status is not PlanStatus.OPEN:
        return refuse(RefusalCode.PLAN_CLOSED, f"plan {plan} is {before.status}: no step of it begins", plan=plan)
    try:
        limits = _limits_named(command.values)
        windows = read_windows(*command.values.values()) if limits == [_WINDOWS] else None
    except ValueError as error:
        return refuse(RefusalCode.INVALID_LIMIT, str(error), plan=plan)
    if limits != [_WINDOWS]:
        detail = "a plan has only windows of its own: set other limits without a plan"
        return refuse(RefusalCode.INVALID_LIMIT, detail, plan=plan)
    change = f"windows of plan {plan}: {in_words(state.plan_windows.get(plan))} → {in_words(windows)}"
    events = plan_windows_set(plan, windows, command, state)
    return Decision(events=events, plan=plan, remarks=(change if events else f"{change}, as before",))


def read_windows(value: object) -> str | None:
    """Return a plan's maintenance windows; None for none. Raises `ValueError`."""
    windows = _WINDOWS.read(value)
    assert windows is None or isinstance(windows, str), "windows are a text"
    return windows


def plan_windows_set(
    plan: str, windows: str | None, command: Command, state: ClusterState
) -> tuple[PlanWindowsSet, ...]:
    """Set a plan's maintenance windows; no event where they are the same already."""
    windows = read_windows(windows)
    if windows == state.plan_windows.get(plan):
        return ()
    event = PlanWindowsSet(cluster=state.name, plan=plan, windows=windows, by=command.by, reason=command.reason)
    return (event,)


def _limits_named(names: Iterable[str]) -> list[KnownLimit]:
    """Return limits by any of their names. Raises `ValueError` for one that is unknown, or named twice."""
    limits: list[KnownLimit] = []
    for name in names:
        limit = find(name)
        if limit is None:
            near = nearest(name)
            hint = "`drover limits show` lists them" if near is None else f"did you mean {near}?"
            raise ValueError(f"no limit is called {name}: {hint}")
        if limit in limits:
            raise ValueError(f"{limit.name} is named twice: which one was meant?")
        limits.append(limit)
    return limits


def _said(change: LimitChange) -> str:
    return f"{change.name}: {in_words(change.before)} → {in_words(change.value)}"
