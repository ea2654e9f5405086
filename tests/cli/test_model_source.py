"""The part of the planner's input that comes from the log."""

from drover.cli.model_source import knowledge_of
from drover.scheduling.state import HeldBroker
from drover.state.cluster import ClusterState
from drover.state.evolve import apply
from events.brokers import BlacklistSet
from events.clusters import HoldRole
from events.leadership import ListedBroker


def test_a_plan_gives_nothing_to_brokers_that_are_held_and_takes_off_them_what_it_likes() -> None:
    state = ClusterState("prod")
    for broker, role in ((4, HoldRole.BOTH), (5, HoldRole.SOURCE), (6, HoldRole.DESTINATION)):
        state.held_brokers[broker] = HeldBroker("ana", "a new disk", 0, role)
    assert knowledge_of(state).held == {4, 6}


def test_a_plan_knows_which_brokers_should_not_lead_which_topics() -> None:
    state = ClusterState("prod")
    listed = (ListedBroker(broker=4, topics=("orders",)),)
    event = BlacklistSet(cluster="prod", brokers=(3, 4), previous_brokers=(), by="ana", reason="x", entries=listed)
    apply(state, event, 0)
    known = knowledge_of(state)
    assert (set(known.demoted_everywhere), known.demoted) == ({3}, {"orders": {4}})
