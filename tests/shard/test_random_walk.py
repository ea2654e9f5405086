"""Many seeded walks: whatever people, brokers and the network do, nothing is lost, fought or left behind."""

import pytest

from tests.shard.invariants import check, check_the_log
from tests.shard.walk import Walk

SEEDS = 40
STEPS = 150


def comes_to_rest(walk: Walk) -> None:
    """After healing everything has ended, or waits for somebody else's doing and says so."""
    state = walk.world.state
    for key, reassignment in state.reassignments.items():
        waits_for_a_slot = not reassignment.in_flight and state.in_flight
        assert key in walk.foreign or waits_for_a_slot, f"{reassignment} never ends"
        assert reassignment.block is not None or waits_for_a_slot, f"{reassignment} waits for no reason"
    if not state.reassignments:
        assert not state.broker_throttles
        assert not state.topic_throttles
        assert walk.configs() == walk.configs_before
        for name, topic in walk.world.model.topics.items():
            assert not topic.configs.keys() - {"min.insync.replicas"}, f"{name}: {topic.configs}"


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_nothing_is_lost_fought_or_left_behind_whatever_happens(seed: int) -> None:
    walk = Walk(seed)
    try:
        for _ in range(STEPS):
            await walk.step()
        await walk.heal()
        check(walk)
        check_the_log(walk)
        comes_to_rest(walk)
    except AssertionError as failure:
        script = "\n".join(walk.script)
        raise AssertionError(f"seed {seed}: {failure}\nwhat was done:\n{script}") from failure
