"""Calls of reassignments that have ended, which may still take effect."""

from drover.events.partitions import TopicPartition
from drover.state.moves import ReassignmentState
from drover.state.reassignment import LATE_MS, ExpiredCalls


def expired_calls(state: ReassignmentState, key: TopicPartition, at_ms: int) -> ExpiredCalls | None:
    """Return the calls of an ended reassignment that may still take effect on a partition; None if there are none.

    An end in the future was recorded while the clock was far ahead, so its age is unknown. Such calls no longer count,
    so that somebody else's later move to one of their lists is not taken for a late effect.
    """
    expired = state.expired_calls.get(key)
    return expired if expired is not None and 0 <= at_ms - expired.ended_ms < LATE_MS else None
