"""The model cluster against Kafka's own controller tests (docs/test-vectors.md) and against what was seen on 4.3.1.

TV-073 is in test_model_brokers.py, with all that happens to brokers; test_model_vectors.py has the other sections.
"""

import pytest

from drover.cluster.port import AlterRequest
from drover.cluster.throttle_lists import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ConfigOperation,
    OperationKind,
)
from drover.events.partitions import TopicPartition
from drover.facts import Move
from drover.testing.controller_model import Election, Partition
from drover.testing.model import ClusterModel

FOO = [TopicPartition("foo", number) for number in range(4)]
BAR = TopicPartition("bar", 0)
LONG = TopicPartition("long", 0)


def cluster(brokers: int = 5, **assignments: dict[int, tuple[int, ...]]) -> ClusterModel:
    """Return a model of brokers 0.. with topics whose replicas join the ISR only when told."""
    model = ClusterModel(dict.fromkeys(range(brokers)), joins_by_itself=False)
    for topic, partitions in assignments.items():
        model.create_topic(topic, partitions)
    return model


def alter(model: ClusterModel, partition: TopicPartition, *replicas: int) -> int:
    return model.alter([AlterRequest(partition, replicas)])[partition].code


def cancel(model: ClusterModel, *partitions: TopicPartition) -> list[int]:
    results = model.alter([AlterRequest(partition, None) for partition in partitions])
    return [results[partition].code for partition in partitions]


def state(model: ClusterModel, partition: TopicPartition) -> Partition:
    found = model.partition(partition)
    assert found is not None
    return found


def reassigning() -> ClusterModel:
    """Return Kafka's `testReassignPartitions`: foo-0, foo-1 led by 3, bar-0 idle."""
    model = cluster(foo={0: (1, 2, 3), 1: (3, 2, 1)}, bar={0: (1, 2, 3)})
    assert alter(model, FOO[0], 3, 2, 1) == 0
    assert alter(model, FOO[1], 0, 2, 1) == 0
    return model


def test_tv_050_a_reorder_is_done_at_once() -> None:
    model = reassigning()
    assert state(model, FOO[0]) == Partition((3, 2, 1), (1, 2, 3), 1)
    assert FOO[0] not in model.moves()


def test_tv_051_a_move_is_listed_with_merged_replicas() -> None:
    assert reassigning().moves() == {FOO[1]: Move((0, 2, 1, 3), (0,), (3,))}


def test_tv_052_an_unknown_partition_is_3_for_alter_and_cancel() -> None:
    model = reassigning()
    assert alter(model, FOO[2], 1, 2, 3) == 3
    assert cancel(model, FOO[2]) == [3]


def test_tv_054_idle_partitions_are_not_listed() -> None:
    assert BAR not in reassigning().moves()


def test_tv_055_one_request_cancels_what_moves_and_says_85_of_the_rest() -> None:
    assert cancel(reassigning(), FOO[0], FOO[1], BAR) == [85, 0, 85]


def test_tv_056_a_cancel_leaves_the_merged_order_and_bumps_the_leader_epoch() -> None:
    model = reassigning()
    cancel(model, FOO[1])
    assert state(model, FOO[1]) == Partition((2, 1, 3), (3, 2, 1), 3, leader_epoch=1)


def fenced_three() -> ClusterModel:
    """Return Kafka's `testCancelReassignPartitions`: broker 3 is fenced."""
    model = cluster(foo={0: (1, 2, 3, 4), 1: (0, 1, 2, 3), 2: (0, 1, 3, 2)}, bar={0: (4, 3, 2)})
    model.stop_broker(3)
    return model


def test_tv_058_a_shrink_that_drops_the_dead_replica_completes_at_once() -> None:
    model = fenced_three()
    assert alter(model, FOO[0], 1, 2, 4) == 0
    assert state(model, FOO[0]) == Partition((1, 2, 4), (1, 2, 4), 1, leader_epoch=1)


