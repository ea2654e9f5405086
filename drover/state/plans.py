"""The slice of the state with plans."""

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from drover.events.plans import Priority, Stepping
from drover.state.declared import ClusterSlice, index, items_by_key, recorded, values_by_key


class PlanStatus(StrEnum):
    """Whether a plan accepts more partitions."""

    OPEN = "open"
    CANCELLED = "cancelled"
    FINISHED = "finished"


class Pause(Struct, frozen=True, gc=False):
    """A pause of a plan: its author, reason and start."""

    by: str
    reason: str
    since_ms: int


class Plan(Struct, frozen=True, gc=False, omit_defaults=True):
    """The reassignments requested under one name.

    `active` of them have not ended; `waiting` further targets are in the queue, or wait for a rollback to end.
    """

    name: str
    by: str
    reason: str
    opened_ms: int
    status: PlanStatus = PlanStatus.OPEN
    more: bool = False
    extended_ms: int = 0
    throttle_bytes_per_second: int | None = None
    active: int = 0
    completed: int = 0
    rolled_back: int = 0
    failed: int = 0
    stopped: int = 0
    waiting: int = 0
    withdrawn: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether the plan has no work left."""
        return not self.active and not self.waiting


def is_open_and_idle(plan: Plan) -> bool:
    """Whether an open plan has no work left."""
    return plan.is_idle and plan.status is PlanStatus.OPEN


class ClusterThrottle(Struct, frozen=True, gc=False):
    """The throttle per broker of plans without one of their own; its author, reason and start (log time)."""

    bytes_per_second: int
    by: str
    reason: str
    since_ms: int


class PlanGoal(Struct, frozen=True, gc=False, omit_defaults=True):
    """The brokers that a plan empties of all replicas, and new brokers that it gives their share."""

    empties: tuple[int, ...] = ()
    fills: tuple[int, ...] = ()


class Copied(Struct, frozen=True, gc=False):
    """The completed reassignments of a plan whose bytes are known, and those bytes."""

    partitions: int = 0
    bytes: int = 0


@dataclass(eq=False)
class PlansState(ClusterSlice):
    """Plans by name, until they are forgotten.

    `ended_plans` says when each plan that is not open became idle (ms of log time), the oldest first, and `copied` how
    much plans have copied so far. The fold does not depend on them, so no hash covers them; snapshots keep them.
    `steppings` and `priorities` are those of plans that have their own, and `paused_plans` the plans of which no step
    begins; `throttle_bounds` says how far Drover may raise a plan's throttle. `goals` are those of open plans that
    empty or fill brokers. `idle_plans` are the open plans without work left.
    """

    plans: dict[str, Plan] = recorded(
        "plans", factory=dict, content=values_by_key, described_as=("plan", "opened", "forgotten")
    )
    ended_plans: dict[str, int] = recorded("ended_plans", factory=dict, hashed=False)
    copied: dict[str, Copied] = recorded("copied", factory=dict, hashed=False)
    steppings: dict[str, Stepping] = recorded(
        "steppings", factory=dict, content=items_by_key, described_as=("stepping of plan", "set", "forgotten")
    )
    cluster_throttle: ClusterThrottle | None = recorded("cluster_throttle", described_as=("cluster throttle",))
    throttle_bounds: dict[str, int] = recorded(
        "throttle_bounds",
        factory=dict,
        content=items_by_key,
        described_as=("bound of the throttle of plan", "set", "gone"),
    )
    priorities: dict[str, Priority] = recorded(
        "priorities", factory=dict, content=items_by_key, described_as=("priority of plan", "set", "forgotten")
    )
    paused_plans: dict[str, Pause] = recorded(
        "paused_plans", factory=dict, content=items_by_key, described_as=("pause of plan", "begun", "ended")
    )
    goals: dict[str, PlanGoal] = recorded(
        "plan_goals", factory=dict, content=items_by_key, described_as=("goal of plan", "set", "over")
    )
    _idle_plans: dict[str, None] | None = index(lambda: None)

    @property
    def idle_plans(self) -> dict[str, None]:
        """The index of idle plans, built on its first use and kept up to date from then on."""
        if self._idle_plans is None:
            self._idle_plans = {plan.name: None for plan in self.plans.values() if is_open_and_idle(plan)}
        return self._idle_plans

    def rate_of(self, plan: str) -> int | None:
        """Return the throttle per broker that applies to a plan: its own, or else the cluster's; None for none."""
        entry = self.plans.get(plan)
        own = None if entry is None else entry.throttle_bytes_per_second
        if own is not None or self.cluster_throttle is None:
            return own
        return self.cluster_throttle.bytes_per_second

    @property
    def plans_emptying(self) -> dict[int, str]:
        """The open plan that empties a broker, by broker."""
        return {broker: plan for plan, goal in self.goals.items() for broker in goal.empties}

    @property
    def plans_filling(self) -> dict[int, str]:
        """The open plan that fills a broker, by broker."""
        return {broker: plan for plan, goal in self.goals.items() for broker in goal.fills}

    def owner_of(self, plan: str) -> str:
        """Return a plan's name with its author, for messages."""
        return f"plan {plan} ({self.plans[plan].by})"

    def put_plan(self, plan: Plan) -> None:
        """Store a plan, and update the index."""
        self.plans[plan.name] = plan
        idle = self._idle_plans
        if idle is None:
            return
        if is_open_and_idle(plan):
            idle[plan.name] = None
        elif idle:
            idle.pop(plan.name, None)

    def rebuild_indexes(self) -> None:
        """Drop the index of idle plans, and add the ends of plans that an older snapshot lacks."""
        super().rebuild_indexes()
        self._idle_plans = None
        for plan in self.plans.values():
            if plan.status is not PlanStatus.OPEN and plan.is_idle:
                self.ended_plans.setdefault(plan.name, plan.extended_ms)
