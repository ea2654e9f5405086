"""Topics that wait for their time."""

from drover.reconcile.throttles.due_topics import DueTopics


def test_a_topic_is_due_once_at_the_time_that_was_named_first() -> None:
    due_topics = DueTopics()
    assert due_topics.due_ms(0) is None
    due_topics.put("orders", 300)
    due_topics.put("payments", 200)
    due_topics.put("orders", 100)
    assert due_topics.due_ms(0) == 200
    assert due_topics.due(199) == []
    assert due_topics.due(300) == ["payments", "orders"]
    assert (due_topics.due(400), due_topics.due_ms(400)) == ([], None)
    due_topics.put("orders", 500)
    assert due_topics.due(500) == ["orders"]