def test_tv_059_a_reorder_completes_with_a_dead_replica() -> None:
    model = fenced_three()
    assert alter(model, FOO[1], 1, 2, 3, 0) == 0
    assert state(model, FOO[1]) == Partition((1, 2, 3, 0), (0, 1, 2), 0)


@pytest.mark.parametrize(
    "replicas",
    [
        pytest.param((5, 6, 7), id="TV-060-unregistered"),
        pytest.param((), id="TV-061-empty"),
        pytest.param((1, 2, 2), id="TV-067-duplicate"),
    ],
)
def test_a_list_that_cannot_be_is_39(replicas: tuple[int, ...]) -> None:
    model = fenced_three()
    before = state(model, FOO[2])
    assert alter(model, FOO[2], *replicas) == 39
    assert state(model, FOO[2]) == before


@pytest.mark.parametrize(
    "assignments",
    [
        pytest.param({0: ()}, id="TV-067-empty"),
        pytest.param({0: (1, 2, 9)}, id="TV-067-unregistered"),
        pytest.param({0: (1, 2, 2)}, id="TV-067-duplicate"),
        pytest.param({0: (1, 2, 3), 1: (1, 2)}, id="TV-067-uneven"),
    ],
)
def test_a_topic_with_a_bad_assignment_is_not_created(assignments: dict[int, tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="bad"):
        cluster().create_topic("bad", assignments)


def test_tv_062_and_063_a_growing_move_with_a_dead_replica_is_listed_and_cancelled() -> None:
    model = fenced_three()
    assert alter(model, BAR, 1, 2, 3, 4, 0) == 0
    assert state(model, BAR) == Partition((1, 2, 3, 4, 0), (4, 2), 4, adding=(0, 1))
    assert cancel(model, BAR) == [0]
    assert state(model, BAR) == Partition((2, 3, 4), (4, 2), 4, leader_epoch=1)
    assert model.moves() == {}


def test_tv_064_a_finished_move_cannot_be_cancelled() -> None:
    model = fenced_three()
    alter(model, FOO[0], 1, 2, 4)
    assert cancel(model, FOO[0]) == [85]


def test_tv_065_and_066_a_retarget_keeps_what_the_first_target_added_until_the_second_is_in_sync() -> None:
    model = cluster(6, long={0: (0, 1)})
    alter(model, LONG, 2, 3)
    assert model.moves() == {LONG: Move((2, 3, 0, 1), (2, 3), (0, 1))}
    model.join_isr(LONG, 2)
    assert model.elect_leader(LONG, Election.PREFERRED) == 0
    assert state(model, LONG).leader == 2
    alter(model, LONG, 4, 5)
    assert model.moves() == {LONG: Move((4, 5, 0, 1, 2, 3), (4, 5), (0, 1, 2, 3))}
    assert state(model, LONG).leader == 2
    for broker in (3, 4, 5):
        model.join_isr(LONG, broker)
    assert (state(model, LONG).replicas, state(model, LONG).leader, model.moves()) == ((4, 5), 4, {})


def test_tv_068_and_069_preferred_leaders_are_elected_where_they_can_be() -> None:
    model = cluster(foo={0: (1, 2, 3), 1: (2, 3, 4), 2: (0, 2, 1)})
    model.joins_by_itself = True
    unknown = TopicPartition("foo", 3)
    model.stop_broker(0)
    model.stop_broker(1)
    before = [state(model, partition) for partition in FOO[:3]]
    codes = [model.elect_leader(partition, Election.PREFERRED) for partition in (*FOO[:3], unknown)]
    assert codes == [80, 84, 80, 3]
    assert [state(model, partition) for partition in FOO[:3]] == before
    model.start_broker(0)
    model.start_broker(1)
    model.advance(0)
    codes = [model.elect_leader(partition, Election.PREFERRED) for partition in (*FOO[:3], unknown)]
    assert codes == [0, 84, 0, 3]
    assert [state(model, partition).leader for partition in FOO[:3]] == [1, 2, 0]


def test_tv_070_and_071_a_preferred_election_is_never_unclean_and_an_unclean_one_needs_a_live_replica() -> None:
    model = cluster(foo={0: (1, 2, 3)})
    for broker in (2, 3, 1):
        model.stop_broker(broker)
    assert model.elect_leader(FOO[0], Election.UNCLEAN) == 83
    model.start_broker(2)
    model.topics["foo"].configs["unclean.leader.election.enable"] = "true"
    assert state(model, FOO[0]).leader is None
    assert model.elect_leader(FOO[0], Election.PREFERRED) == 80
    assert state(model, FOO[0]).leader is None
    assert model.elect_leader(FOO[0], Election.UNCLEAN) == 0
    assert (state(model, FOO[0]).leader, state(model, FOO[0]).isr) == (2, (2,))


def test_tv_072_fenced_brokers_leave_every_isr_and_lead_nothing() -> None:
    model = cluster(foo={0: (1, 2, 3), 1: (2, 3, 4), 2: (0, 2, 1)})
    model.stop_broker(2)
    model.stop_broker(3)
    assert [state(model, partition).isr for partition in FOO[:3]] == [(1,), (4,), (0, 1)]
    assert [state(model, partition).leader for partition in FOO[:3]] == [1, 4, 0]


def test_a_retarget_between_two_moves_loses_the_order_as_seen_live() -> None:
    model = cluster(long={0: (2, 3, 1)})
    alter(model, LONG, 4, 3, 2)
    alter(model, LONG, 1, 4, 3)
    assert cancel(model, LONG) == [0]
    assert state(model, LONG).replicas == (1, 3, 2)


def test_a_kept_original_that_is_dead_does_not_block_a_move_that_adds() -> None:
    model = cluster(long={0: (1, 2, 3)})
    model.stop_broker(2)
    alter(model, LONG, 4, 2, 3)
    model.join_isr(LONG, 4)
    assert (state(model, LONG).replicas, model.moves()) == ((4, 2, 3), {})


def test_a_cancel_is_refused_when_no_original_is_in_sync_unless_unclean_elections_are_allowed() -> None:
    model = cluster(long={0: (1, 2)})
    alter(model, LONG, 3, 4)
    model.join_isr(LONG, 3)
    model.stop_broker(1)
    model.stop_broker(2)
    before = state(model, LONG)
    assert (before.leader, before.isr) == (3, (3,))
    assert cancel(model, LONG) == [39]
    assert state(model, LONG) == before
    model.topics["long"].configs["unclean.leader.election.enable"] = "true"
    assert cancel(model, LONG) == [0]
    assert state(model, LONG).replicas == (1, 2)


def test_a_dead_broker_stays_in_the_metadata_until_its_session_ends() -> None:
    model = ClusterModel(dict.fromkeys(range(1, 4)), session_timeout_ms=9000)
    model.create_topic("long", {0: (1, 2, 3)})
    model.stop_broker(1)
    model.advance(8999)
    assert model.live_brokers() == (1, 2, 3)
    assert state(model, LONG).leader == 1
    model.advance(1)
    assert model.live_brokers() == (2, 3)
    assert state(model, LONG).leader == 2


def test_a_lone_replica_leads_again_when_its_broker_returns() -> None:
    model = cluster(long={0: (4,)})
    model.stop_broker(4)
    assert (state(model, LONG).leader, state(model, LONG).isr) == (None, ())
    model.start_broker(4)
    assert (state(model, LONG).leader, state(model, LONG).isr) == (4, (4,))


def test_a_move_to_a_partition_without_a_leader_copies_nothing_and_its_cancel_is_refused() -> None:
    model = cluster(long={0: (3,)})
    model.joins_by_itself = True
    model.stop_broker(3)
    assert alter(model, LONG, 4) == 0
    model.advance(1000)
    assert model.moves() == {LONG: Move((4, 3), (4,), (3,))}
    assert cancel(model, LONG) == [39]


def test_copying_takes_bytes_over_rate_and_a_throttle_slows_it_down() -> None:
    model = ClusterModel(dict.fromkeys(range(1, 5)), copy_bytes_per_second=1000)
    model.create_topic("long", {0: (1, 2, 3)}, partition_bytes=2000)
    alter(model, LONG, 1, 2, 4)
    model.advance(500)
    assert model.stored_bytes(LONG) == {1: 2000, 2: 2000, 3: 2000, 4: 500}
    model.alter_topic_configs("long", [ConfigOperation(FOLLOWER_REPLICAS, OperationKind.APPEND, "0:4")])
    model.alter_broker_configs(4, [ConfigOperation(FOLLOWER_RATE, OperationKind.SET, "100")])
    model.advance(1000)
    assert model.stored_bytes(LONG)[4] == 600
    model.alter_broker_configs(4, [ConfigOperation(FOLLOWER_RATE, OperationKind.DELETE)])
    model.advance(1399)
    assert LONG in model.moves()
    model.advance(1)
    assert LONG not in model.moves()
    assert model.stored_bytes(LONG) == {1: 2000, 2: 2000, 4: 2000}


def test_a_leader_throttle_is_shared_by_all_that_copy_from_it() -> None:
    model = ClusterModel(dict.fromkeys(range(1, 5)))
    model.create_topic("foo", {0: (1,), 1: (1,)}, partition_bytes=1000)
    model.alter_topic_configs("foo", [ConfigOperation(LEADER_REPLICAS, OperationKind.SET, "*")])
    model.alter_broker_configs(1, [ConfigOperation(LEADER_RATE, OperationKind.SET, "300")])
    model.alter([AlterRequest(FOO[0], (2,)), AlterRequest(FOO[1], (3,))])
    for _each_tenth_of_a_second in range(10):
        model.advance(100)
    assert model.stored_bytes(FOO[0])[2] + model.stored_bytes(FOO[1])[3] == 300


def test_a_recreated_topic_has_another_id_and_nothing_of_the_old_one() -> None:
    model = cluster()
    first = model.create_topic("long", {0: (1, 2)}, partition_bytes=10)
    alter(model, LONG, 3, 4)
    model.delete_topic("long")
    assert (model.moves(), model.partition(LONG), model.facts(LONG)) == ({}, None, None)
    second = model.create_topic("long", {0: (1, 2)})
    assert (len(first), len(second), first == second) == (22, 22, False)
    assert model.stored_bytes(LONG) == {1: 0, 2: 0}


@pytest.mark.parametrize("value", ["*,0:1", "x", "0:1,1"])
def test_a_malformed_throttled_list_is_refused_and_changes_nothing(value: str) -> None:
    model = cluster(foo={0: (1, 2)})
    result = model.alter_topic_configs("foo", [ConfigOperation(LEADER_REPLICAS, OperationKind.SET, value)])
    assert (result.code, model.topics["foo"].configs) == (40, {})


def test_subtracting_everything_leaves_an_empty_value_behind_as_kafka_does() -> None:
    model = cluster(foo={0: (1, 2)})
    model.alter_topic_configs("foo", [ConfigOperation(LEADER_REPLICAS, OperationKind.APPEND, "0:1")])
    model.alter_topic_configs("foo", [ConfigOperation(LEADER_REPLICAS, OperationKind.APPEND, "0:1,0:2")])
    assert model.topics["foo"].configs == {LEADER_REPLICAS: "0:1,0:2"}
    model.alter_topic_configs("foo", [ConfigOperation(LEADER_REPLICAS, OperationKind.SUBTRACT, "0:1,0:2")])
    assert model.topics["foo"].configs == {LEADER_REPLICAS: ""}
