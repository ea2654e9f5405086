"""Events about plans: the reassignments that were asked for under one name."""

from enum import StrEnum

from drover.events.base import Event


class Stepping(StrEnum):
    """How a partition goes to its target (KIP-435): see `drover.reconcile.moves.stepping`."""

    GROW = "grow"
    SWAP = "swap"
    SINGLE = "single"


class Priority(StrEnum):
    """How much of what is free a plan takes beside others: see `drover.reconcile.starts.shares`."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class PlanOpened(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-opened"):
    """A plan came into being with its first accepted partition, or was cancelled before that.

    Without `stepping` the cluster's applies, and without `priority` it is normal. `empties` are the brokers that it
    takes every replica off, `fills` those that get their share: both until it is finished or cancelled.
    """

    plan: str
    by: str
    reason: str
    stepping: Stepping | None = None
    priority: Priority | None = None
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


class PlanExtended(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-extended"):
    """A further command added to an open plan; `more` says whether its client announced yet another one.

    `stepping` is the plan's from its next step on, and `priority` from its next start on; None leaves it as it is.
    `empties` and `fills` are further brokers that it empties and fills.
    """

    plan: str
    more: bool = False
    stepping: Stepping | None = None
    priority: Priority | None = None
    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


class PlanThrottleSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-throttle-set"):
    """The plan's throttle per broker from here on, for running moves as well; Drover may raise it to `may_rise_to`."""

    plan: str
    bytes_per_second: int
    may_rise_to: int | None = None


class PlanThrottleCleared(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-throttle-cleared"):
    """The plan has no throttle of its own from here on: it goes by the cluster's."""

    plan: str


class PlanThrottleRaised(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-throttle-raised"):
    """Drover raised a plan's throttle, because a copy did not keep up with what is written; `detail` says which."""

    plan: str
    bytes_per_second: int
    previous_bytes_per_second: int
    detail: str


class ClusterThrottleSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-throttle-set"):
    """The throttle per broker of plans without one of their own from here on; None: they have none."""

    bytes_per_second: int | None
    by: str
    reason: str


class PlanPaused(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-paused"):
    """No step of the plan begins from here on, until it is resumed; what runs goes on."""

    plan: str
    by: str
    reason: str


class PlanResumed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-resumed"):
    """Steps of the plan may begin again."""

    plan: str
    by: str
    reason: str


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
