"""Lagging replicas: which brokers get fewer slots, for how long, and when no copy begins."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from drover.events.adaptation import AllowanceReason, BrokerAllowanceChanged, StartsResumed, StartsSuspended
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.fold.evolve import apply
from drover.reconcile.adaptation.judgement import (
    LOWER_EVERY_MS,
    MOST_HALVINGS,
    MOST_NAMED,
    RECOVER_EVERY_MS,
    Health,
    below_min_isr,
    causes,
    judge,
    switch_off,
    unexplained,
)
from drover.state.cluster import ClusterState

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LIVE = frozenset({1, 2, 3, 4})
NOTHING_MOVES: Mapping[TopicPartition, tuple[int, ...]] = {}
NEVER: Mapping[int, int] = {}


def facts(isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3), leader: int | None = 1) -> PartitionFacts:
    return PartitionFacts("id", leader, replicas, isr)


def health(
    under_replicated: Mapping[TopicPartition, PartitionFacts],
    *,
    moving: Mapping[TopicPartition, tuple[int, ...]] = NOTHING_MOVES,
    listed: Mapping[TopicPartition, tuple[int, ...]] | None = None,
    live: frozenset[int] = LIVE,
    busy: frozenset[int] = LIVE,
    min_isr: int = 1,
) -> Health:
    lagging = frozenset(unexplained(under_replicated, moving.keys(), live))
    return Health(under_replicated, moving, moving if listed is None else listed, lagging, busy, {"orders": min_isr})


def judged(state: ClusterState, found: Health, at_ms: int, last_cause_ms: Mapping[int, int] = NEVER) -> list[object]:
    events = list(judge(state, found, last_cause_ms, at_ms))
    for event in events:
        apply(state, event, at_ms)
    return list(events)


def test_a_live_replica_that_lags_lowers_its_broker_and_the_leader_where_they_are_busy() -> None:
    assert set(causes(health({KEY: facts((1, 2))}))) == {1, 3}
    assert set(causes(health({KEY: facts((1, 2))}, busy=frozenset({3, 4})))) == {3}
    assert "replica 3 of orders:0 is not in sync" in causes(health({KEY: facts((1, 2))}))[3]


def test_what_moves_or_a_dead_broker_explain_lowers_nobody() -> None:
    assert causes(health({KEY: facts((1, 2))}, moving={KEY: (3,)})) == {}
    assert causes(health({KEY: facts((1, 2))}, live=frozenset({1, 2, 4}))) == {}
    assert list(unexplained({KEY: facts((1, 2))}, {KEY}, LIVE)) == []
    # It lagged when every partition was looked at, and meanwhile somebody has begun to move it, or it has caught up.
    lagging = health({KEY: facts((1, 2))})
    assert causes(replace(lagging, moving={KEY: ()})) == {}
    assert causes(replace(lagging, under_replicated={})) == {}


def test_a_partition_with_fewer_replicas_than_its_minimum_is_below_it_only_if_it_has_lost_one() -> None:
    alone, growing = facts((1,), replicas=(1,)), facts((1,), replicas=(1, 2))
    assert below_min_isr(health({KEY: alone}, min_isr=2), ()) == ()
    assert below_min_isr(health({KEY: growing}, min_isr=2, moving={KEY: (2,)}), ()) == ()
    assert below_min_isr(health({KEY: growing}, min_isr=2), ()) == (KEY,)
    assert below_min_isr(health({KEY: facts((1,))}, min_isr=2, moving={KEY: (3,)}), ()) == (KEY,)


def test_what_the_log_calls_too_few_stays_so_until_the_minimum_has_been_read() -> None:
    unread = replace(health({KEY: facts((1, 2)), OTHER: facts((1, 2))}), min_isr={})
    assert below_min_isr(unread, ()) == ()
    assert below_min_isr(unread, {KEY}) == (KEY,)
    assert below_min_isr(replace(unread, under_replicated={}), {KEY}) == ()
    assert below_min_isr(replace(unread, min_isr={"orders": 2}), {KEY}) == ()


def test_a_broker_gets_slots_back_only_a_minute_after_its_last_cause() -> None:
    state = ClusterState("local")
    judged(state, health({KEY: facts((1, 2))}, busy=frozenset({3})), 0)
    good, last_ms = health({}), 5 * RECOVER_EVERY_MS
    assert judged(state, good, last_ms + RECOVER_EVERY_MS - 1, {3: last_ms}) == []
    assert len(judged(state, good, last_ms + RECOVER_EVERY_MS, {3: last_ms})) == 1


def test_a_broker_is_lowered_by_halves_and_recovers_slowly() -> None:
    state, bad, good = ClusterState("local"), health({KEY: facts((1, 2))}, busy=frozenset({3})), health({})
    at_ms, seen = 0, []
    for _ in range(MOST_HALVINGS + 2):
        judged(state, bad, at_ms)
        assert judged(state, bad, at_ms + LOWER_EVERY_MS - 1) == []
        seen.append(state.allowances[3].halvings)
        at_ms += LOWER_EVERY_MS
    assert seen == [1, 2, 3, 3, 3]
    assert (state.slots_of(3, 5), state.slots_of(3, 16), state.slots_of(4, 5)) == (1, 2, 5)
    lowered_ms = state.allowances[3].since_ms
    assert judged(state, good, lowered_ms + RECOVER_EVERY_MS - 1) == []
    for step in (2, 1, 0):
        lowered_ms += RECOVER_EVERY_MS
        (event,) = judged(state, good, lowered_ms)
        assert isinstance(event, BrokerAllowanceChanged)
        assert (event.halvings, event.why) == (step, AllowanceReason.RECOVERED)
    assert state.allowances == {}


def test_a_broker_that_is_not_busy_any_more_recovers_as_well() -> None:
    state = ClusterState("local")
    judged(state, health({KEY: facts((1, 2))}), 0)
    assert set(state.allowances) == {1, 3}
    judged(state, health({KEY: facts((1, 2))}, busy=frozenset({1})), RECOVER_EVERY_MS)
    assert {broker: known.halvings for broker, known in state.allowances.items()} == {1: 2}


def test_too_few_in_sync_suspend_all_but_the_repairs_until_there_are_enough() -> None:
    state = ClusterState("local")
    found = health({KEY: facts((1,)), OTHER: facts((1, 2))}, live=frozenset({1, 4}), min_isr=2)
    (event,) = judged(state, found, 5)
    assert isinstance(event, StartsSuspended)
    assert (event.count, [one.key for one in event.partitions]) == (1, [KEY])
    assert (state.is_suspended(KEY), state.is_suspended(OTHER)) == (False, True)
    assert judged(state, found, 6) == []
    both = health({KEY: facts((1,)), OTHER: facts((1,))}, live=frozenset({1, 4}), min_isr=2)
    judged(state, both, 7)
    assert state.suspension is not None
    assert (state.suspension.count, state.suspension.since_ms, state.is_suspended(OTHER)) == (2, 5, False)
    (event,) = judged(state, health({}), 8)
    assert isinstance(event, StartsResumed)
    after = (state.suspension is None, len(state.below_min_isr), state.is_suspended(OTHER))
    assert after == (True, 0, False)


def test_a_replica_whose_step_kafka_has_ended_counts_although_the_end_is_not_recorded() -> None:
    state = ClusterState("local")
    judged(state, health({KEY: facts((1,), (1, 2))}, live=frozenset({1}), min_isr=2), 0)
    assert state.below_min_isr == {KEY}
    # Broker 2 has replaced broker 3 and is out of sync again; a new owner has not seen the end of that step.
    stale = health({KEY: facts((1,), (1, 2))}, moving={KEY: (2,)}, listed={}, live=frozenset({1}), min_isr=2)
    assert judged(state, stale, 1) == []
    assert state.suspension is not None
    copying = health({KEY: facts((1,), (1, 2))}, moving={KEY: (2,)}, live=frozenset({1}), min_isr=2)
    assert [type(event) for event in judged(state, copying, 2)] == [StartsResumed]


def test_of_many_partitions_only_the_first_are_named() -> None:
    found = {TopicPartition("orders", number): facts((1,)) for number in range(MOST_NAMED + 7)}
    events = list(judge(ClusterState("local"), health(found, busy=frozenset(), min_isr=2), NEVER, 0))
    (event,) = events
    assert isinstance(event, StartsSuspended)
    assert (event.count, len(event.partitions)) == (MOST_NAMED + 7, MOST_NAMED)


def test_switched_off_everything_is_as_the_limits_say() -> None:
    state = ClusterState("local")
    judged(state, health({KEY: facts((1,))}, min_isr=2), 0)
    for event in list(switch_off(state)):
        apply(state, event, 1)
    assert (state.allowances, state.suspension) == ({}, None)


UNDER_REPLICATED = st.dictionaries(
    st.integers(0, 5).map(lambda number: TopicPartition("orders", number)),
    st.tuples(st.sampled_from([(1, 2, 3, 4), (3, 1, 4, 2), (4, 3, 2, 1)]), st.integers(1, 3)),
    max_size=3,
)


@given(st.lists(st.tuples(UNDER_REPLICATED, st.integers(0, 90_000), st.sets(st.integers(1, 4))), max_size=12))
def test_changes_are_bounded_in_size_and_pace_and_judging_twice_changes_nothing(
    looks: list[tuple[Mapping[TopicPartition, tuple[tuple[int, ...], int]], int, set[int]]],
) -> None:
    state, at_ms, changed_ms = ClusterState("local"), 0, dict[int, int]()
    for found_by_key, pause_ms, live in looks:
        at_ms += pause_ms
        shown = {key: facts(order[:count], order, order[0]) for key, (order, count) in found_by_key.items()}
        found = health(shown, live=frozenset(live), min_isr=2)
        for event in judged(state, found, at_ms):
            if isinstance(event, BrokerAllowanceChanged):
                assert abs(event.halvings - event.previous_halvings) == 1
                pace_ms = LOWER_EVERY_MS if event.halvings > event.previous_halvings else RECOVER_EVERY_MS
                since_ms = changed_ms.get(event.broker) if event.previous_halvings else None
                assert since_ms is None or at_ms - since_ms >= pace_ms
                changed_ms[event.broker] = at_ms
        assert list(judge(state, found, NEVER, at_ms)) == []
        assert all(1 <= known.halvings <= MOST_HALVINGS for known in state.allowances.values())
