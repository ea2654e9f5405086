"""Freeze, blacklist and broker commands: decided, recorded, and without effect when nothing changes."""

from typing import Any

import pytest

from drover.decide.broker_reports import MAX_FAILED_BROKERS
from drover.decide.commands import decide
from drover.decide.decision import Facts
from drover.decide.freezes import MAX_FREEZES
from drover.events.brokers import BlacklistSet, BrokerReturnRecorded
from drover.events.clusters import BrokersSeen, ClusterIdentified
from drover.events.commands import (
    AnyCommand,
    Blacklist,
    BrokerFailed,
    BrokerReturned,
    Demote,
    Freeze,
    Throttle,
    Unfreeze,
)
from drover.events.plans import PlanFinished, PlanOpened
from drover.fold.evolve import apply
from drover.state.cluster import ClusterState
from drover.state.healing import Absence
from tests.reassignment.support import CLUSTER, codes, opened, queued, state_after, tags

WHO: dict[str, Any] = {"cluster": CLUSTER, "by": "ana", "reason": "r"}
BOB: dict[str, Any] = {"cluster": CLUSTER, "by": "bob", "reason": "disks"}


def told(state: ClusterState, command: AnyCommand) -> list[str]:
    """Decide, fold, and name the events."""
    decision = decide(command, state, Facts())
    assert not decision.refused
    for event in decision.events:
        apply(state, event, 1000)
    return tags(decision.events)


def frozen_by_both() -> ClusterState:
    state = state_after()
    assert told(state, Freeze(id="1", **WHO)) == ["cluster-frozen"]
    assert told(state, Freeze(id="2", **BOB)) == ["cluster-frozen"]
    return state


def test_freezing_twice_changes_nothing() -> None:
    state = frozen_by_both()
    assert told(state, Freeze(id="3", **WHO)) == []
    assert told(state, Freeze(id="4", **BOB)) == []
    assert [freeze.by for freeze in state.freezes] == ["ana", "bob"]


@pytest.mark.parametrize(("first", "left"), [(WHO, "bob"), (BOB, "ana")])
def test_an_unfreeze_ends_the_freeze_of_its_requester_and_says_whose_remain(first: dict[str, Any], left: str) -> None:
    state = frozen_by_both()
    decision = decide(Unfreeze(id="3", **first), state, Facts())
    assert tags(decision.events) == ["freeze-ended"]
    assert left in decision.remarks[0]
    for event in decision.events:
        apply(state, event, 1000)
    assert [freeze.by for freeze in state.freezes] == [left]
    other = BOB if left == "bob" else WHO
    assert told(state, Unfreeze(id="4", **other)) == ["cluster-unfrozen"]
    assert told(state, Unfreeze(id="5", **other)) == []
    assert state.freezes == ()


def test_who_holds_no_freeze_ends_none_unless_all_are_meant() -> None:
    state = frozen_by_both()
    eve: dict[str, Any] = {"cluster": CLUSTER, "by": "eve", "reason": "r"}
    refused = decide(Unfreeze(id="3", **eve), state, Facts())
    assert codes(refused) == ["frozen-by-others"]
    assert "ana (r), bob (disks)" in refused.refusals[0].detail
    assert told(state, Unfreeze(id="4", all=True, **eve)) == ["cluster-unfrozen"]
    assert state.freezes == ()


def test_freezes_have_a_most() -> None:
    state = state_after()
    for number in range(MAX_FREEZES):
        told(state, Freeze(id=f"f{number}", cluster=CLUSTER, by=f"job-{number}", reason="r"))
    assert codes(decide(Freeze(id="one-more", **WHO), state, Facts())) == ["too-large"]


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
    state.known_brokers = (1, 2, 3, 4)
    assert told(state, BrokerFailed(id="1", broker=4, at_ms=500, **WHO)) == ["broker-failure-recorded"]
    assert told(state, BrokerFailed(id="2", broker=4, at_ms=100, **WHO)) == []
    assert state.failed_brokers == {4: 500}
    decision = decide(BrokerReturned(id="3", broker=4, at_ms=700, **WHO), state, Facts())
    event = decision.events[0]
    assert isinstance(event, BrokerReturnRecorded)
    assert (event.failed_at_ms, event.returned_at_ms) == (500, 700)


def test_a_return_from_before_the_failure_is_an_old_report() -> None:
    state = state_after()
    state.known_brokers = (1, 2, 3, 4)
    assert told(state, BrokerReturned(id="1", broker=4, at_ms=400, **WHO)) == []
    told(state, BrokerFailed(id="2", broker=4, at_ms=500, **WHO))
    assert told(state, BrokerReturned(id="3", broker=4, at_ms=499, **WHO)) == []
    assert told(state, BrokerReturned(id="4", broker=4, at_ms=500, **WHO)) == ["broker-return-recorded"]
    assert state.failed_brokers == {}


