"""Rules: what people ask of every plan of a cluster, whoever makes it."""

from dataclasses import dataclass

from drover.planner.capacities import Capacities, with_capacities
from drover.planner.goals import DEFAULT_LIMITS, Limits
from drover.planner.model import ClusterModel
from drover.planner.placement import Placement, with_placement


@dataclass(frozen=True, slots=True)
class Rules:
    """Where topics and leaders belong, what brokers can bear, and how much of it a plan may use."""

    placement: Placement
    capacities: Capacities
    limits: Limits

    def on(self, model: ClusterModel) -> ClusterModel:
        """Return the model of a live cluster with this placement and these capacities; the limits are no part of it."""
        return with_capacities(with_placement(model, self.placement), self.capacities)


NO_RULES = Rules(Placement(), Capacities(), DEFAULT_LIMITS)
