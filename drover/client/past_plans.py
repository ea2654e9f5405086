"""Plans that have ended: the state forgets them after a day, and the log keeps them."""

from drover.client.history import FoldedLog, open_log
from drover.client.views.plan_rows import Figures, PlanRow, plan_row
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.state.cluster import ClusterState
from drover.state.plans import Plan

NO_MOVES = Figures()


class PastPlans:
    """PURE: remembers the plans of clusters that have ended; give it their states after each record."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int], tuple[Plan, PlanRow]] = {}

    def see(self, state: ClusterState) -> None:
        """Remember the plans that have ended since; of a plan that ended again, the last end."""
        for name in reversed(state.ended_plans):
            plan = state.plans[name]
            key = (state.name, name, plan.opened_ms)
            if key in self._rows and self._rows[key][0] == plan:
                return
            row = plan_row(state, name, NO_MOVES)
            assert row is not None, "the plan is in the state"
            self._rows[key] = (plan, row)

    def rows(self) -> list[PlanRow]:
        """Return the plans, in the order in which they ended."""
        return [row for _, row in self._rows.values()]


async def read_past_plans(connection: LogConnection, cluster: str | None) -> list[PlanRow]:
    """Read the log from its first record; return every plan that has ended, forgotten ones included."""
    past = PastPlans()
    async with LogReader(connection) as reader:
        log: FoldedLog = await open_log(reader, connection, cluster)
        async for records in reader.read(connection.topics.events, log.positions):
            for record in records:
                for valid in log.take([record]):
                    for state in log.folds[valid.shard].state.clusters.values():
                        past.see(state)
    return [row for row in past.rows() if cluster in {None, row.cluster}]
