"""The room of one pass: what is expected of looks, and what is kept for one move is taken by no other."""

from drover.events.clusters import Budgets
from drover.events.partitions import TopicPartition
from drover.reconcile.gates import Budget, Start, Uplink, first_shut
from drover.reconcile.observations import ObservationCache
from drover.reconcile.starts.room import Room
from drover.state.broker_directions import BrokerDirection, directions_of
from drover.state.cluster import ClusterState
from drover.state.scheduling import Limits

FIRST, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def room(limits: Limits) -> Room:
    state, observed = ClusterState("prod"), ObservationCache()
    state.kafka_cluster_id, state.limits = "kafka", limits
    observed.live = frozenset(range(1, 9))
    observed.racks = {1: "a", 4: "b", 5: "b"}
    return Room(state, observed, None)  # type: ignore[arg-type]


def start(key: TopicPartition, *brokers: int, share: int = 16) -> Start:
    return Start(key, directions=directions_of(brokers, 1), copies=len(brokers), share=share)


def test_what_is_looked_at_is_expected_to_take_its_share_of_slots() -> None:
    there = room(Limits(max_moves_per_broker=1))
    for _ in range(3):
        there.expect(start(FIRST, 4, share=4))
    assert there.slots_taken(BrokerDirection(4, "in"), OTHER) == 12
    assert first_shut(start(OTHER, 4, share=4), there) is None
    assert first_shut(start(OTHER, 4, share=8), there) is not None
    assert there.budget_taken(Budget.COPIES) == 3
    there.begin()
    assert there.slots_taken(BrokerDirection(4, "in"), OTHER) == 0


def test_what_is_kept_for_a_move_counts_for_all_others_and_is_all_it_needs_or_nothing() -> None:
    there = room(Limits(max_moves_per_broker=2))
    assert there.keep(start(FIRST, 4, 5))
    assert [there.slots_taken(BrokerDirection(1, "out"), key) for key in (FIRST, OTHER)] == [0, 32]
    assert not there.keep(start(OTHER, 6))
    assert there.slots_taken(BrokerDirection(6, "in"), FIRST) == 0


def test_a_broker_takes_copies_while_the_least_share_is_left() -> None:
    there = room(Limits(max_moves_per_broker=1))
    there.state.moves.slots[BrokerDirection(4, "in")] = 15
    assert there.takes_copies(4)
    there.state.moves.slots[BrokerDirection(4, "in")] = 16
    assert not there.takes_copies(4)


def test_room_at_a_dead_broker_is_waited_for_only_by_what_was_observed() -> None:
    there = room(Limits(max_moves_per_broker=1))
    there.state.moves.slots[BrokerDirection(9, "in")] = 16
    likely = start(FIRST, 9)
    assert first_shut(likely, there) is None
    assert first_shut(likely._replace(is_observed=True), there) is not None


def test_racks_are_known_where_a_limit_concerns_them() -> None:
    there = room(Limits(budgets=Budgets(max_moves_per_rack=2)))
    there.expect(Start(FIRST, uplinks=(Uplink("a", "out"), Uplink("b", "in"))))
    assert there.uplink_taken(Uplink("a", "out"), OTHER) == 16
    assert room(Limits()).racks == {}
