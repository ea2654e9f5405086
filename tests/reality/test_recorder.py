"""The recorder itself: its scripts are reproducible and playable, and it does not overlook a wrong model."""

from collections import Counter
from dataclasses import replace

import pytest

from drover.testing.controller_model import Election
from drover.testing.model import ClusterModel
from drover.traits import LATEST, known_traits
from tests.reality.operations import Alter, Create, Delete, Elect, Grow, Place, Throttle, apply
from tests.reality.recorder import balances
from tests.reality.scripts import (
    BROKERS,
    ROUNDS,
    Batch,
    Kill,
    RestartController,
    Script,
    Start,
    befall,
    come_to_rest,
    depends_on_speed,
    make_batch,
    new_model,
)
from tests.reality.shrink import is_playable, kept, rounds_of
from tests.reality.sights import difference, of_model

FIRST = Place("a", 0)


def test_a_seed_gives_the_same_batch_and_a_script_does_not_depend_on_its_neighbours() -> None:
    assert make_batch(7, 3) == make_batch(7, 3)
    assert make_batch(7, 2).scripts[1] == make_batch(7, 3).scripts[1]
    assert make_batch(8, 3).scripts != make_batch(7, 3).scripts


def test_scripts_do_everything_that_there_is_to_do() -> None:
    batches = [make_batch(seed, 5) for seed in range(5)]
    kinds = Counter(type(operation) for batch in batches for script in batch.scripts for operation in script.operations)
    assert {Alter, Create, Delete, Elect, Grow, Throttle} <= kinds.keys()
    events = {type(event) for batch in batches for event in batch.weather}
    assert {Kill, Start, RestartController} <= events


def test_whoever_dies_comes_back_and_no_script_outlasts_the_weather() -> None:
    for seed in range(12):
        dead: set[int] = set()
        batch = make_batch(seed, 1)
        assert len(batch.weather) == ROUNDS
        for event in batch.weather:
            if isinstance(event, Kill):
                assert event.broker not in dead
                dead.add(event.broker)
            elif isinstance(event, Start):
                dead.remove(event.broker)
        assert not dead
        assert len(dead) < len(BROKERS)
        assert is_playable(kept(batch, 0, rounds_of(batch.scripts[0])))


def test_a_script_without_the_topic_that_it_deletes_is_not_playable() -> None:
    operations = (Create("a", ((1, 2),)), Create("b", ((1,),)), Delete("a"))
    batch = Batch(0, (None, None, None), (Script(0, operations),))
    assert is_playable(batch)
    assert not is_playable(kept(batch, 0, [1, 2]))
    assert kept(batch, 0, [1]).scripts[0].operations == (None, operations[1])


def test_a_move_that_ends_with_the_first_of_two_that_return_depends_on_speed() -> None:
    model = new_model(LATEST)
    apply(model, "", Create("a", ((2, 3),), (("min.insync.replicas", "2"),)))
    befall(model, Kill(2))
    befall(model, Kill(3))
    apply(model, "", Alter(((FIRST, (4,)),)))
    befall(model, Start(2))
    assert not depends_on_speed(model)
    befall(model, Start(3))
    assert depends_on_speed(model)


@pytest.fixture
def model() -> ClusterModel:
    made = new_model(LATEST)
    apply(made, "", Create("a", ((1, 2, 3), (2, 3, 4)), (("min.insync.replicas", "2"),)))
    return made


def test_equal_clusters_show_no_difference(model: ClusterModel) -> None:
    sights = of_model(model, "", ("a", "b"))
    assert difference(sights, of_model(model, "", ("a", "b"))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": (2, 1, 3)},
        {"isr": (1, 2)},
        {"leader": 2},
        {"leader_epoch": 1},
        {"elr": (3,)},
        {"adding": (3,)},
        {"removing": (3,)},
        {"last_known_leader": 1},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_any_difference_of_a_partition_is_seen(model: ClusterModel, wrong: dict[str, object]) -> None:
    before = of_model(model, "", ("a",))
    state = model.topics["a"].partitions[0]
    model.topics["a"].partitions[0] = replace(state, **wrong)  # type: ignore[arg-type]  # one field at a time
    lines = difference(before, of_model(model, "", ("a",)))
    assert len(lines) == 1
    assert lines[0].startswith("a-0: ")


def test_a_missing_topic_a_missing_partition_and_another_throttle_are_seen(model: ClusterModel) -> None:
    before = of_model(model, "", ("a",))
    apply(model, "", Throttle("a", ("0:1",), on=True))
    assert difference(before, of_model(model, "", ("a",))) == [
        "topic a: throttled model nothing and nothing, Kafka 0:1 and 0:1"
    ]
    apply(model, "", Throttle("a", ("0:1",), on=False))
    apply(model, "", Grow("a", ((1, 2, 3),)))
    assert len(difference(before, of_model(model, "", ("a",)))) == 1
    apply(model, "", Delete("a"))
    assert difference(before, of_model(model, "", ("a",))) == ["topic a: the model has it, Kafka has none"]


def test_every_operation_says_what_the_model_answers(model: ClusterModel) -> None:
    other = Place("none", 0)
    assert apply(model, "", Alter(((FIRST, None), (other, (1,)), (Place("a", 1), (1, 1))))) == {
        "a-0": 85,
        "none-0": 3,
        "a-1": 39,
    }
    assert apply(model, "", Elect((FIRST, other), Election.PREFERRED)) == {"a-0": 84, "none-0": 3}
    assert apply(model, "", Grow("a", ((1, 2),))) == {"a": 39}
    befall(model, Kill(4))
    come_to_rest(model)
    assert apply(model, "", Create("b", ((4,),))) == {"b": 39}


def test_only_in_zookeeper_mode_some_brokers_are_balanced_and_others_are_not() -> None:
    assert {balance.brokers for balance in balances(LATEST)} == {None}
    assert (1, 3) in {balance.brokers for balance in balances(known_traits("3.9", zookeeper_mode=True))}
    model = new_model(LATEST)
    apply(model, "", Create("a", ((1, 2), (2, 1))))
    befall(model, Kill(2))
    befall(model, Start(2))
    come_to_rest(model)
    model.balance_leaders((1, 3))
    assert [state.leader for _, state in model.each_partition()] == [1, 1]
    model.balance_leaders((2,))
    assert [state.leader for _, state in model.each_partition()] == [1, 2]
