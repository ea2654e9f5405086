"""Leaders of partitions that Drover is moving: given up during the move where Kafka's list allows it.

Each step is sent with listed brokers last (X8, `drover.reconcile.moves.start`). Once the first of the list may lead, it
is elected, also while replicas are copied, and while a move still waits to begin.
"""

from drover.decide.order_endings import is_reorder
from drover.events.leadership import LeaderWaitReason
from drover.events.reassignments import Call
from drover.facts import PartitionFacts
from drover.reconcile.leaders.judgement import Elect, LeaderPolicy, Wait, can_lead, must_give_up
from drover.state.reassignment import Reassignment


def may_elect(reassignment: Reassignment) -> bool:
    """Whether an election may come between two calls of a move: none is open, and no cancel or restore is due."""
    return reassignment.call is Call.STEP and not reassignment.call_open


def judge_moving(seen: PartitionFacts, reassignment: Reassignment, policy: LeaderPolicy) -> Elect | Wait | None:
    """Judge the leader in one observation of a moving partition; None if it is as it should be."""
    if is_reorder(reassignment) or not must_give_up(seen, policy):
        return None
    step = reassignment.step
    is_ours = seen.move is None or (step is not None and seen.move.target == step.replicas)
    first = seen.replicas[0]
    if is_ours and may_elect(reassignment) and first not in policy.listed and can_lead(first, seen, policy):
        return Elect()
    detail = (
        f"broker {seen.leader} leads, and the partition is being moved under plan {reassignment.plan}: another one "
        "leads as soon as a step puts one first that is in sync"
    )
    return Wait(LeaderWaitReason.BEING_MOVED, detail)
