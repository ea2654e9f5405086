"""The part of the planner's input that comes from the log."""

from drover.cli.model_source import knowledge_of
from drover.scheduling.state import HeldBroker
from drover.state.cluster import ClusterState
from events.clusters import HoldRole


def test_a_plan_gives_nothing_to_brokers_that_are_held_and_takes_off_them_what_it_likes() -> None:
    state = ClusterState("prod")
    for broker, role in ((4, HoldRole.BOTH), (5, HoldRole.SOURCE), (6, HoldRole.DESTINATION)):
        state.held_brokers[broker] = HeldBroker("ana", "a new disk", 0, role)
    assert knowledge_of(state).held == {4, 6}
