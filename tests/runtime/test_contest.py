"""A shard that changes hands again and again is left to the other for longer each time."""

from drover.runtime.contest import LONGEST_PAUSE_S, LULL_S, Contest


def test_the_first_loss_is_answered_at_once_and_the_next_ones_ever_later_up_to_a_bound() -> None:
    contest = Contest()
    pauses = [contest.pause_s(number * 0.1) for number in range(30)]
    assert pauses[0] == 0
    assert 0 < pauses[1] < 0.05
    assert all(0.5 * LONGEST_PAUSE_S <= pause <= LONGEST_PAUSE_S for pause in pauses[10:])


def test_after_a_lull_a_loss_is_answered_at_once_again() -> None:
    contest = Contest()
    assert [contest.pause_s(now_s) > 0 for now_s in (0.0, 1.0, 2.0, 2.1 + LULL_S, 2.2 + LULL_S)] == [
        False,
        True,
        True,
        False,
        True,
    ]
