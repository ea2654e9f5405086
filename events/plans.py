"""Events about plans: the reassignments that were asked for under one name."""

from events.base import Event


class PlanOpened(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-opened"):
    """A plan came into being with its first accepted partition."""

    plan: str
    by: str
    reason: str


class PlanExtended(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-extended"):
    """A further command added to an open plan; `more` says whether its client announced yet another one."""

    plan: str
    more: bool = False


class PlanThrottleSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-throttle-set"):
    """The plan's throttle per broker from here on, for running moves as well."""

    plan: str
    bytes_per_second: int


class PlanCancelled(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-cancelled"):
    """The plan was cancelled as a whole; its name is not opened again before the plan is forgotten."""

    plan: str
    by: str
    reason: str


class PlanFinished(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-finished"):
    """Every reassignment of the plan has ended; its name is not opened again before the plan is forgotten."""

    plan: str
    completed: int
    rolled_back: int
    failed: int
    stopped: int = 0
    withdrawn: int = 0


class PlansForgotten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plans-forgotten"):
    """Plans that ended some time ago left the state; their names are free again. The log keeps their story."""

    plans: tuple[str, ...]
