"""The model cluster under brokers that die, crash, stall and return, with and without ELR, and without a controller.

What the recorder found out about Kafka 4.3.1 is here too, each as a test of its own.
"""

import pytest
from msgspec.structs import replace

from drover.cluster.port import AlterRequest
from drover.cluster.throttle_lists import LEADER_RATE, LEADER_REPLICAS, ConfigOperation, OperationKind
from drover.events.partitions import TopicPartition
from drover.facts import Move
from drover.testing.controller_model import Election, Partition
from drover.testing.model import ClusterModel
from drover.traits import LATEST, known_traits

LONG = TopicPartition("long", 0)
OTHER = TopicPartition("long", 1)
UNCLEAN = {"unclean.leader.election.enable": "true"}


def cluster(*replicas: int, configs: dict[str, str] | None = None, **settings: object) -> ClusterModel:
    """Return a model of brokers 1 to 4 with one partition."""
    model = ClusterModel(dict.fromkeys(range(1, 5)), **settings)  # type: ignore[arg-type]  # settings are checked there
    model.create_topic("long", {0: replicas}, configs=configs)
    return model


def state(model: ClusterModel, partition: TopicPartition = LONG) -> Partition:
    found = model.partition(partition)
    assert found is not None
    return found


def alter(model: ClusterModel, *replicas: int) -> int:
    return model.alter([AlterRequest(LONG, replicas)])[LONG].code


# -- who may lead after the last in-sync replica


def test_with_elr_the_last_one_to_crash_leads_again_by_an_unclean_election() -> None:
    model = cluster(1, 2, 3)
    for broker in (3, 2, 1):
        model.stop_broker(broker)
    assert (state(model).isr, state(model).elr, state(model).last_known_leader) == ((), (1,), 1)
    model.start_broker(2)
    assert state(model).leader is None
    model.start_broker(1)
    assert (state(model).leader, state(model).isr, state(model).recovering) == (1, (1,), True)
    assert (state(model).elr, state(model).last_known_leader) == ((), None)


def test_with_elr_a_clean_stop_leaves_the_last_one_eligible() -> None:
    model = cluster(1, 2)
    model.stop_broker(2)
    model.stop_broker(1, clean=True)
    model.start_broker(1)
    assert (state(model).leader, state(model).recovering) == (1, False)


def test_a_clean_stop_waits_for_no_session() -> None:
    model = cluster(1, 2, session_timeout_ms=9000)
    model.stop_broker(1, clean=True)
    assert (model.live_brokers(), state(model).leader) == ((2, 3, 4), 2)


def test_who_left_an_isr_below_min_isr_cleanly_may_lead_before_the_last_one_is_back() -> None:
    model = cluster(1, 2, configs={"min.insync.replicas": "2"})
    model.stop_broker(1, clean=True)
    model.stop_broker(2)
    model.start_broker(1)
    assert (state(model).leader, state(model).isr, state(model).elr) == (1, (1,), (2,))


def test_who_crashed_is_eligible_no_more_and_the_live_last_leader_takes_over_when_nobody_is() -> None:
    model = cluster(1, 2, configs={"min.insync.replicas": "2"})
    model.stop_broker(1)
    model.stop_broker(2)
    assert (state(model).elr, state(model).last_known_leader) == ((1, 2), 2)
    model.start_broker(2)
    assert (state(model).leader, state(model).elr) == (None, (1,))
    model.start_broker(1)
    assert (state(model).leader, state(model).isr) == (2, (2,))


def test_without_elr_the_last_one_stays_in_the_isr_and_leads_again() -> None:
    model = cluster(1, 2, traits=replace(LATEST, with_elr=False))
    model.stop_broker(2)
    model.stop_broker(1)
    assert (state(model).leader, state(model).isr, state(model).elr) == (None, (1,), ())
    model.start_broker(2)
    assert state(model).leader is None
    model.start_broker(1)
    assert (state(model).leader, state(model).isr, state(model).recovering) == (1, (1,), False)


