"""Freeze, blacklist and broker commands: decided, recorded, and without effect when nothing changes."""

from typing import Any

from drover.capability.decision import Facts
from drover.shard.decide import decide
from drover.state.cluster import ClusterState
from drover.state.evolve import apply
from events.brokers import BlacklistSet, BrokerReturnRecorded
from events.commands import AnyCommand, Blacklist, BrokerFailed, BrokerReturned, Freeze, Unfreeze
from tests.reassignment.support import CLUSTER, state_after, tags

WHO: dict[str, Any] = {"cluster": CLUSTER, "by": "ana", "reason": "r"}


def told(state: ClusterState, command: AnyCommand) -> list[str]:
    """Decide, fold, and name the events."""
    decision = decide(command, state, Facts())
    assert not decision.refused
    for event in decision.events:
        apply(state, event, 1000)
    return tags(decision.events)


def test_freezing_twice_keeps_who_froze_first() -> None:
    state = state_after()
    assert told(state, Freeze(id="1", **WHO)) == ["cluster-frozen"]
    assert told(state, Freeze(id="2", cluster=CLUSTER, by="bob", reason="again")) == []
    assert state.freeze is not None
    assert state.freeze.by == "ana"
    assert told(state, Unfreeze(id="3", **WHO)) == ["cluster-unfrozen"]
    assert told(state, Unfreeze(id="4", **WHO)) == []
    assert state.freeze is None


def test_a_blacklist_is_always_the_complete_one_in_the_order_given() -> None:
    """R491-1; a broker that is named twice counts once."""
    state = state_after()
    assert told(state, Blacklist(id="1", brokers=(3, 1, 3), **WHO)) == ["blacklist-set"]
    assert state.blacklist == (3, 1)
    assert told(state, Blacklist(id="2", brokers=(3, 1), **WHO)) == []
    decision = decide(Blacklist(id="3", brokers=(1, 3), **WHO), state, Facts())
    event = decision.events[0]
    assert isinstance(event, BlacklistSet)
    assert (event.previous_brokers, event.brokers) == ((3, 1), (1, 3))
    assert told(state, Blacklist(id="4", brokers=(), **WHO)) == ["blacklist-set"]
    assert told(state, Blacklist(id="5", brokers=(), **WHO)) == []


def test_the_first_report_of_a_failure_stands_until_the_broker_returns() -> None:
    """R46-1, R46-2."""
    state = state_after()
    assert told(state, BrokerFailed(id="1", broker=4, at_ms=500, **WHO)) == ["broker-failure-recorded"]
    assert told(state, BrokerFailed(id="2", broker=4, at_ms=100, **WHO)) == []
    assert state.failed_brokers == {4: 500}
    decision = decide(BrokerReturned(id="3", broker=4, at_ms=700, **WHO), state, Facts())
    event = decision.events[0]
    assert isinstance(event, BrokerReturnRecorded)
    assert (event.failed_at_ms, event.returned_at_ms) == (500, 700)


def test_a_return_from_before_the_failure_is_an_old_report() -> None:
    state = state_after()
    assert told(state, BrokerReturned(id="1", broker=4, at_ms=400, **WHO)) == []
    told(state, BrokerFailed(id="2", broker=4, at_ms=500, **WHO))
    assert told(state, BrokerReturned(id="3", broker=4, at_ms=499, **WHO)) == []
    assert told(state, BrokerReturned(id="4", broker=4, at_ms=500, **WHO)) == ["broker-return-recorded"]
    assert state.failed_brokers == {}
