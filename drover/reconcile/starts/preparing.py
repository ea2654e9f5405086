"""R435-3: the step that brings in a new leader is followed by its election, before the present leader is dropped."""

from drover.decide.verdict import Context, event_name
from drover.events.leadership import LeaderElectionIntended
from drover.facts import PartitionFacts
from drover.reconcile.moves.start import todays_heading
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment


def election_after(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> LeaderElectionIntended | None:
    """Return the election that is due between two steps; None if the last step prepared none, or it cannot be held.

    The first of the list is the target's first, was added by the last step, is in sync and alive, and does not lead. A
    broker that should not lead is not elected (X8): Kafka makes it the leader when nobody else is left.
    """
    step, head = reassignment.step, reassignment.current[0]
    is_prepared = (
        reassignment.phase is Phase.CONFIRMED
        and reassignment.returning_to is None
        and step is not None
        and step.replicas == reassignment.current == seen.replicas
        and head in step.adding
        and head == todays_heading(reassignment, context.listed)[0]
    )
    can_lead = head in seen.isr and head in context.live and head not in context.listed
    if not is_prepared or not can_lead or seen.leader in {None, head} or seen.move is not None:
        return None
    name = event_name(context.cluster, reassignment.key)
    replicas = reassignment.current
    return LeaderElectionIntended(**name, topic_id=reassignment.topic_id, replicas=replicas, leader=seen.leader)
