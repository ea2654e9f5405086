"""Plans whose names are used again: a name's row starts over with each plan that is opened under it. Pure.

It is kept beside the tables of the capabilities. A row of an earlier part of the log is replaced where the parts are
joined (`Table.begins_by`), one of the same part here.
"""

from typing import Any

from drover.events.plans import PlanOpened
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler, NoMemory

_PLANS = "plans"


def _opened(context: EventContext[Any, PlanOpened, NoMemory]) -> None:
    context.buffer.replace(_PLANS, (context.event.cluster, context.event.plan), {})


REUSED_NAMES = CapabilityTables(
    name="reused-names", handlers={PlanOpened: EventHandler(_opened, tables=frozenset({_PLANS}))}
)
