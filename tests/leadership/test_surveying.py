"""`SurveyReader` tracks the length of each topic's shortest replica list while it reads a survey in pieces."""

from drover.facts import PartitionFacts, Survey
from drover.leadership.surveying import AT_ONCE, SurveyReader
from events.partitions import TopicPartition


def _survey(**topics: tuple[tuple[int, ...], ...]) -> Survey:
    partitions = {
        TopicPartition(topic, number): PartitionFacts("id", replicas[0], replicas, replicas, None)
        for topic, lists in topics.items()
        for number, replicas in enumerate(lists)
    }
    return Survey("prod", "k", 0, 1, (1, 2, 3), partitions)


def test_until_a_topic_is_read_its_shortest_list_is_that_of_the_previous_survey() -> None:
    first = _survey(orders=((1, 2, 3), (1, 2)), gone=((1,),))
    many = ((1, 2, 3),) * AT_ONCE
    reader = SurveyReader(_survey(a=many, orders=((1, 2, 3),)), {"orders": 2, "gone": 1})
    assert not reader.read_on(lambda _key, _facts: None)
    assert reader.shortest == {"a": 3, "orders": 2, "gone": 1}
    assert reader.read_on(lambda _key, _facts: None)
    assert reader.shortest == {"a": 3, "orders": 3}
    reader = SurveyReader(first, {})
    assert reader.read_on(lambda _key, _facts: None)
    assert reader.shortest == {"orders": 2, "gone": 1}
