"""The slice of the state that holds plans."""

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from drover.state.declared import ClusterSlice, index, items_by_key, recorded, values_by_key
from events.plans import Stepping


class PlanStatus(StrEnum):
    """Whether a plan takes more partitions."""

    OPEN = "open"
    CANCELLED = "cancelled"
    FINISHED = "finished"


class Plan(Struct, frozen=True, gc=False, omit_defaults=True):
    """The reassignments asked for under one name.

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
        """Whether nothing is left to do."""
        return not self.active and not self.waiting


@dataclass(eq=False)
class PlansState(ClusterSlice):
    """Plans by name, until they are forgotten.

    `ended_plans` says when each plan that takes nothing more became idle (ms of log time), the oldest first. The fold
    decides nothing by it, so no hash covers it; snapshots keep it. `steppings` are those of plans that have one of
    their own. `idle_plans` are the open plans with nothing left to do.
    """

    plans: dict[str, Plan] = recorded(
        "plans", factory=dict, content=values_by_key, told_as=("plan", "opened", "forgotten")
    )
    ended_plans: dict[str, int] = recorded("ended_plans", factory=dict, hashed=False)
    steppings: dict[str, Stepping] = recorded(
        "steppings", factory=dict, content=items_by_key, told_as=("stepping of plan", "set", "forgotten")
    )
    idle_plans: dict[str, None] = index(dict)

    def put_plan(self, plan: Plan) -> None:
        """Store a plan, and keep the index true."""
        self.plans[plan.name] = plan
        if plan.status is PlanStatus.OPEN and plan.is_idle:
            self.idle_plans[plan.name] = None
        else:
            self.idle_plans.pop(plan.name, None)

    def rebuild_indexes(self) -> None:
        """Find the idle plans, and when plans ended whose end an older snapshot does not tell."""
        super().rebuild_indexes()
        self.idle_plans = {}
        for plan in self.plans.values():
            self.put_plan(plan)
            if plan.status is not PlanStatus.OPEN and plan.is_idle:
                self.ended_plans.setdefault(plan.name, plan.extended_ms)
