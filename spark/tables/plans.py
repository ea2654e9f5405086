"""The table of plans: their authors, accepted partitions and results, mostly read from the state."""

from typing import Any

from drover.events import plans
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler, NoMemory
from drover.spark.tables.row_buffer import Key, Row
from drover.spark.tables.schema import CLUSTER, INTEGER, TEXT, Table, count, key, latest, retained
from drover.state.plans import Plan, PlansState

PLANS_TABLE = Table(
    "plans",
    "Every plan: who opened it, what was accepted and how it ended.",
    "plans",
    (
        CLUSTER,
        key("plan", TEXT, "name", "the plan's name"),
        latest("requester", TEXT, "name", "who opened it"),
        latest("reason", TEXT, "a sentence", "why, in the requester's words"),
        latest("opened_ms", INTEGER, "ms since epoch", "when it was opened"),
        retained("cancelled_ms", INTEGER, "ms since epoch", "when it was cancelled as a whole; null if not"),
        latest("finished_ms", INTEGER, "ms since epoch", "when nothing of it was left to be done; null before"),
        latest(
            "throttle",
            INTEGER,
            "bytes/s per broker",
            "the last throttle asked for; null for none",
        ),
        latest("partitions_planned", INTEGER, "targets", "asked for, those that were withdrawn included"),
        count("replicas_planned", "copies that its reassignments need, as accepted", "replicas"),
        latest("accepted", INTEGER, "reassignments", "reassignments that began"),
        latest("completed", INTEGER, "reassignments", "that reached their target"),
        latest("rolled_back", INTEGER, "reassignments", "that are back at their original list"),
        latest("stopped", INTEGER, "reassignments", "that ended where their confirmed steps had brought them"),
        latest("failed", INTEGER, "reassignments", "that ended elsewhere"),
        latest("waiting", INTEGER, "targets", "targets in the queue, or behind a move that is taken back"),
        latest("withdrawn", INTEGER, "targets", "targets given up before they began"),
        count("bytes_copied", "by steps that are confirmed, and by completed moves", "bytes"),
        count("bytes_unknown", "of which more was copied than bytes_copied says", "reassignments"),
    ),
    expires_by="finished_ms",
)
_Context = EventContext[PlansState, Any, NoMemory]


def plan_row(plan: Plan, ended_ms: int | None) -> Row:
    """Return a plan's values from the state, by column."""
    accepted = plan.active + plan.completed + plan.rolled_back + plan.stopped + plan.failed
    return {
        "requester": plan.by,
        "reason": plan.reason,
        "opened_ms": plan.opened_ms,
        "finished_ms": ended_ms if plan.is_idle else None,
        "throttle": plan.throttle_bytes_per_second,
        "partitions_planned": accepted + plan.waiting + plan.withdrawn,
        "accepted": accepted,
        "completed": plan.completed,
        "rolled_back": plan.rolled_back,
        "stopped": plan.stopped,
        "failed": plan.failed,
        "waiting": plan.waiting,
        "withdrawn": plan.withdrawn,
    }


def _row(state: PlansState, _memory: NoMemory, name: Key) -> Row | None:
    plan = state.plans.get(str(name[1]))
    return None if plan is None else plan_row(plan, state.ended_plans.get(plan.name))


def _touched(context: _Context) -> None:
    context.buffer.put("plans", (context.event.cluster, context.event.plan))


def _cancelled(context: _Context) -> None:
    context.buffer.put("plans", (context.event.cluster, context.event.plan), cancelled_ms=context.at_ms)


def _rows_of(state: PlansState, event: plans.PlansForgotten) -> dict[str, Row]:
    return {name: plan_row(state.plans[name], state.ended_plans.get(name)) for name in event.plans}


def _forgotten(context: _Context) -> None:
    """Add the rows now, since the state has no such plans at the end of this part of the log."""
    for name, row in context.before.items():
        context.buffer.put("plans", (context.event.cluster, name), **row)


_TOUCH = EventHandler(_touched)
TABLES = CapabilityTables(
    name="plans",
    tables=(PLANS_TABLE,),
    handlers={
        plans.PlanOpened: _TOUCH,
        plans.PlanExtended: _TOUCH,
        plans.PlanThrottleSet: _TOUCH,
        plans.PlanThrottleCleared: _TOUCH,
        plans.PlanThrottleRaised: _TOUCH,
        plans.PlanFinished: _TOUCH,
        plans.PlanCancelled: EventHandler(_cancelled),
        plans.PlansForgotten: EventHandler(_forgotten, _rows_of),
    },
    rows={"plans": _row},
    unhandled=frozenset({plans.ClusterThrottleSet, plans.PlanPaused, plans.PlanResumed}),
)
