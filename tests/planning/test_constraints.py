"""On random clusters, no step of a plan breaks a constraint, and nothing is dropped in silence."""

import pytest

from drover.planner.goals import DEFAULT_LIMITS, Balance, Goal, Heal, SetReplicationFactor
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal, UnmetCode
from drover.planner.propose import propose
from drover.planner.solving import leaving_of
from tests.planning.clusters import faults, random_cluster, random_goals

SEEDS = 160
BLOCKS = 4


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_step_breaks_a_constraint_and_what_is_not_done_is_named(block: int) -> None:
    for seed in range(block, SEEDS, BLOCKS):
        model = random_cluster(seed)
        for goal in random_goals(seed, model):
            proposal = propose(model, goal)
            assert faults(model, proposal, DEFAULT_LIMITS, leaving_of(model, goal)) == [], (seed, goal)
            assert not (proposal.refused and proposal.moves), (seed, goal)
            assert unnamed(model, goal, proposal) == [], (seed, goal)


def unnamed(model: ClusterModel, goal: Goal, proposal: Proposal) -> list[str]:
    """Name what the goal asks for, the plan does not do, and `unmet` does not say."""
    if proposal.refused:
        return [] if proposal.unmet else ["refused without a word"]
    said = {(each.topic, each.partition) for each in proposal.unmet}
    after = {partition.name: partition.replicas for partition in model.partitions}
    after.update({(move.topic, move.partition): move.after for move in proposal.moves})
    leaving = leaving_of(model, goal)
    missing = [
        f"{name} is still on a broker that should be empty"
        for name, replicas in after.items()
        if set(replicas) & leaving and name not in said and not model.partition_by_name[name].internal
    ]
    if isinstance(goal, SetReplicationFactor):
        missing += [
            f"{name} has another replication factor"
            for name, replicas in after.items()
            if name[0] in goal.topics and len(replicas) != goal.replication_factor and name not in said
        ]
    if isinstance(goal, Balance):
        if goal.max_bytes is not None and proposal.copied_bytes > goal.max_bytes:
            missing.append("copies more bytes than it may")
        if goal.max_moves is not None and proposal.copies > goal.max_moves:
            missing.append("copies more replicas than it may")
    for broker in leaving:
        kept = [
            name for name, replicas in after.items() if broker in replicas and model.partition_by_name[name].internal
        ]
        counted = sum(
            int(each.text.split()[3])
            for each in proposal.unmet
            if each.code is UnmetCode.EXCLUDED and each.broker == broker
        )
        if len(kept) != counted and not isinstance(goal, Heal):
            missing.append(f"{broker} keeps {kept}, and {counted} are counted")
    same = not isinstance(goal, SetReplicationFactor)
    missing += [
        f"{move.topic}:{move.partition} has lost a replica"
        for move in proposal.moves
        if same and len(move.after) != len(move.before)
    ]
    return missing


def test_healing_touches_only_the_named_partitions() -> None:
    touched = 0
    for seed in range(100):
        model = random_cluster(seed)
        named = tuple(partition.name for partition in model.partitions[::2])
        dead = tuple(broker.id for broker in model.brokers if not broker.alive)
        proposal = propose(model, Heal(dead or (1,), named))
        assert {(move.topic, move.partition) for move in proposal.moves} <= set(named)
        for move in proposal.moves:
            touched += 1
            pairs = zip(move.before, move.after, strict=True)
            assert all(old == new or old in (dead or (1,)) for old, new in pairs), "the others keep their places"
    assert touched > 20
