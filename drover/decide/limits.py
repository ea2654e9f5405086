"""Decide to change limits while moves run: all limits of a command, or none."""

from collections.abc import Iterable

from drover.decide.decision import Decision, Facts, refuse
from drover.events.clusters import LimitChange, LimitsChanged
from drover.events.commands import ChangeLimits
from drover.events.refusals import RefusalCode
from drover.state.limit_names import HEALING, KnownLimit, find, in_words, nearest, value_of
from drover.state.scheduling import SchedulingState


def decide_limits(command: ChangeLimits, state: SchedulingState, _facts: Facts) -> Decision:
    """Change limits from the next step on (R435-1); a value that holds already by command has no effect."""
    reset = tuple(state.changed_limits) if command.reset_all else command.reset
    try:
        names = _known((*command.values, *reset))
    except ValueError as error:
        return refuse(RefusalCode.INVALID_LIMIT, str(error))
    if state.limits.healing is None and any(known.name.startswith(HEALING) for known in names[: len(command.values)]):
        detail = f"healing is not set up for {state.name}: add [clusters.{state.name}.healing] and restart the workers"
        return refuse(RefusalCode.HEALING_OFF, detail)
    try:
        values = [known.read(value) for known, value in zip(names, command.values.values(), strict=False)]
    except ValueError as error:
        return refuse(RefusalCode.INVALID_LIMIT, str(error))
    changed = tuple(
        LimitChange(known.name, value_of(state.limits, known.name), value)
        for known, value in zip(names, values, strict=False)
        if known.name not in state.changed_limits or state.changed_limits[known.name].value != value
    )
    back = tuple(
        LimitChange(known.name, state.changed_limits[known.name].value, state.changed_limits[known.name].settings_value)
        for known in names[len(values) :]
        if known.name in state.changed_limits
    )
    if not (changed or back):
        return Decision(remarks=("nothing changes: `drover limits show` tells what holds",))
    event = LimitsChanged(
        cluster=state.name, by=command.by, reason=command.reason, changed=tuple(changed), reset=tuple(back)
    )
    remarks = (*map(_said, changed), *(f"{_said(one)}, as the settings say" for one in back))
    return Decision(events=(event,), remarks=remarks)


def _known(names: Iterable[str]) -> list[KnownLimit]:
    """Find limits by any of their names. Raises `ValueError` for one that is unknown, or named twice."""
    found: list[KnownLimit] = []
    for name in names:
        known = find(name)
        if known is None:
            near = nearest(name)
            hint = "`drover limits show` lists them" if near is None else f"did you mean {near}?"
            raise ValueError(f"no limit is called {name}: {hint}")
        if known in found:
            raise ValueError(f"{known.name} is named twice: which one was meant?")
        found.append(known)
    return found


def _said(change: LimitChange) -> str:
    return f"{change.name}: {in_words(change.before)} → {in_words(change.value)}"