@pytest.mark.parametrize("with_elr", [True, False])
def test_an_unclean_topic_goes_on_with_whoever_lives_and_loses_what_that_one_lacks(with_elr: bool) -> None:
    model = cluster(1, 2, configs=UNCLEAN, traits=replace(LATEST, with_elr=with_elr))
    model.stop_broker(2)
    assert model.write(LONG, 100)
    model.advance(1)
    model.start_broker(2)
    model.stop_broker(1)
    assert (state(model).leader, state(model).isr, state(model).recovering) == (2, (2,), True)
    assert model.topics["long"].written[0] == 0
    model.start_broker(1)
    model.advance(1)
    assert model.stored_bytes(LONG) == {1: 0, 2: 0}


# -- what the recorder found


def test_one_request_is_decided_by_the_sizes_from_before_it() -> None:
    model = ClusterModel(dict.fromkeys(range(1, 5)))
    model.create_topic("long", {0: (1, 2), 1: (1, 2)}, configs={"min.insync.replicas": "2"})
    model.alter([AlterRequest(LONG, (1,)), AlterRequest(OTHER, (1,))])
    assert (state(model).elr, state(model, OTHER).elr) == ((2,), (2,))


def test_a_move_leaves_the_replicas_that_it_removed_eligible_and_an_alter_back_to_them_is_minus_1() -> None:
    model = cluster(1, 2, 3, configs={"min.insync.replicas": "2"})
    model.topics["long"].configs["min.insync.replicas"] = "2"
    assert alter(model, 1) == 0
    assert (state(model).replicas, state(model).elr) == ((1,), (2, 3))
    model.stop_broker(1)
    before = state(model)
    assert alter(model, 2) == -1
    assert state(model) == before
    assert alter(model, 4) == 0


def test_a_broker_that_returns_leaves_the_isr_it_was_forced_into() -> None:
    model = cluster(4, configs=UNCLEAN)
    model.stop_broker(4)
    alter(model, 4, 1, 2)
    assert model.alter([AlterRequest(LONG, None)])[LONG].code == 0
    assert (state(model).leader, state(model).isr) == (None, (4,))
    alter(model, 4, 1, 2)
    model.start_broker(4)
    assert (state(model).leader, state(model).isr) == (1, (1,))


def test_the_last_known_leader_of_a_partition_that_never_had_one_is_minus_1() -> None:
    model = cluster(1, 2)
    model.stop_broker(2)
    model.stop_broker(1)
    assert state(model).last_known_leader == 1
    assert model.elect_leader(LONG, Election.UNCLEAN) == 83


def test_new_partitions_need_as_many_replicas_as_a_moving_one_has_by_its_merged_list() -> None:
    model = cluster(1, 2)
    model.stop_broker(4)
    alter(model, 1, 4)
    assert [model.grow_topic("long", lists).code for lists in ([(1, 2)], [(1, 2, 3)])] == [39, 0]
    assert state(model, OTHER).replicas == (1, 2, 3)
    assert [model.grow_topic("long", lists).code for lists in ([], [(1, 1, 2)], [(1, 2, 9)])] == [37, 39, 39]
    assert model.grow_topic("none", [(1,)]).code == 3
    assert len(model.topics["long"].partitions) == 2


def test_nothing_is_created_on_fenced_brokers_alone() -> None:
    model = cluster(1)
    model.stop_broker(4)
    assert model.grow_topic("long", [(4,)]).code == 39
    with pytest.raises(ValueError, match="fenced"):
        model.create_topic("other", {0: (4,)})
    model.create_topic("other", {0: (4, 3)})
    assert state(model, TopicPartition("other", 0)).isr == (3,)


