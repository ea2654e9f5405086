"""Rows about limits, from the state of one cluster: the value in force, its origin, and the value of the settings."""

from dataclasses import asdict, dataclass
from typing import Any

from drover.events.clusters import LimitValue
from drover.state.limit_names import HEALING, KNOWN, KnownLimit, of_settings, value_of
from drover.state.scheduling import SchedulingState


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A limit: the value in force and that of the settings.

    `by`, `reason` and `since_ms` belong to the command that set it, and are None if the settings are in force.
    `also_called` are the names that KIP-435 and others gave it.
    """

    cluster: str
    name: str
    value: LimitValue
    settings_value: LimitValue
    about: str
    by: str | None
    reason: str | None
    since_ms: int | None
    also_called: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def limit_rows(state: SchedulingState) -> list[LimitRow]:
    """Return every limit of a cluster; those of healing only if it is set up."""
    is_healing = state.limits.healing is not None
    return [_row(state, limit) for limit in KNOWN if is_healing or not limit.name.startswith(HEALING)]


def _row(state: SchedulingState, limit: KnownLimit) -> LimitRow:
    changed = state.changed_limits.get(limit.name)
    return LimitRow(
        cluster=state.name,
        name=limit.name,
        value=value_of(state.limits, limit.name),
        settings_value=value_of(of_settings(state), limit.name),
        about=limit.about,
        by=None if changed is None else changed.by,
        reason=None if changed is None else changed.reason,
        since_ms=None if changed is None else changed.since_ms,
        also_called=limit.aliases,
    )
