"""What must hold in a world of one owner at any moment; the simulation checks the same for many."""

from collections import Counter

from drover.events.plans import PlanFinished
from drover.events.queue_entries import QueueEntryRemoved, QueueExit
from drover.events.reassignments import ReplacementWithdrawn
from drover.fold.evolve import apply
from drover.fold.plans import Ending
from drover.state.cluster import ClusterState
from tests.shard.world import CLUSTER, World
from tests.simulation.invariants import s7_indexes_agree


def sound(world: World) -> None:
    """Check everything."""
    s7_indexes_agree(world.state)
    plans_end_with_what_happened(world)
    commands_are_answered(world)


def plans_end_with_what_happened(world: World) -> None:
    """A plan's last word counts each end of its reassignments, and each target that was given up."""
    ends: Counter[str] = Counter()
    expired_calls: Counter[str] = Counter()
    state = ClusterState(CLUSTER)
    for batch in world.batches():
        for event in batch.events:
            if isinstance(event, Ending):
                ends[state.reassignments[event.key].plan] += 1
            elif isinstance(event, ReplacementWithdrawn):
                replacement = state.reassignments[event.key].replacement
                assert replacement is not None
                expired_calls[replacement.plan] += 1
            elif isinstance(event, QueueEntryRemoved):
                expired_calls[state.queue[event.key].plan] += event.why is not QueueExit.STARTED
            elif isinstance(event, PlanFinished):
                counted = event.completed + event.rolled_back + event.failed + event.stopped
                assert (counted, event.withdrawn) == (ends[event.plan], expired_calls[event.plan]), event
            apply(state, event, batch.at_ms)


def commands_are_answered(world: World) -> None:
    """No command is lost and none is decided twice: one outcome per readable command, in the order of its topic."""
    offsets: dict[str, list[int]] = {}
    for batch in world.batches():
        for outcome in batch.outcomes:
            offsets.setdefault(outcome.topic, []).append(outcome.offset)
    for topic, found in offsets.items():
        assert found == sorted(set(found)), f"{topic}: {found}"
    assert list(world.core.next_offsets) == world.offsets