def test_in_zookeeper_mode_no_partition_is_added_on_a_dead_broker() -> None:
    for traits, code in (known_traits("3.9"), 0), (known_traits("3.9", zookeeper_mode=True), 39):
        model = ClusterModel(dict.fromkeys((1, 2, 3)), traits=traits)
        model.create_topic("t", {0: (1, 2)})
        model.stop_broker(3)
        assert model.grow_topic("t", [(1, 3)]).code == code
        assert model.grow_topic("t", [(2, 1)]).code == 0


def test_in_zookeeper_mode_the_death_of_any_broker_elects_where_nobody_leads() -> None:
    for traits, leader in (known_traits("3.9"), None), (known_traits("3.9", zookeeper_mode=True), 3):
        model = ClusterModel(dict.fromkeys((1, 2, 3, 4)), traits=traits)
        model.create_topic("long", {0: (1, 2)}, configs=UNCLEAN)
        model.stop_broker(2)
        model.stop_broker(1)
        alter(model, 1, 2, 3)
        assert state(model).leader is None
        model.stop_broker(4)
        assert state(model).leader == leader


def test_in_zookeeper_mode_a_new_controller_elects_where_nobody_leads() -> None:
    for traits, leader in (known_traits("3.9"), None), (known_traits("3.9", zookeeper_mode=True), 3):
        model = ClusterModel(dict.fromkeys((1, 2, 3)), traits=traits)
        model.create_topic("long", {0: (1, 2)}, configs=UNCLEAN)
        model.stop_broker(2)
        model.stop_broker(1)
        alter(model, 1, 2, 3)
        model.stop_controller()
        model.start_controller()
        assert state(model).leader == leader


def test_in_zookeeper_mode_the_last_one_in_sync_leads_again_when_it_is_back_even_where_others_may() -> None:
    for traits, leader in (known_traits("3.9"), 1), (known_traits("3.9", zookeeper_mode=True), 3):
        model = ClusterModel(dict.fromkeys((1, 2, 3)), traits=traits)
        model.create_topic("long", {0: (3,)}, configs=UNCLEAN)
        model.stop_broker(3)
        alter(model, 3, 1)
        model.start_broker(3)
        assert state(model).leader == leader


def test_in_zookeeper_mode_no_partition_is_added_to_a_topic_that_moves() -> None:
    for traits, code in (known_traits("3.9"), 0), (known_traits("3.9", zookeeper_mode=True), 60):
        model = ClusterModel(dict.fromkeys((1, 2, 3)), traits=traits, joins_by_itself=False)
        model.create_topic("long", {0: (1,)})
        alter(model, 1, 2)
        assert model.grow_topic("long", [(1, 2)]).code == code


# -- sessions, stalls, the controller, balance


def test_a_broker_that_is_back_before_its_session_ends_is_let_in_when_it_has() -> None:
    model = cluster(1, 2, session_timeout_ms=9000)
    model.stop_broker(1)
    model.advance(1000)
    model.start_broker(1)
    assert (model.brokers[1].alive, state(model).leader) == (False, 1)
    model.advance(8000)
    assert (model.brokers[1].alive, state(model).leader, model.live_brokers()) == (True, 2, (1, 2, 3, 4))
    assert state(model).isr == (2, 1)


def test_a_stalled_replica_leaves_the_isr_only_when_it_lacks_what_was_written_and_comes_back() -> None:
    model = cluster(1, 2, replica_lag_ms=30_000)
    model.stall_broker(2)
    model.advance(60_000)
    assert state(model).isr == (1, 2)
    model.write(LONG, 10)
    model.advance(1)
    assert (state(model).isr, model.stored_bytes(LONG)) == ((1,), {1: 10, 2: 0})
    model.unstall_broker(2)
    model.advance(1)
    assert (state(model).isr, model.stored_bytes(LONG)) == ((1, 2), {1: 10, 2: 10})


def test_a_stall_that_ends_in_time_costs_nothing() -> None:
    model = cluster(1, 2, replica_lag_ms=30_000)
    model.stall_broker(2)
    model.write(LONG, 10)
    model.advance(30_000)
    assert state(model).isr == (1, 2)
    model.unstall_broker(2)
    model.advance(30_000)
    assert (state(model).isr, model.stored_bytes(LONG)) == ((1, 2), {1: 10, 2: 10})


