"""Records settings and windows as events, so that a replay depends on no file, clock or time zone."""

from collections.abc import Mapping

from drover.events.clusters import Budgets, LimitsSet, WindowClosed, WindowOpened
from drover.events.partitions import TopicPartition
from drover.facts import Move
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Reconciler
from drover.reconcile.messages import Timestamp
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from drover.state.limit_names import of_settings
from drover.state.scheduling import Limits
from drover.windows import is_open, opens_ms

# Windows open and close on the minute.
MINUTE_MS = 60_000


class LimitsReconciler(Reconciler):
    """Records the limits of the settings when they have changed, and when maintenance windows close and open.

    `limits` is None if the cluster is not configured.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp, limits: Limits | None) -> None:
        super().__init__(state, observed, now)
        self._limits = limits

    def reconcile(self, batch: BatchBuilder) -> None:
        """Compare the limits in the settings with those in the state, and the windows with the time."""
        limits = self._limits
        if limits is not None and limits != of_settings(self.state):
            self._set(limits, batch)
        state = self.state
        # Windows that were removed while they were closed are in `closed_windows` alone.
        windows_by_plan = {**dict.fromkeys(state.closed_windows), "": state.limits.windows, **state.plan_windows}
        for plan, windows in windows_by_plan.items():
            self._open_or_close(plan, windows, batch)

    def _open_or_close(self, plan: str, windows: str | None, batch: BatchBuilder) -> None:
        """Compare windows with the time: those of a plan, or with an empty name the cluster's."""
        name, closed = self.state.name, self.state.closed_windows.get(plan)
        if is_open(windows, batch.at_ms):
            if closed is not None:
                batch.emit(WindowOpened(cluster=name, plan=plan))
            return
        opens_at_ms = opens_ms(windows, batch.at_ms)
        if closed is None or (closed.windows, closed.opens_at_ms) != (windows, opens_at_ms):
            assert windows is not None, "without windows all is open"
            batch.emit(WindowClosed(cluster=name, windows=windows, opens_at_ms=opens_at_ms, plan=plan))

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Wake at the next minute where there are windows."""
        del moves
        if self.state.limits.windows is None and not self.state.plan_windows:
            return Attention()
        return Attention(due_ms=now.monotonic_ms + MINUTE_MS - now.wall_ms % MINUTE_MS)

    def _set(self, limits: Limits, batch: BatchBuilder) -> None:
        batch.emit(
            LimitsSet(
                cluster=self.state.name,
                max_partitions_in_flight=limits.max_partitions_in_flight,
                max_moves_per_broker=limits.max_moves_per_broker,
                max_replicas_per_step=limits.max_replicas_per_step,
                repairs_by_itself=limits.repairs_by_itself,
                stepping=limits.stepping,
                healing=limits.healing,
                max_leader_movements=limits.max_leader_movements,
                lazy_leadership=limits.lazy_leadership,
                balances_after_return=limits.balances_after_return,
                budgets=None if limits.budgets == Budgets() else limits.budgets,
                adapts_to_health=limits.adapts_to_health,
                windows=limits.windows,
            )
        )
