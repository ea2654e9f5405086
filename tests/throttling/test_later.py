"""Topics that wait for their time."""

from drover.throttling.later import Later


def test_a_topic_is_due_once_at_the_time_that_was_named_first() -> None:
    later = Later()
    assert later.due_ms(0) is None
    later.put("orders", 300)
    later.put("payments", 200)
    later.put("orders", 100)
    assert later.due_ms(0) == 200
    assert later.due(199) == []
    assert later.due(300) == ["payments", "orders"]
    assert (later.due(400), later.due_ms(400)) == ([], None)
    later.put("orders", 500)
    assert later.due(500) == ["orders"]
