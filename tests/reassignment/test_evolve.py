"""The fold: total over what decisions and plans write, with indexes that are always what one would compute."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drover.decide.cancel import decide_cancel
from drover.decide.cancellation import postponed
from drover.decide.decision import Facts
from drover.decide.verdict import blocked
from drover.events.codec import decode_record, encode_record
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanCancelled, PlanExtended, PlanFinished
from drover.events.reassignments import Call, CallIntended, CancelMode, ReassignmentRolledBack
from drover.events.records import AnyEvent, Batch, ReassignmentEvent
from drover.facts import CallResult, Move, PartitionFacts
from drover.fold.evolve import apply
from drover.fold.log import ShardState
from drover.fold.moves import APPLYING, EVOLVING, evolve
from drover.reconcile.moves import calls
from drover.reconcile.moves.next_calls import SendStep, Wait
from drover.reconcile.moves.reconcile import reconcile
from drover.reconcile.moves.route import next_call
from drover.state.broker_directions import BrokerDirection
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from tests.reassignment.support import (
    CLUSTER,
    TOPIC_ID,
    cancel,
    context,
    copying,
    intended,
    opened,
    queued,
    reassignment,
    requested,
    state_after,
)
from tests.simulation.invariants import s7_indexes_agree

KEYS = tuple(TopicPartition("orders", number) for number in range(3))
LISTS = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True).map(tuple)


def hashed(state: ClusterState) -> bytes:
    shard = ShardState()
    shard.clusters[state.name] = state
    return shard.hash()


def decoded_anew(event: AnyEvent) -> AnyEvent:
    """Send an event through a record of its own."""
    batch = Batch(schema=1, token=b"t", epoch=1, sequence=1, at_ms=1, cursors=(), previous_hash=b"", events=(event,))
    record = decode_record(encode_record(batch))
    assert isinstance(record, Batch)
    return record.events[0]


def test_what_is_queued_keeps_the_order_of_acceptance() -> None:
    state = state_after([opened(), *(queued(key) for key in KEYS)])
    assert list(state.moves.pending) == list(KEYS)
    assert [entry.number for entry in state.reassignments.values()] == [1, 2, 3]
    apply(state, intended(key=KEYS[0]), 2000)
    assert list(state.moves.pending) == list(KEYS[1:])
    assert list(state.moves.in_flight) == [KEYS[0]]
    assert state.moves.loads == {BrokerDirection(1, "out"): 1, BrokerDirection(4, "in"): 1}


def test_an_end_is_counted_in_its_plan_and_leaves_nothing_behind() -> None:
    state = copying()
    apply(state, ReassignmentRolledBack(cluster=CLUSTER, topic="orders", partition=0, replicas=(1, 2, 3)), 2000)
    assert (state.plans["p"].active, state.plans["p"].rolled_back) == (0, 1)
    assert (state.reassignments, state.moves.pending, state.moves.in_flight, state.moves.loads) == ({}, {}, {}, {})


def test_queueing_what_is_under_way_is_an_event_that_nobody_writes() -> None:
    with pytest.raises(AssertionError, match="cannot follow"):
        evolve(reassignment(Phase.COPYING), queued(), 1)


def test_equal_names_and_lists_of_different_records_are_one_object_in_the_state() -> None:
    events = (opened(), queued(KEYS[0]), queued(KEYS[1]), intended(key=KEYS[0]))
    state = state_after(decoded_anew(event) for event in events)
    first, second = state.reassignments.values()
    assert first.key.topic is second.key.topic
    assert first.topic_id is second.topic_id
    assert first.plan is second.plan
    assert first.step is not None
    assert first.step.expected is first.original
    assert first.step.replicas is first.target


@pytest.mark.parametrize(
    ("phase", "call", "lands"),
    [
        (Phase.ROLLING_BACK, Call.CANCEL, Phase.CANCEL_INTENDED),
        (Phase.CANCELLING, Call.RESTORE, Phase.RESTORE_INTENDED),
    ],
)
def test_an_intent_of_the_way_back_keeps_the_step(phase: Phase, call: Call, lands: Phase) -> None:
    intent = CallIntended(cluster=CLUSTER, topic="orders", partition=0, call=call, expected=(2, 1, 3))
    found = evolve(reassignment(phase, cancel_mode=CancelMode.ROLLBACK), intent, 1)
    assert found is not None
    assert (found.phase, found.step) == (lands, reassignment(phase).step)


@pytest.mark.parametrize(
    ("known", "lands"),
    [
        ({}, Phase.PENDING),
        ({"unresolved_targets": ((4, 2, 1),)}, Phase.CONFIRMED),
        ({"returning_to": (1, 2, 3)}, Phase.CONFIRMED),
    ],
    ids=["nothing-sent", "a-call-of-unknown-outcome", "on-its-way-back"],
)
def test_a_first_step_that_is_postponed_is_queued_again_if_nothing_was_sent(
    known: dict[str, Any], lands: Phase
) -> None:
    (event,) = postponed(reassignment(Phase.PREPARED, **known), CLUSTER)
    found = evolve(reassignment(Phase.PREPARED, **known), event, 1)
    assert found is not None
    assert (found.phase, found.load) == (lands, ())
    assert (found.step is None) == (lands is Phase.PENDING)


def test_only_what_is_prepared_can_be_postponed() -> None:
    assert [phase for phase in Phase if postponed(reassignment(phase), CLUSTER)] == [Phase.PREPARED]


def test_a_cancelled_plan_stays_cancelled_when_it_finishes() -> None:
    closed = PlanCancelled(cluster=CLUSTER, plan="p", by="bob", reason="r")
    state = state_after([opened(), PlanExtended(cluster=CLUSTER, plan="p", more=True), closed])
    assert not state.plans["p"].more
    apply(state, PlanFinished(cluster=CLUSTER, plan="p", completed=0, rolled_back=0, failed=0), 2000)
    assert state.plans["p"].status is PlanStatus.CANCELLED


def test_equal_states_have_equal_hashes_and_a_copy_is_independent() -> None:
    one, two = copying(), copying()
    assert hashed(one) == hashed(two)
    twin = one.copy()
    apply(twin, requested(), 3000)
    assert hashed(one) == hashed(two) != hashed(twin)


def test_the_hash_sees_the_order_of_acceptance() -> None:
    one = state_after([opened(), queued(KEYS[0]), queued(KEYS[1])])
    two = state_after([opened(), queued(KEYS[1]), queued(KEYS[0])])
    assert hashed(one) != hashed(two)


# -- a story written by the domain itself, whatever the cluster shows


@st.composite
def sights(draw: st.DrawFn) -> PartitionFacts | None:
    if draw(st.integers(0, 9)) == 0:
        return None
    replicas = draw(LISTS)
    isr = tuple(broker for broker in replicas if draw(st.booleans()))
    move = None
    if draw(st.booleans()):
        split = draw(st.integers(0, len(replicas)))
        move = Move(replicas, tuple(sorted(replicas[:split])), tuple(sorted(replicas[split:])))
    topic_id = draw(st.sampled_from([TOPIC_ID] * 9 + ["another"]))
    return PartitionFacts(topic_id, isr[0] if isr else None, replicas, isr, move)


def near(state: ClusterState, key: TopicPartition, seen: PartitionFacts | None, likeness: int) -> PartitionFacts | None:
    """Let most sights look like what is expected, so that stories get somewhere."""
    entry = state.reassignments[key]
    step = entry.step
    if likeness == 0 or seen is None:
        return seen
    if likeness == 1 or step is None:
        return PartitionFacts(TOPIC_ID, 1, entry.current, entry.current)
    if likeness == 2:
        return PartitionFacts(TOPIC_ID, 1, step.replicas, step.replicas)
    removing = tuple(broker for broker in step.expected if broker not in step.replicas)
    merged = step.replicas + removing
    return PartitionFacts(TOPIC_ID, 1, merged, step.expected, Move(merged, step.adding, removing))


def follow(state: ClusterState, key: TopicPartition, data: st.DataObject) -> Iterator[AnyEvent]:
    """What the domain says next about one partition."""
    entry = state.reassignments[key]
    if data.draw(st.integers(0, 7), label="cancel") == 0:
        yield from decide_cancel(cancel(key), state, Facts()).events
    elif entry.call_open:
        ends = [calls.lost, calls.never_sent]
        code = data.draw(st.sampled_from([0, 0, 0, 3, 39, 85, -1, 31, 998, 999]), label="code")
        if code >= 998:
            yield from ends[code - 998](entry, "d", CLUSTER)
        else:
            yield from calls.answered(entry, CallResult(code), CLUSTER)
    else:
        likeness = data.draw(st.integers(0, 3), label="likeness")
        seen = near(state, key, data.draw(sights(), label="sight"), likeness)
        where = context(persisted=data.draw(st.booleans(), label="persisted"), live=(1, 2, 3, 4))
        waits = entry.phase in {Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED}
        if not waits or seen is None or seen.topic_id != TOPIC_ID:
            yield from reconcile(entry, seen, where).events
            return
        found = next_call(entry, seen, where)
        if isinstance(found, Wait):
            yield from postponed(entry, CLUSTER)
            yield from blocked(entry, found.block, CLUSTER)
        elif isinstance(found, SendStep):
            step = found.step
            yield intended(step.expected, step.replicas, key=key, number=step.number, final=step.final)


@given(data=st.data(), lists=st.lists(st.tuples(LISTS, LISTS), min_size=3, max_size=3))
def test_every_story_that_the_domain_writes_folds_and_keeps_the_indexes_true(
    data: st.DataObject, lists: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    state = state_after([opened()])
    written: list[AnyEvent] = [opened()]
    for key, (original, target) in zip(KEYS, lists, strict=True):
        written.append(queued(key, original, target))
        apply(state, written[-1], 1000)
    for _ in range(data.draw(st.integers(0, 25), label="events")):
        if not state.reassignments:
            break
        key = data.draw(st.sampled_from(sorted(state.reassignments)), label="key")
        for event in tuple(follow(state, key, data)):
            apply(state, event, 1000)
            written.append(event)
            s7_indexes_agree(state)
    again = state_after(written)
    assert hashed(again) == hashed(state)


def test_every_event_of_a_reassignment_is_folded_by_exactly_one_rule() -> None:
    known = [*EVOLVING, *APPLYING]
    assert len(known) == len(set(known))
    assert set(known) == set(get_args(ReassignmentEvent))
