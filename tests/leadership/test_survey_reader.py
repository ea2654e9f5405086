"""`SurveyReader` tracks the length of each topic's shortest replica list while it reads a survey in pieces."""

from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts, Survey
from drover.reconcile.leaders.survey_reader import AT_ONCE, SurveyReader


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


def test_what_an_unreachable_broker_leads_counts_for_it_where_nobody_else_can_lead() -> None:
    led = {
        TopicPartition("t", 0): PartitionFacts("id", None, (3, 1), (3, 1), leader_lacks_listener=True),
        TopicPartition("t", 1): PartitionFacts("id", None, (3, 4), (3, 4), leader_lacks_listener=True),
        TopicPartition("t", 2): PartitionFacts("id", None, (1, 3), (3,)),
    }
    reader = SurveyReader(Survey("prod", "k", 0, 1, (1, 2), led), {})
    assert reader.read_on(lambda _key, _facts: None)
    assert [(one.broker, one.leaders) for one in reader.counts(())] == [(1, 0), (2, 0), (3, 1)]
