"""A rollback meets a move of others: it is waited for, and not cancelled."""

import pytest

from drover.events.reassignments import Blocker, Call, CallIntended, ReassignmentRolledBack, ReassignmentStopped
from drover.state.phase import Phase
from tests.shard.test_unmanaged_moves import KEY, somebody_moves, world
from tests.shard.world import alter, cancel


@pytest.mark.parametrize("mode", ["rollback", "stop"])
@pytest.mark.parametrize("owner_changes", [False, True])
async def test_a_move_of_others_to_the_original_list_is_waited_for(mode: str, *, owner_changes: bool) -> None:
    """Simulation seed 500924: the rollback took the list that somebody else was moving to for one of its own."""
    made = world()
    await made.send(alter({KEY: [1, 4, 5]}))
    made.model.stop_broker(3)
    made.model.join_isr(KEY, 4)
    assert made.replicas(KEY) == (1, 2, 3, 4)
    somebody_moves(made, KEY, (1, 2, 3))
    if owner_changes:
        made.crash()
    await made.send(cancel(KEY, mode=mode))
    await made.run(10_000)
    assert made.model.moves()[KEY].target == (1, 2, 3)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.UNMANAGED_CHANGE
    made.model.start_broker(3)
    await made.run(100)
    made.model.join_isr(KEY, 3)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    calls = [event.call for event in made.events() if isinstance(event, CallIntended)]
    assert calls == [Call.STEP]
    assert isinstance(
        [event for event in made.events() if getattr(event, "key", None) == KEY][-1],
        ReassignmentRolledBack if mode == "rollback" else ReassignmentStopped,
    )


async def test_a_move_of_others_to_a_list_that_was_reached_before_is_waited_for() -> None:
    made = world()
    await made.send(alter({KEY: [1, 4, 5]}))
    await made.freeze()
    made.model.join_isr(KEY, 4)
    await made.run(300)
    assert made.reassignment(KEY).phase is Phase.CONFIRMED
    somebody_moves(made, KEY, (1, 2, 3))
    somebody_moves(made, KEY, (1, 2, 3, 4))
    await made.send(cancel(KEY, mode="rollback"))
    await made.run(10_000)
    assert made.model.moves()[KEY].target == (1, 2, 3, 4)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.UNMANAGED_CHANGE
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


# -- ours
