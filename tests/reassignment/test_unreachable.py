"""A broker that lives without the listener by which Drover connects is not dead, and gets no copy."""

import pytest

from drover.decide.commands import decide
from drover.decide.rollback_guards import GONE_MS, GuardFacts, is_given_up, restore_block, skip_reason
from drover.events.plans import Stepping
from drover.events.reassignments import Blocker, CancelMode, ReassignmentBlocked, SkipReason
from drover.events.refusals import RefusalCode
from drover.facts import PartitionFacts
from drover.reconcile.moves.next_calls import SendStep, Wait
from drover.reconcile.moves.reconcile import reconcile
from drover.reconcile.moves.route import RESTART_MS, next_call
from drover.reconcile.moves.start import start
from drover.state.phase import Phase
from drover.state.reassignment import Block
from tests.reassignment.support import (
    KEY,
    TOPIC_ID,
    alter,
    context,
    facts,
    moving,
    reassignment,
    sight,
    state_after,
)

REMEDY = "add that listener, or give Drover a bootstrap that all brokers offer"


def test_an_unreachable_broker_is_refused_as_a_new_replica_with_the_remedy() -> None:
    seen = facts(live_brokers=frozenset({1, 2, 3}), unreachable=frozenset({4}))
    (refusal,) = decide(alter({KEY: (1, 2, 4)}), state_after(), seen).refusals
    assert refusal.code is RefusalCode.INVALID_REPLICA_ASSIGNMENT
    assert "broker 4 is unreachable" in refusal.detail
    assert REMEDY in refusal.detail


def test_an_unreachable_broker_that_is_there_may_stay() -> None:
    seen = facts(live_brokers=frozenset({1, 2, 4}), unreachable=frozenset({3}))
    assert decide(alter({KEY: (1, 4, 3)}), state_after(), seen).accepted == (KEY,)


def test_a_step_to_an_unreachable_broker_waits_and_says_why() -> None:
    found = start(reassignment(Phase.PENDING, step=None), sight(), context(live={1, 2, 3}, unreachable={4}))
    assert isinstance(found, Wait)
    assert found.block.why is Blocker.UNREACHABLE_BROKER
    assert REMEDY in found.block.detail


def test_a_partition_that_an_unreachable_broker_leads_is_not_said_to_have_no_leader() -> None:
    seen = PartitionFacts(TOPIC_ID, None, (1, 2, 3), (1, 2, 3), leader_lacks_listener=True)
    about = reassignment(Phase.PENDING, step=None)
    found = start(about, seen, context(live={1, 2, 4}, unreachable={3}))
    assert isinstance(found, Wait)
    assert (found.block.why, "broker 3 is unreachable" in found.block.detail) == (Blocker.UNREACHABLE_BROKER, True)


def test_a_copy_to_a_broker_that_has_become_unreachable_goes_on_and_is_named() -> None:
    seen = moving()
    about = reassignment(Phase.COPYING)
    where = context(live={1, 2, 3, 5}, unreachable={4}, at_ms=5000)
    (event,) = reconcile(about, seen, where).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.UNREACHABLE_BROKER
    block = Block(Blocker.UNREACHABLE_BROKER, event.detail, 0)
    long_ago = reassignment(Phase.COPYING, block=block)
    assert next_call(long_ago, seen, context(live={1, 2, 3, 5}, unreachable={4}, at_ms=RESTART_MS)) is None


@pytest.mark.parametrize("stepping", list(Stepping))
def test_what_is_in_sync_on_an_unreachable_broker_counts_for_min_insync_replicas(stepping: Stepping) -> None:
    """One may go, because two others stay in sync, one of them out of Drover's reach."""
    about = reassignment(Phase.PENDING, step=None, target=(2, 3))
    where = context(live={1, 2}, unreachable={3}, min_isr=2, stepping=stepping)
    found = start(about, sight(), where)
    assert isinstance(found, SendStep)
    assert found.step.replicas == (2, 3)


def test_a_rollback_waits_for_an_unreachable_original_for_ever() -> None:
    about = reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK)
    seen = sight((1, 2, 3, 4), (1, 2, 4))
    guard = GuardFacts({1, 2, 4}, 1, 0, unreachable={3})
    block = restore_block(about, seen, guard)
    assert block is not None
    assert REMEDY in block.detail
    assert "is not alive" not in block.detail
    waited = reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK, block=block)
    later = GuardFacts({1, 2, 4}, 1, GONE_MS + 1, unreachable={3})
    assert not is_given_up(waited, seen, block, later)
    # Dead is given up after ten minutes.
    dead = GuardFacts({1, 2, 4}, 1, GONE_MS + 1)
    known = restore_block(about, seen, GuardFacts({1, 2, 4}, 1, 0))
    assert known is not None
    assert is_given_up(reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK, block=known), seen, known, dead)


def test_a_new_replica_that_is_unreachable_keeps_the_only_data_from_being_thrown_away() -> None:
    about = reassignment(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK)
    seen = moving(isr=(4,), leader=None)
    assert skip_reason(about, seen, GuardFacts({1, 2, 3}, 1, 0, unreachable={4})) is SkipReason.NO_ORIGINAL_IN_SYNC
    assert skip_reason(about, seen, GuardFacts({1, 2, 3}, 1, 0)) is None
