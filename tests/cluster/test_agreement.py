"""What is kept of List, Describe, List."""

from drover.cluster.agreement import agreed_moves, agreed_partitions, with_known_min_isr
from drover.events.partitions import TopicPartition
from drover.facts import Move, PartitionFacts

STEADY, BEGAN, ENDED, CHANGED, IDLE = (TopicPartition("t", number) for number in range(5))
MOVE = Move((4, 1, 2), (4,), ())
OTHER_MOVE = Move((3, 1, 2), (3,), ())
FACTS = PartitionFacts("id", 1, (1, 2), (1, 2))
BEFORE = {STEADY: MOVE, ENDED: MOVE, CHANGED: MOVE}
AFTER = {STEADY: MOVE, BEGAN: MOVE, CHANGED: OTHER_MOVE}


def test_only_moves_that_both_lists_show_alike_are_kept() -> None:
    assert agreed_moves(BEFORE, AFTER) == {STEADY: MOVE}


def test_only_partitions_on_which_both_lists_agree_are_kept() -> None:
    everything = [IDLE, CHANGED, ENDED, BEGAN, STEADY]
    kept = agreed_partitions(everything, BEFORE, dict.fromkeys(everything, FACTS), AFTER)
    assert list(kept) == [STEADY, IDLE]
    steady, idle = kept[STEADY], kept[IDLE]
    assert steady is not None
    assert idle is not None
    assert (steady.move, idle.move) == (MOVE, None)


def test_absence_is_kept_and_what_was_not_described_is_not() -> None:
    assert agreed_partitions([IDLE, STEADY], {}, {IDLE: None}, {}) == {IDLE: None}


def test_a_partition_whose_min_isr_the_broker_does_not_know_is_left_out_and_absence_is_kept() -> None:
    new, gone = TopicPartition("new", 0), TopicPartition("gone", 0)
    assert with_known_min_isr({IDLE: FACTS, new: FACTS, gone: None}, {"t": 2}) == {IDLE: FACTS, gone: None}
