"""The model cluster against cases of the Admin API under use, of live clusters, and derived ones, as 4.3.1 answers."""

import pytest

from drover.events.partitions import TopicPartition
from drover.facts import Move
from drover.testing.controller_model import Election
from drover.testing.model import ClusterModel
from drover.traits import known_traits
from tests.cluster.test_model import LONG, alter, cancel, cluster, state

FOO = [TopicPartition("foo", number) for number in range(4)]
BAR = [TopicPartition("bar", number) for number in range(2)]


def moving(*replicas: int) -> ClusterModel:
    """Return a cluster of brokers 0 to 9 with one partition of these replicas."""
    return cluster(10, long={0: replicas})


def elect(model: ClusterModel, partition: TopicPartition = LONG, kind: Election = Election.PREFERRED) -> int:
    return model.elect_leader(partition, kind)


# -- the Admin API under use


def test_tv_130_moves_of_several_requests_are_listed_together() -> None:
    model = cluster(foo={0: (0, 1), 1: (0, 1)}, bar={0: (0, 1)})
    for partition in (FOO[0], FOO[1], BAR[0]):
        assert alter(model, partition, 2, 3) == 0
    assert model.moves().keys() == {FOO[0], FOO[1], BAR[0]}


def test_tv_131_partitions_are_added_to_a_topic_that_moves_but_in_zookeeper_mode() -> None:
    for zookeeper_mode, code in (False, 0), (True, 60):
        traits = known_traits("3.9", zookeeper_mode=zookeeper_mode)
        model = ClusterModel(dict.fromkeys(range(5)), joins_by_itself=False, traits=traits)
        model.create_topic("foo", {0: (0, 1)})
        model.create_topic("bar", {0: (0, 1)})
        alter(model, FOO[0], 0, 2)
        # In KRaft mode they get as many replicas as the merged list has.
        assert model.grow_topic("foo", [(0, 1, 2) if not zookeeper_mode else (0, 1)]).code == code
        assert model.grow_topic("bar", [(0, 1)]).code == 0
        model.join_isr(FOO[0], 2)
        assert model.grow_topic("foo", [(0, 1)]).code == 0


def test_tv_132_a_target_that_is_there_already_is_taken_and_changes_nothing() -> None:
    model = moving(0, 1, 2)
    before = state(model, LONG)
    assert alter(model, LONG, 0, 1, 2) == 0
    assert (state(model, LONG), model.moves()) == (before, {})


# -- live clusters


def test_tv_160_two_moves_complete_and_the_replicas_that_they_removed_are_gone() -> None:
    model = cluster(foo={0: (0, 1, 2)}, bar={0: (3, 2, 1)})
    alter(model, FOO[0], 0, 1, 3)
    alter(model, BAR[0], 3, 2, 0)
    model.join_isr(FOO[0], 3)
    model.join_isr(BAR[0], 0)
    assert model.moves() == {}
    assert (state(model, FOO[0]).replicas, state(model, BAR[0]).replicas) == ((0, 1, 3), (3, 2, 0))
    assert 2 not in model.stored_bytes(FOO[0])
    assert 1 not in model.stored_bytes(BAR[0])


def test_tv_161_a_move_that_copies_shows_its_target_first_and_then_what_leaves() -> None:
    model = cluster(foo={0: (0, 1, 2)}, bar={0: (0, 1, 2), 1: (2, 0, 1)})
    alter(model, FOO[0], 0, 1, 3)
    alter(model, BAR[1], 0, 2, 3)
    assert {key: move.replicas for key, move in model.moves().items()} == {FOO[0]: (0, 1, 3, 2), BAR[1]: (0, 2, 3, 1)}


def test_tv_163_a_cancel_removes_also_the_added_replica_that_is_in_sync() -> None:
    model = moving(0, 1, 2)
    alter(model, LONG, 0, 3, 4)
    model.join_isr(LONG, 3)
    assert cancel(model, LONG) == [0]
    assert (state(model, LONG).replicas, state(model, LONG).isr) == ((0, 1, 2), (0, 1, 2))


def test_tv_167_one_request_reorders_replaces_shrinks_and_grows() -> None:
    model = ClusterModel(dict.fromkeys(range(4)))
    model.create_topic("foo", {0: (0, 1, 2), 1: (1, 2, 3), 2: (2, 3, 0), 3: (3, 2, 1)}, partition_bytes=100)
    targets = ((2, 1, 0), (0, 1, 2), (2, 3), (3, 2, 0, 1))
    for partition, target in zip(FOO, targets, strict=True):
        assert alter(model, partition, *target) == 0
    model.advance(1000)
    assert model.moves() == {}
    assert tuple(state(model, partition).replicas for partition in FOO) == targets
    hosted = {broker: [p.partition for p in FOO if broker in model.stored_bytes(p)] for broker in range(4)}
    assert hosted == {0: [0, 1, 3], 1: [0, 1, 3], 2: [0, 1, 2, 3], 3: [2, 3]}


def test_tv_170_a_reorder_leaves_the_leader_until_an_election() -> None:
    model = moving(0, 1, 2)
    alter(model, LONG, 1, 2, 0)
    assert state(model, LONG).leader == 0
    assert elect(model) == 0
    assert state(model, LONG).leader == 1


