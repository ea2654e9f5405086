"""The inbox: four topics, `drover.cancel` first, the others merged by time; nothing lost, nothing taken twice."""

import pytest

from drover.events.codec import Malformed
from drover.shard.inbox import CLOSE_BYTES, HIGH_COUNT, LOW_COUNT, Inbox, InboxGapError
from drover.shard.messages import Arrival


def arrival(topic: int, offset: int, at_ms: int, size: int = 1) -> Arrival:
    return Arrival(topic, offset, at_ms, b"x" * size, Malformed("x"))


def places(taken: tuple[Arrival, ...]) -> list[tuple[int, int]]:
    return [(entry.topic_index, entry.offset) for entry in taken]


def marks(inbox: Inbox) -> tuple[bool, bool]:
    return inbox.is_high, inbox.is_low


FRESH = (0, 0, 0, 0)


def test_cancels_come_first_and_the_other_topics_are_merged_by_time_each_in_its_order() -> None:
    inbox = Inbox()
    for entry in (arrival(0, 0, 50), arrival(0, 1, 10), arrival(1, 0, 90), arrival(3, 0, 50), arrival(2, 0, 70)):
        assert inbox.add(entry)
    assert places(inbox.take(FRESH)) == [(1, 0), (0, 0), (0, 1), (3, 0), (2, 0)]


def test_a_cancel_that_was_given_back_comes_first_again() -> None:
    inbox = Inbox()
    inbox.add(arrival(0, 0, 0))
    inbox.add(arrival(1, 0, 1))
    for _ in range(2):
        assert places(inbox.take(FRESH)) == [(1, 0), (0, 0)]
        inbox.give_back()


@pytest.mark.parametrize("flooded", [0, 1])
def test_no_topic_fills_a_run_alone_while_another_one_waits(flooded: int) -> None:
    inbox = Inbox()
    for offset in range(40):
        inbox.add(arrival(flooded, offset, offset, CLOSE_BYTES // 20))
    inbox.add(arrival(3, 0, 1000))
    taken = places(inbox.take(FRESH))
    assert (3, 0) in taken
    assert len(taken) > 15, "what no other topic needs is taken as well"


def test_what_was_taken_goes_back_as_if_it_had_not_been() -> None:
    inbox = Inbox()
    for offset in range(3):
        inbox.add(arrival(offset % 2, offset // 2, offset))
    first = inbox.take(FRESH)
    inbox.give_back()
    assert inbox.count == 3
    assert inbox.take(FRESH) == first


def test_only_what_was_decided_leaves() -> None:
    inbox = Inbox()
    for offset in range(3):
        inbox.add(arrival(0, offset, offset))
    inbox.take(FRESH)
    inbox.settle(1)
    assert places(inbox.take(FRESH)) == [(0, 1), (0, 2)]
    inbox.settle()
    assert (inbox.count, inbox.bytes) == (0, 0)


def test_what_another_owner_decided_is_dropped() -> None:
    inbox = Inbox()
    for offset in range(4):
        inbox.add(arrival(0, offset, offset))
    inbox.take(FRESH)
    inbox.give_back()
    assert places(inbox.take((3, 0, 0, 0))) == [(0, 3)]
    inbox.settle()
    assert (inbox.count, inbox.bytes) == (0, 0)


def test_taking_twice_without_an_end_is_a_mistake() -> None:
    inbox = Inbox()
    inbox.add(arrival(0, 0, 0))
    inbox.take(FRESH)
    with pytest.raises(AssertionError):
        inbox.take(FRESH)


def test_a_repeated_command_is_not_queued_again() -> None:
    inbox = Inbox()
    assert inbox.add(arrival(0, 0, 0))
    assert not inbox.add(arrival(0, 0, 0))
    assert inbox.count == 1


def test_a_missing_command_is_never_passed_over_in_silence() -> None:
    inbox = Inbox()
    with pytest.raises(InboxGapError, match="offset 2 came, 0 is missing"):
        inbox.add(arrival(1, 2, 0))
    inbox.skip_to(1, 2)
    assert inbox.add(arrival(1, 2, 0))
    inbox.skip_to(1, 1)
    assert inbox.expected(1) == 3


def test_a_run_is_closed_at_a_mebibyte_but_never_empty() -> None:
    inbox = Inbox()
    for offset, size in enumerate((2 * CLOSE_BYTES, CLOSE_BYTES // 2, CLOSE_BYTES // 4, CLOSE_BYTES // 2)):
        inbox.add(arrival(0, offset, offset, size))
    runs = []
    while taken := inbox.take(FRESH):
        runs.append([entry.offset for entry in taken])
        inbox.settle()
    assert runs == [[0], [1, 2], [3]]


def test_reading_stops_above_the_mark_and_goes_on_well_below() -> None:
    inbox = Inbox()
    for offset in range(HIGH_COUNT):
        assert not inbox.is_high, "reading stops too early"
        inbox.add(arrival(0, offset, 0))
    assert marks(inbox) == (True, False)
    inbox.take(FRESH)
    inbox.settle(HIGH_COUNT - LOW_COUNT - 1)
    assert marks(inbox) == (False, False)
    inbox.take(FRESH)
    inbox.settle(1)
    assert marks(inbox) == (False, True)


def test_a_reset_expects_what_the_log_says() -> None:
    inbox = Inbox()
    inbox.add(arrival(0, 0, 0))
    inbox.reset((7, 8, 9, 10))
    assert inbox.take((7, 8, 9, 10)) == ()
    assert [inbox.expected(topic) for topic in range(4)] == [7, 8, 9, 10]
