"""`--generate` of the stock tool, answered by the planner."""

import pytest

from drover.client.stock_generate import generate, topics_to_move
from drover.errors import ConfigurationError
from drover.events.partitions import TopicPartition
from drover.planner.model import Broker, ClusterModel, Partition

RACKS = {1: "a", 2: "b", 3: "a", 4: "b"}


def model(**topics: tuple[tuple[int, ...], ...]) -> ClusterModel:
    partitions = (
        Partition(topic, number, replicas, leader=replicas[0], isr=replicas, size_bytes=1000)
        for topic, lists in topics.items()
        for number, replicas in enumerate(lists)
    )
    return ClusterModel.of((Broker(broker, rack) for broker, rack in RACKS.items()), partitions)


def test_replicas_leave_the_brokers_that_are_not_named_and_no_other_topic_moves() -> None:
    cluster = model(orders=((1, 2), (3, 4), (1, 4)), other=((1, 2),))
    current, proposed = generate(cluster, ("orders",), (2, 3, 4), with_racks=True)
    assert current == {TopicPartition("orders", number): lists for number, lists in enumerate(((1, 2), (3, 4), (1, 4)))}
    assert {broker for replicas in proposed.values() for broker in replicas} == {2, 3, 4}
    assert all({RACKS[broker] for broker in replicas} == {"a", "b"} for replicas in proposed.values())
    assert proposed.keys() == current.keys()


def test_without_racks_two_replicas_may_share_one() -> None:
    cluster = model(orders=((1, 2),))
    _, proposed = generate(cluster, ("orders",), (2, 4), with_racks=False)
    assert set(proposed[TopicPartition("orders", 0)]) == {2, 4}


@pytest.mark.parametrize(
    ("topics", "brokers", "sentence"),
    [(("nosuch",), (1, 2), "Topic nosuch not found."), (("orders",), (1, 9), "Unknown broker id 9")],
)
def test_topics_and_brokers_that_do_not_exist_are_refused(
    topics: tuple[str, ...], brokers: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        generate(model(orders=((1, 2),)), topics, brokers, with_racks=True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"topics": [{"topic": "a"}, {"topic": "a"}]}', "contains duplicate entries: a"),
        ('{"topics": [], "version": 2}', "Not supported version field value 2"),
        ("{}", "is not a list of topics"),
        ("no", "is not a list of topics"),
    ],
)
def test_a_file_that_is_no_list_of_topics_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        topics_to_move(text, "topics.json")


def test_the_topics_of_the_stock_tools_file_are_read() -> None:
    assert topics_to_move('{"topics": [{"topic": "a"}, {"topic": "b"}], "version": 1}', "f") == ("a", "b")