def test_a_report_about_the_future_is_bounded_by_the_brokers_clock() -> None:
    state = state_after()
    state.known_brokers = (1, 2, 3, 4)
    decision = decide(BrokerFailed(id="1", broker=4, at_ms=10**12, **WHO), state, Facts(appended_ms=1000))
    assert "future" in decision.remarks[0]
    apply(state, decision.events[0], 1000)
    assert state.failed_brokers == {4: 1000}
    returned = decide(BrokerReturned(id="2", broker=4, at_ms=10**12, **WHO), state, Facts(appended_ms=2000))
    (event,) = returned.events
    assert isinstance(event, BrokerReturnRecorded)
    assert event.returned_at_ms == 2000


def test_a_failure_that_an_older_drover_recorded_in_the_future_can_be_corrected() -> None:
    state = state_after()
    state.known_brokers = (1, 2, 3, 4)
    told(state, BrokerFailed(id="1", broker=4, at_ms=10**12, **WHO))
    assert state.failed_brokers == {4: 10**12}
    decision = decide(BrokerReturned(id="2", broker=4, at_ms=1500, **WHO), state, Facts(appended_ms=2000))
    assert tags(decision.events) == ["broker-return-recorded"]


def test_what_has_no_effect_says_so() -> None:
    state = state_after()
    for command in (
        Unfreeze(id="1", **WHO),
        BrokerReturned(id="2", broker=4, at_ms=1, **WHO),
    ):
        decision = decide(command, state, Facts())
        assert (decision.events, len(decision.remarks)) == ((), 1)


def test_a_throttle_is_set_for_a_plan_that_has_not_ended() -> None:
    state = state_after()
    apply(state, PlanOpened(cluster=CLUSTER, plan="friday", by="ana", reason="r"), 1000)
    assert told(state, Throttle(id="1", plan="friday", bytes_per_second=5000, **WHO)) == ["plan-throttle-set"]
    assert state.plans["friday"].throttle_bytes_per_second == 5000
    again = decide(Throttle(id="2", plan="friday", bytes_per_second=5000, **WHO), state, Facts())
    assert (again.events, len(again.remarks)) == ((), 1)
    assert codes(decide(Throttle(id="3", plan="monday", bytes_per_second=5, **WHO), state, Facts())) == ["unknown-plan"]
    apply(state, PlanFinished(cluster=CLUSTER, plan="friday", completed=0, rolled_back=0, failed=0), 1000)
    assert codes(decide(Throttle(id="4", plan="friday", bytes_per_second=5, **WHO), state, Facts())) == ["plan-closed"]


def test_reports_of_brokers_that_there_cannot_be_fill_no_memory() -> None:
    state = state_after()
    state.failed_brokers.update(dict.fromkeys(range(MAX_FAILED_BROKERS), 500))
    decision = decide(BrokerFailed(id="1", broker=2**31 - 1, at_ms=500, **WHO), state, Facts())
    assert codes(decision) == ["too-large"]
    assert told(state, BrokerFailed(id="2", broker=4, at_ms=600, **WHO)) == []


def test_only_a_broker_that_is_or_was_there_can_be_reported_as_failed() -> None:
    report = BrokerFailed(id="1", broker=7, at_ms=500, **WHO)
    state = state_after()
    assert codes(decide(report, state, Facts())) == ["cluster-unavailable"]
    state.known_brokers = (1, 2)
    (refusal,) = decide(report, state, Facts()).refusals
    assert (refusal.code, "1, 2" in refusal.detail) == ("unknown-broker", True)
    assert not decide(report, state, Facts(live_brokers=frozenset({7}))).refused
    absent = state_after()
    absent.known_brokers = (1, 2)
    absent.absent_brokers[7] = Absence(since_ms=400, seen=True)
    assert not decide(report, absent, Facts()).refused


def test_a_broker_of_a_list_that_is_moved_may_be_reported_although_nobody_saw_it_alive() -> None:
    state = state_after((opened(), queued()))
    state.known_brokers = (4, 5)
    assert not decide(BrokerFailed(id="1", broker=1, at_ms=500, **WHO), state, Facts()).refused


def test_the_log_knows_every_broker_that_was_ever_seen_alive() -> None:
    state = ClusterState(CLUSTER)
    apply(state, ClusterIdentified(cluster=CLUSTER, kafka_cluster_id="a", brokers=(3, 1)), 1000)
    apply(state, BrokersSeen(cluster=CLUSTER, brokers=(2, 3)), 2000)
    assert state.known_brokers == (1, 2, 3)


def test_a_listed_broker_that_nobody_has_seen_is_told() -> None:
    state = state_after()
    state.known_brokers = (1, 2)
    decision = decide(Blacklist(id="1", brokers=(1, 9), **WHO), state, Facts())
    assert tags(decision.events) == ["blacklist-set"]
    assert "no broker 9 was ever seen" in decision.remarks[0]
    assert "9" in decide(Demote(id="2", broker=9, **WHO), state, Facts()).remarks[0]
    assert decide(Blacklist(id="3", brokers=(1, 2), **WHO), state, Facts()).remarks == ()
    for event in decision.events:
        apply(state, event, 1000)
    assert decide(Demote(id="4", broker=2, **WHO), state, Facts()).remarks == ()
    again = decide(Blacklist(id="5", brokers=(1, 9), **WHO), state, Facts())
    assert (again.events, len(again.remarks)) == ((), 1)
