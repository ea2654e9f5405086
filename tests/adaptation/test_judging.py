"""What partitions that lack replicas mean: which brokers may do less, for how long, and whether copies begin."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from drover.adaptation.judging import (
    LOWER_EVERY_MS,
    MOST_HALVINGS,
    MOST_NAMED,
    RECOVER_EVERY_MS,
    Health,
    causes,
    judge,
    switch_off,
)
from drover.facts import PartitionFacts
from drover.state.cluster import ClusterState
from drover.state.evolve import apply
from events.adaptation import AllowanceReason, BrokerAllowanceChanged, StartsResumed, StartsSuspended
from events.partitions import TopicPartition
from tests.reassignment.support import PATIENT

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LIVE = frozenset({1, 2, 3, 4})


def facts(isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3), leader: int | None = 1) -> PartitionFacts:
    return PartitionFacts("id", leader, replicas, isr)


def health(
    lacking: Mapping[TopicPartition, PartitionFacts],
    *,
    moving: frozenset[TopicPartition] = frozenset(),
    live: frozenset[int] = LIVE,
    busy: frozenset[int] = LIVE,
    min_isr: int = 1,
) -> Health:
    return Health(lacking, moving, live, busy, {"orders": min_isr})


def judged(state: ClusterState, found: Health, at_ms: int) -> list[object]:
    events = list(judge(state, found, at_ms))
    for event in events:
        apply(state, event, at_ms)
    return list(events)


def test_a_live_replica_that_lags_lowers_its_broker_and_the_leader_where_they_are_busy() -> None:
    assert set(causes(health({KEY: facts((1, 2))}))) == {1, 3}
    assert set(causes(health({KEY: facts((1, 2))}, busy=frozenset({3, 4})))) == {3}
    assert "replica 3 of orders:0 is not in sync" in causes(health({KEY: facts((1, 2))}))[3]


def test_what_moves_or_a_dead_broker_explain_lowers_nobody() -> None:
    assert causes(health({KEY: facts((1, 2))}, moving=frozenset({KEY}))) == {}
    assert causes(health({KEY: facts((1, 2))}, live=frozenset({1, 2, 4}))) == {}


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


def test_of_many_partitions_only_the_first_are_named() -> None:
    lacking = {TopicPartition("orders", number): facts((1,)) for number in range(MOST_NAMED + 7)}
    events = list(judge(ClusterState("local"), health(lacking, busy=frozenset(), min_isr=2), 0))
    (event,) = events
    assert isinstance(event, StartsSuspended)
    assert (event.count, len(event.partitions)) == (MOST_NAMED + 7, MOST_NAMED)


def test_switched_off_everything_is_as_the_limits_say() -> None:
    state = ClusterState("local")
    judged(state, health({KEY: facts((1,))}, min_isr=2), 0)
    for event in list(switch_off(state)):
        apply(state, event, 1)
    assert (state.allowances, state.suspension) == ({}, None)


LACKING = st.dictionaries(
    st.integers(0, 5).map(lambda number: TopicPartition("orders", number)),
    st.tuples(st.sampled_from([(1, 2, 3, 4), (3, 1, 4, 2), (4, 3, 2, 1)]), st.integers(1, 3)),
    max_size=3,
)


@PATIENT
@given(st.lists(st.tuples(LACKING, st.integers(0, 90_000), st.sets(st.integers(1, 4))), max_size=12))
def test_changes_are_bounded_in_size_and_pace_and_judging_twice_changes_nothing(
    looks: list[tuple[Mapping[TopicPartition, tuple[tuple[int, ...], int]], int, set[int]]],
) -> None:
    state, at_ms, changed_ms = ClusterState("local"), 0, dict[int, int]()
    for lacking, pause_ms, live in looks:
        at_ms += pause_ms
        shown = {key: facts(order[:count], order, order[0]) for key, (order, count) in lacking.items()}
        found = health(shown, live=frozenset(live), min_isr=2)
        for event in judged(state, found, at_ms):
            if isinstance(event, BrokerAllowanceChanged):
                assert abs(event.halvings - event.previous_halvings) == 1
                pace_ms = LOWER_EVERY_MS if event.halvings > event.previous_halvings else RECOVER_EVERY_MS
                since_ms = changed_ms.get(event.broker) if event.previous_halvings else None
                assert since_ms is None or at_ms - since_ms >= pace_ms
                changed_ms[event.broker] = at_ms
        assert list(judge(state, found, at_ms)) == []
        assert all(1 <= known.halvings <= MOST_HALVINGS for known in state.allowances.values())