def test_a_dead_follower_leaves_the_isr_by_lag_before_a_long_session_ends() -> None:
    model = cluster(1, 2, replica_lag_ms=1000, session_timeout_ms=9000)
    model.stop_broker(2)
    model.write(LONG, 10)
    model.advance(1001)
    assert (state(model).isr, model.live_brokers()) == ((1,), (1, 2, 3, 4))


def test_nothing_is_written_while_the_leader_is_dead() -> None:
    model = cluster(1, 2, session_timeout_ms=9000)
    model.stop_broker(1)
    assert not model.write(LONG, 10)
    model.advance(9000)
    assert model.write(LONG, 10)


def test_without_a_controller_nothing_is_fenced_and_nothing_ends_and_afterwards_sessions_begin_anew() -> None:
    model = cluster(1, 2, session_timeout_ms=9000)
    alter(model, 1, 3)
    model.stop_controller()
    model.stop_broker(2)
    model.advance(60_000)
    assert model.moves() == {LONG: Move((1, 3, 2), (3,), (2,))}
    assert model.live_brokers() == (1, 2, 3, 4)
    model.start_controller()
    model.advance(8999)
    assert (state(model).replicas, model.live_brokers()) == ((1, 3), (1, 2, 3, 4))
    model.advance(1)
    assert model.live_brokers() == (1, 3, 4)


def test_tv_073_preferred_leaders_are_elected_every_so_often_where_they_are_in_sync() -> None:
    model = cluster(1, 2, 3, leader_rebalance_ms=300_000)
    model.create_topic("other", {0: (2, 3)})
    alter(model, 3, 2, 1)
    model.stop_broker(2)
    model.advance(299_999)
    assert state(model).leader == 1
    model.advance(1)
    assert state(model).leader == 3
    assert state(model, TopicPartition("other", 0)).leader == 3
    model.start_broker(2)
    model.advance(300_000)
    assert state(model, TopicPartition("other", 0)).leader == 2


def test_moves_share_a_throttle_evenly_and_who_needs_less_leaves_the_rest() -> None:
    model = ClusterModel(dict.fromkeys(range(1, 5)))
    model.create_topic("long", {0: (1,), 1: (1,), 2: (1,)}, partition_bytes=1000)
    model.write(TopicPartition("long", 2), -950)
    model.alter_topic_configs("long", [ConfigOperation(LEADER_REPLICAS, OperationKind.SET, "*")])
    model.alter_broker_configs(1, [ConfigOperation(LEADER_RATE, OperationKind.SET, "351")])
    model.alter([AlterRequest(TopicPartition("long", number), (number + 2,)) for number in range(3)])
    model.advance(1000)
    held = [model.stored_bytes(TopicPartition("long", number)).get(number + 2) for number in range(3)]
    assert held == [150, 151, 50]


def test_a_cancel_that_sends_the_only_leader_away_keeps_a_crashed_broker_out_for_ever() -> None:
    model = cluster(1, configs=UNCLEAN)
    model.stop_broker(3)
    alter(model, 3, 4)
    model.advance(1)
    model.stop_broker(1)
    assert (state(model).leader, state(model).isr) == (4, (4,))
    assert model.alter([AlterRequest(LONG, None)])[LONG].code == 0
    assert (state(model).replicas, state(model).leader, state(model).last_known_leader) == ((1,), None, 4)
    model.start_broker(1)
    model.advance(60_000)
    model.balance_leaders()
    assert (model.live_brokers(), state(model).leader) == ((2, 4), None)
    model.start_broker(3)
    assert model.live_brokers() == (2, 3, 4)
    model.stop_broker(4)
    model.advance(1)
    assert (model.live_brokers(), state(model).leader) == ((1, 2, 3), 1)
