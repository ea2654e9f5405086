"""Calls of reassignments that have ended, which may still take effect."""

from drover.reassignment.state import LATE_MS, ReassignmentState
from drover.reassignment.values import ExpiredCalls
from events.partitions import TopicPartition


def expired_calls(state: ReassignmentState, key: TopicPartition, at_ms: int) -> ExpiredCalls | None:
    """Return what calls of an earlier reassignment may still do to a partition; None if nothing."""
    known = state.expired_calls.get(key)
    return None if known is None or at_ms - known.ended_ms >= LATE_MS else known
