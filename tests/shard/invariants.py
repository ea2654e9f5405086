"""What must hold in a world after every step, whatever happened (the names S1 to S20 are the issue's references)."""

from collections import Counter
from typing import Protocol

from drover.reassignment.state import ClusterState, Limits, Reassignment
from drover.shard.fold import ShardFold
from events.partitions import TopicPartition
from events.reassignments import (
    ReassignmentAdopted,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentQueued,
    ReassignmentRolledBack,
    ReassignmentStopped,
)
from tests.shard.world import World, full_hash

BEGINNINGS = (ReassignmentQueued, ReassignmentAdopted)
ENDS = (ReassignmentCompleted, ReassignmentRolledBack, ReassignmentStopped, ReassignmentFailed)


class Walked(Protocol):
    """What the checks need of a walk."""

    world: World
    limits: Limits
    min_isr: str
    hashes: list[tuple[int, bytes]]

    @property
    def foreign(self) -> set[TopicPartition]:
        """The partitions that somebody else has touched."""


def check(walk: Walked) -> None:
    """Check everything that must hold at any moment."""
    indexes_agree(walk.world.state)
    limits_hold(walk)
    envelopes_hold(walk)


def check_the_log(walk: Walked) -> None:
    """Check what the whole log says of the walk."""
    lives_do_not_overlap(walk.world)
    commands_are_answered(walk.world)
    any_prefix_replays(walk)


def indexes_agree(state: ClusterState) -> None:
    """The indexes are what one would compute from the reassignments."""
    queued = [key for key, reassignment in state.reassignments.items() if not reassignment.in_flight]
    assert list(state.queued) == queued, "queued is not in the order of acceptance"
    assert set(state.in_flight) == state.reassignments.keys() - set(queued)
    loads: dict[int, int] = {}
    for reassignment in state.reassignments.values():
        for broker in reassignment.load:
            loads[broker] = loads.get(broker, 0) + 1
    assert state.loads == loads
    numbers = [reassignment.number for reassignment in state.reassignments.values()]
    assert numbers == sorted(numbers)
    for plan in state.plans.values():
        assert plan.active == sum(entry.plan == plan.name for entry in state.reassignments.values())


def limits_hold(walk: Walked) -> None:
    """S7: partitions in flight, moves per broker, replicas being added per partition."""
    state, limits = walk.world.state, walk.limits
    going = [key for key in state.in_flight if not state.reassignments[key].is_cancelled]
    assert len(going) <= limits.max_partitions_in_flight
    loads = Counter(broker for entry in state.reassignments.values() if not entry.is_cancelled for broker in entry.load)
    assert all(moves <= limits.max_moves_per_broker for moves in loads.values()), loads
    for key, move in walk.world.model.moves().items():
        if key not in walk.foreign:
            assert len(move.adding) <= limits.max_replicas_per_step, f"{key}: {move}"


def envelopes_hold(walk: Walked) -> None:
    """S2: what is observed lies within original and target, and the replication factor never falls below both."""
    for key, reassignment in walk.world.state.reassignments.items():
        topic = walk.world.model.topics.get(key.topic)
        if key in walk.foreign or topic is None or topic.topic_id != reassignment.topic_id:
            continue
        in_envelope(reassignment, topic.partitions[key.partition].replicas)


def in_envelope(reassignment: Reassignment, replicas: tuple[int, ...]) -> None:
    """S2 for one partition."""
    allowed = set(reassignment.original) | set(reassignment.target)
    if reassignment.is_adopted and reassignment.step is not None:
        # What a late call has begun is on its way out.
        allowed |= set(reassignment.step.replicas)
    assert set(replicas) <= allowed, f"{reassignment.key}: {replicas} of {reassignment}"
    assert len(replicas) >= min(len(reassignment.original), len(reassignment.target)), f"{replicas} of {reassignment}"


def lives_do_not_overlap(world: World) -> None:
    """S6: a partition is queued again only after its reassignment has ended."""
    active: set[TopicPartition] = set()
    for event in world.events():
        if isinstance(event, BEGINNINGS):
            assert event.key not in active
            active.add(event.key)
        elif isinstance(event, ENDS):
            active.remove(event.key)
    assert active == world.state.reassignments.keys()


def commands_are_answered(world: World) -> None:
    """No command is lost and none is decided twice: one outcome per readable command, in the order of its topic."""
    offsets: dict[str, list[int]] = {}
    for outcome in world.outcomes():
        offsets.setdefault(outcome.topic, []).append(outcome.offset)
    for topic, found in offsets.items():
        assert found == sorted(set(found)), f"{topic}: {found}"
    assert list(world.core.next_offsets) == world.offsets


def any_prefix_replays(walk: Walked) -> None:
    """S13, S14: a replay from the first record passes through the very states of the live run."""
    at = dict(walk.hashes)
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(walk.world.log):
        fold.fold(offset, payload)
        expected = at.get(offset + 1)
        assert expected is None or full_hash(fold.state) == expected, f"the state differs at offset {offset}"
