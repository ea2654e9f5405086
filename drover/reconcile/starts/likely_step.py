"""The step that comes next as far as that can be told without a look at the cluster: for what waits for room."""

from drover.reconcile.moves.context import completion_of, stepping_of
from drover.reconcile.moves.start import todays_heading
from drover.reconcile.moves.stepping import Situation, next_step
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment, Step


def likely_step(
    state: ClusterState, observed: ObservationCache, reassignment: Reassignment, leader: int | None
) -> Step | None:
    """Tell what the next step is likely to be; None if that is not known. `leader` led when it was last seen.

    A prepared step has its room; and that a destination is dead must be found out, room or not.
    """
    live = observed.live
    if reassignment.phase is Phase.PREPARED or not live:
        return None
    topic = reassignment.key.topic
    listed = state.listed_for(topic)
    # As if all were in sync: what is not makes other steps likely only where replicas are lacking.
    now = Situation(
        current=reassignment.current,
        target=todays_heading(reassignment, listed),
        original=reassignment.original,
        live=live,
        isr=reassignment.current,
        leader=leader,
        min_isr=observed.min_isr.get(topic, 1),
        max_replicas_per_step=state.limits.max_replicas_per_step,
        drops_last=reassignment.returning_to is not None,
        listed=listed,
        completion=completion_of(state),
        racks=observed.racks,
    )
    step = next_step(reassignment, stepping_of(state, reassignment), now)
    if step is None or any(broker not in live for broker in step.adding):
        return None
    return step
