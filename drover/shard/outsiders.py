"""What is seen of partitions that Drover is not moving: foreign moves, and what earlier calls may still do."""

from collections.abc import Mapping

from drover.reassignment.facts import Move
from drover.reassignment.foreign_moves import correct_late, given_up, mend_unasked, record, unrecorded
from drover.reassignment.state import ClusterState
from drover.shard.page import Page
from events.partitions import TopicPartition


def hear_moves(page: Page, state: ClusterState, moves: Mapping[TopicPartition, Move], ended_ms: int) -> None:
    """Record foreign moves that have come, changed or gone, each once that has persisted over 2 s."""
    found = unrecorded(state, moves, page.at_ms)
    for key in page.track(state.name).unrecorded_for_long(found, ended_ms):
        page.write(record(state, key, found[key]))


def judge_outsider(page: Page, state: ClusterState, key: TopicPartition, ended_ms: int) -> None:
    """Take over what must be cancelled although Drover is not moving the partition, once that has persisted."""
    track = page.track(state.name)
    seen = track.sights[key].facts
    if seen is None:
        return
    events = correct_late(state, key, seen, page.at_ms) or mend_unasked(state, key, seen)
    persisted = track.persisted(key)
    track.doubt(key, ended_ms, doubtful=bool(events) and not persisted)
    if persisted:
        page.write_all(events)


def watch_outsiders(page: Page, name: str) -> None:
    """Say which partitions must be looked at although Drover is not moving them, or only has them queued."""
    state = page.ahead.cluster(name)
    watched = {key for key in state.given_up if given_up(state, key, page.at_ms) is not None}
    if state.limits.mends_by_itself:
        watched.update(key for key, move in state.foreign.items() if move.never_ends)
    track = page.track(name)
    outsiders = frozenset(watched - state.in_flight.keys())
    for key in track.outsiders - outsiders - state.reassignments.keys():
        # A doubt about what is not looked at any more must not count later.
        track.doubt(key, 0, doubtful=False)
    track.outsiders = outsiders
