"""How many partitions are sent to a controller at once."""

import pytest

from drover.events.partitions import TopicPartition
from drover.facts import NONE, CallResult
from drover.reconcile.messages import AlterPartitions, CallEnded
from drover.reconcile.moves.call_pace import FIRST_IN_ZOOKEEPER_MODE, GOAL_MS, LARGEST, SMALLEST, CallPace, next_size

KEYS = tuple(TopicPartition("orders", number) for number in range(LARGEST))


@pytest.mark.parametrize(
    ("size", "sent", "took_ms", "expected"),
    [
        (1000, 1000, 3800, 263),
        (263, 263, 1000, 263),
        (263, 263, 400, 526),
        (600, 600, 100, 1000),
        (600, 299, 100, 600),
        (1000, 1, 3000, 1000),
        (1000, 60, 3000, SMALLEST),
        (1000, 1000, None, 250),
        (100, 3, None, SMALLEST),
    ],
)
def test_a_call_is_as_large_as_what_was_answered_within_a_second(
    size: int, sent: int, took_ms: int | None, expected: int
) -> None:
    assert next_size(size, sent, took_ms) == expected


@pytest.mark.parametrize("ms_per_partition", [0.05, 1, 3.8, 15])
def test_a_steady_controller_is_soon_asked_for_what_it_does_in_time_and_for_no_less_than_half_of_it(
    ms_per_partition: float,
) -> None:
    size = LARGEST
    for _ in range(8):
        took_ms = int(size * ms_per_partition)
        size = next_size(size, size, took_ms if took_ms < 4000 else None)
    fits = max(SMALLEST, min(LARGEST, int(GOAL_MS / ms_per_partition)))
    assert fits / 2 <= size <= fits


def call(pace: CallPace, sent: int, took_ms: int, *, lost: bool = False, answered: bool = True) -> None:
    """Make a call of so many partitions that takes so long."""
    keys = KEYS[:sent]
    for key in keys:
        pace.intended(key)
    pace.starts(AlterPartitions("local", dict.fromkeys(keys), 1000), 5000)
    results = dict.fromkeys(keys, CallResult(NONE)) if answered else None
    pace.ended(CallEnded("local", keys, 5000 + took_ms, results, lost=lost))
    for key in keys:
        pace.over(key)


def test_zookeeper_mode_begins_with_few_and_what_was_measured_counts_more() -> None:
    pace = CallPace()
    pace.begin(zookeeper_mode=True)
    assert pace.size == pace.room == FIRST_IN_ZOOKEEPER_MODE
    call(pace, FIRST_IN_ZOOKEEPER_MODE, 100)
    pace.begin(zookeeper_mode=True)
    assert pace.size == 2 * FIRST_IN_ZOOKEEPER_MODE


def test_what_is_open_takes_room_until_it_is_over_where_the_controller_is_slow() -> None:
    pace = CallPace()
    assert pace.room == LARGEST
    call(pace, 1000, 3800)
    assert pace.room == 263
    for key in KEYS[:200]:
        pace.intended(key)
    assert pace.room == 63
    pace.over(KEYS[0])
    assert pace.room == 64


def test_a_call_without_an_answer_shrinks_the_next_one_and_one_that_was_not_sent_does_not() -> None:
    pace = CallPace()
    call(pace, 1000, 4000, answered=False)
    assert pace.size == LARGEST
    call(pace, 1000, 4000, answered=False, lost=True)
    assert pace.size == 250
