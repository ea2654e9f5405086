"""Settings that decisions use are events: a replay must not depend on a file."""

from drover.events.clusters import Budgets, LimitsSet
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Reconciler
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from drover.state.limit_names import of_settings
from drover.state.scheduling import Limits


class LimitsReconciler(Reconciler):
    """Records the limits of the settings when they have changed; None if the cluster is not configured."""

    def __init__(self, state: ClusterState, observed: ObservationCache, limits: Limits | None) -> None:
        super().__init__(state, observed)
        self._limits = limits

    def reconcile(self, batch: BatchBuilder) -> None:
        """Compare the limits in the settings with those in the state."""
        limits = self._limits
        if limits is None or limits == of_settings(self.state):
            return
        batch.emit(
            LimitsSet(
                cluster=self.state.name,
                max_partitions_in_flight=limits.max_partitions_in_flight,
                max_moves_per_broker=limits.max_moves_per_broker,
                max_replicas_per_step=limits.max_replicas_per_step,
                mends_by_itself=limits.repairs_by_itself,
                stepping=limits.stepping,
                healing=limits.healing,
                max_leader_movements=limits.max_leader_movements,
                lazy_leadership=limits.lazy_leadership,
                balances_after_return=limits.balances_after_return,
                budgets=None if limits.budgets == Budgets() else limits.budgets,
                adapts_to_health=limits.adapts_to_health,
            )
        )
