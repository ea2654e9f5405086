"""The planner's input: the part that comes from the log, and what the cluster does not tell."""

import pytest

from drover.cli import model_source
from drover.cli.model_source import Source, knowledge_of, live_model
from drover.events.brokers import BlacklistSet
from drover.events.clusters import HoldRole
from drover.events.leadership import ListedBroker
from drover.fold.evolve import apply
from drover.inventory import Inventory, RegisteredBroker
from drover.settings.settings import LogSettings, Settings
from drover.state.cluster import ClusterState
from drover.state.scheduling import HeldBroker


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


async def test_a_broker_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers = {
        1: RegisteredBroker(1, None, is_alive=True, directories=()),
        2: RegisteredBroker(2, None, is_alive=False),
        3: RegisteredBroker(3, None, is_alive=True),
    }

    async def look(*_: object) -> tuple[Inventory, None]:
        return Inventory("kafka", 0, brokers, {}, {}), None

    monkeypatch.setattr(model_source, "_look", look)
    await live_model(Settings(LogSettings("nowhere:1")), ClusterState("prod"), Source())
    assert capsys.readouterr().err.strip() == (
        "broker 3 of cluster prod has not answered in time: its directories and the sizes of its replicas are unknown."
    )