def test_tv_171_an_election_says_why_it_moves_nothing() -> None:
    model = moving(0, 1, 2)
    assert elect(model) == 84
    assert elect(model, TopicPartition("none", 0)) == 3
    model.stop_broker(0)
    assert elect(model) == 80
    assert state(model, LONG).leader == 1


def test_tv_172_an_unclean_election_needs_somebody_alive_and_nobody_who_leads() -> None:
    model = moving(1, 2)
    model.stop_broker(2)
    model.stop_broker(1)
    assert elect(model, kind=Election.UNCLEAN) == 83
    model.start_broker(2)
    assert elect(model, kind=Election.UNCLEAN) == 0
    assert state(model, LONG).leader == 2
    assert elect(model, kind=Election.UNCLEAN) == 84


def test_tv_173_and_174_of_a_topic_that_is_gone_nothing_is_listed_and_nothing_is_taken() -> None:
    model = moving(0, 1)
    assert model.moves() == {}
    alter(model, LONG, 2, 3)
    model.delete_topic("long")
    assert model.moves() == {}
    assert alter(model, LONG, 2, 3) == 3


# -- derived


def test_tv_260_a_further_target_keeps_what_the_first_one_was_adding_and_removes_it() -> None:
    model = moving(1, 2)
    alter(model, LONG, 2, 3)
    alter(model, LONG, 2, 4)
    assert model.moves() == {LONG: Move((2, 4, 1, 3), (4,), (1, 3))}
    assert cancel(model, LONG) == [0]
    assert state(model, LONG).replicas == (2, 1, 3)


def test_tv_261_with_a_cancel_in_between_nothing_of_the_first_target_is_left() -> None:
    model = moving(1, 2)
    alter(model, LONG, 2, 3)
    assert cancel(model, LONG) == [0]
    assert state(model, LONG).replicas == (2, 1)
    alter(model, LONG, 2, 4)
    assert model.moves() == {LONG: Move((2, 4, 1), (4,), (1,))}


def test_tv_262_and_263_a_superset_of_the_target_is_taken_and_does_not_keep_what_leaves() -> None:
    model = moving(1, 2)
    alter(model, LONG, 2, 3)
    before = model.moves()
    assert alter(model, LONG, 2, 3, 1) == 0
    assert model.moves() == before == {LONG: Move((2, 3, 1), (3,), (1,))}
    assert alter(model, LONG, 3, 2, 1) == 0
    assert model.moves() == {LONG: Move((3, 2, 1), (3,), (1,))}
    model.join_isr(LONG, 3)
    assert (state(model, LONG).replicas, model.moves()) == ((3, 2), {})


@pytest.mark.parametrize(
    ("original", "target", "in_sync", "again"),
    [
        pytest.param((1, 2, 3), (4, 5, 6), 4, (1, 2, 3), id="TV-264"),
        pytest.param((3, 1, 2), (4, 5, 6), 4, (3, 1, 2), id="TV-266"),
        pytest.param((1, 2, 3), (3, 4, 5), 4, (1, 2, 3, 4), id="TV-267"),
    ],
)
def test_the_originals_as_the_target_of_a_move_that_runs_never_end(
    original: tuple[int, ...], target: tuple[int, ...], in_sync: int, again: tuple[int, ...]
) -> None:
    model = moving(*original)
    alter(model, LONG, *target)
    model.join_isr(LONG, in_sync)
    assert alter(model, LONG, *again) == 0
    move = model.moves()[LONG]
    assert set(move.adding) & set(move.removing)
    for broker in target:
        model.join_isr(LONG, broker)
    assert LONG in model.moves()


def test_tv_267_a_cancel_loses_the_order_of_the_originals() -> None:
    model = moving(1, 2, 3)
    alter(model, LONG, 3, 4, 5)
    model.join_isr(LONG, 4)
    assert cancel(model, LONG) == [0]
    assert state(model, LONG).replicas == (3, 1, 2)


def test_tv_270_a_reorder_is_done_at_once_and_an_election_moves_the_leader() -> None:
    model = moving(1, 2, 3)
    alter(model, LONG, 2, 3, 1)
    assert (state(model, LONG).leader, model.moves()) == (1, {})
    elect(model)
    assert state(model, LONG).leader == 2


def test_tv_272_the_next_of_the_list_leads_when_the_leader_is_fenced() -> None:
    model = moving(2, 3, 1)
    model.stop_broker(2)
    assert state(model, LONG).leader == 3


def test_tv_274_a_move_whose_only_source_is_dead_is_taken_and_never_ends() -> None:
    model = moving(3)
    model.stop_broker(3)
    assert alter(model, LONG, 4) == 0
    model.advance(60_000)
    assert model.moves() == {LONG: Move((4, 3), (4,), (3,))}


def test_tv_275_the_same_target_again_changes_nothing() -> None:
    model = moving(1, 2, 3)
    alter(model, LONG, 4, 2, 3)
    before = state(model, LONG)
    assert alter(model, LONG, 4, 2, 3) == 0
    assert state(model, LONG) == before
