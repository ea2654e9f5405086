"""Calls of reassignments that have ended, which may still take effect."""

from drover.events.partitions import TopicPartition
from drover.state.moves import ReassignmentState
from drover.state.reassignment import LATE_MS, ExpiredCalls


def expired_calls(state: ReassignmentState, key: TopicPartition, at_ms: int) -> ExpiredCalls | None:
    """Return what calls of an earlier reassignment may still do to a partition; None if nothing.

    An end that is still to come was recorded by a clock far ahead that is right again: nobody knows how long ago, and
    whoever asks for such a list later must not be taken for that call.
    """
    known = state.expired_calls.get(key)
    return known if known is not None and 0 <= at_ms - known.ended_ms < LATE_MS else None
