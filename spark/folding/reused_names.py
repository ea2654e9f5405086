"""Plans whose names are used again: the row of a name begins anew with each plan that is opened under it. Pure.

It is told beside the tables of the capabilities. A row of an earlier part of the log is replaced where the parts are
joined (`Table.begins_by`), one of the same part here.
"""

from typing import Any

from drover.events.plans import PlanOpened
from drover.spark.tables.telling import CapabilityTables, NoMemory, Telling, Told

_PLANS = "plans"


def _opened(told: Told[Any, PlanOpened, NoMemory]) -> None:
    told.sheet.replace(_PLANS, (told.event.cluster, told.event.plan), {})


REUSED_NAMES = CapabilityTables(
    name="reused-names", tellings={PlanOpened: Telling(_opened, tables=frozenset({_PLANS}))}
)
