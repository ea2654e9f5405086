"""How many leaders may be on their way at once, and who takes that room."""

from drover.events.partitions import TopicPartition
from drover.reconcile.leaders.reconciler import LeadershipReconciler
from drover.state.scheduling import Limits
from tests.leadership.support import demote, leader
from tests.shard.world import World, reconciler


async def test_no_more_leaders_are_on_their_way_than_the_budget_allows() -> None:
    made = World(limits=Limits(max_leader_movements=3))
    keys = [TopicPartition("many", number) for number in range(20)]
    made.model.create_topic("many", {key.partition: (3, 1, 2) for key in keys})
    await made.send(demote(3))
    most = 0
    for _ in range(200):
        made.model.advance(100)
        await made.look()
        while await made.turn():
            most = max(most, made.state.leaders_under_way + len(made.state.reassignments))
    assert {leader(made, key) for key in keys} == {1}
    assert most == 3


async def test_a_leader_does_not_wait_behind_partitions_of_which_nothing_comes() -> None:
    """Simulation seed 81084988: each took a draft's only room for a leader, until the look at the next was too old."""
    made = World(limits=Limits(max_leader_movements=1))
    made.model.create_topic("many", {0: (1, 2, 3), 1: (1, 2, 3), 2: (2, 1, 3), 3: (3, 1, 2)})
    await made.run(500)
    await made.send(demote(3))
    leadership = reconciler(made, LeadershipReconciler)
    assert leadership is not None
    leadership._next_survey_ms = 60_000
    leadership._work.ready = dict.fromkeys(TopicPartition("many", number) for number in range(4))
    for _ in range(8):
        made.model.advance(500)
        await made.look()
        await made.turn()
    assert leader(made, TopicPartition("many", 3)) == 1
