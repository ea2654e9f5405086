"""KIP-236's decision table, row by row, and the guard before the original list is sent."""

import pytest

from drover.decide.rollback_guards import GONE_MS, GuardFacts, closest, is_given_up, restore_block, skip_reason
from drover.events.reassignments import Blocker, CancelMode, SkipReason
from drover.state.phase import Phase
from drover.state.reassignment import Block, Step
from tests.reassignment.support import reassignment, sight


def skip(
    original: tuple[int, ...], target: tuple[int, ...], isr: tuple[int, ...], live: set[int], min_isr: int = 1
) -> SkipReason | None:
    step = Step(1, True, original, target, original[0])
    about = reassignment(Phase.ROLLING_BACK, original=original, current=original, target=target, step=step)
    merged = target + tuple(broker for broker in original if broker not in target)
    return skip_reason(about, sight(merged, isr), GuardFacts(live, min_isr, 0))


@pytest.mark.parametrize(
    ("isr", "live", "expected"),
    [
        # originals in sync; any state of the new ones
        ((1, 2, 3), {1, 2, 3, 4, 5, 6}, None),
        ((1, 2, 3), {1, 2, 3}, None),
        ((1, 4, 5, 6), {1, 4, 5, 6}, None),
        # no original in sync and a new replica alive: skipped (TV-204)
        ((4, 5), {4}, SkipReason.NO_ORIGINAL_IN_SYNC),
        ((4, 5), {1, 2, 3, 4}, SkipReason.NO_ORIGINAL_IN_SYNC),
        ((4,), {6}, SkipReason.NO_ORIGINAL_IN_SYNC),
        # all originals dead and all new replicas dead: nothing is served now, rolled back (TV-205)
        ((4, 5), set(), None),
        # row 5, not in the text: originals alive but out of sync, every new replica dead: Kafka decides
        ((4,), {1, 2, 3}, None),
    ],
)
def test_the_decision_table_of_r236_8(isr: tuple[int, ...], live: set[int], expected: SkipReason | None) -> None:
    assert skip((1, 2, 3), (4, 5, 6), isr, live) is expected


def test_tv_206_one_original_in_sync_is_enough_without_a_min_isr() -> None:
    assert skip((1, 2, 3), (4, 5, 6), (2, 4), {2, 4, 5, 6}) is None
    assert skip((1, 2, 3), (4, 5, 6), (2, 4), {2, 4, 5, 6}, min_isr=2) is SkipReason.BELOW_MIN_ISR


@pytest.mark.parametrize(
    ("original", "target", "isr"),
    [((0, 1), (2, 3), (0, 1)), ((1, 2), (4, 3), (1,)), ((2, 1), (4, 5), (1,))],
)
def test_tv_207_all_three_roll_back(original: tuple[int, ...], target: tuple[int, ...], isr: tuple[int, ...]) -> None:
    assert skip(original, target, isr, {0, 1, 3}) is None


@pytest.mark.parametrize(
    ("isr", "min_isr", "expected"),
    [
        ((1, 2, 4), 2, None),
        ((1, 4, 5), 2, SkipReason.BELOW_MIN_ISR),
        ((1, 2, 3), 5, None),
        ((1, 2, 4, 5), 5, SkipReason.BELOW_MIN_ISR),
    ],
)
def test_as_many_originals_as_min_isr_asks_for_must_be_in_sync(
    isr: tuple[int, ...], min_isr: int, expected: SkipReason | None
) -> None:
    """A min ISR above the number of originals asks for all of them."""
    assert skip((1, 2, 3), (4, 5, 6), isr, {1, 2, 3, 4, 5, 6}, min_isr) is expected


def test_a_replica_that_stays_is_no_new_one() -> None:
    """[1,2,3] to [1,4]: broker 1 alive and out of sync is an original."""
    assert skip((1, 2, 3), (1, 4), (4,), {1, 4}) is SkipReason.NO_ORIGINAL_IN_SYNC
    assert skip((1, 2, 3), (1, 4), (4,), {1}) is None


def test_a_pure_reorder_back_needs_nobody_in_sync() -> None:
    about = reassignment(Phase.CANCELLING)
    assert restore_block(about, sight((2, 1, 3), (2,)), GuardFacts({2}, 2, 0)) is None


def test_dropping_grown_replicas_needs_every_original_in_sync() -> None:
    """Kafka 4.3.1 lists a shrink and waits for its whole target."""
    about = reassignment(Phase.ROLLING_BACK)
    assert restore_block(about, sight((1, 2, 3, 4), (1, 2, 3)), GuardFacts({1, 2, 3}, 2, 0)) is None
    block = restore_block(about, sight((1, 2, 3, 4), (1, 4)), GuardFacts({1, 4}, 1, 77))
    assert block is not None
    assert (block.why, block.since_ms) == (Blocker.ORIGINALS_OUT_OF_SYNC, 77)
    assert "2, 3" in block.detail


@pytest.mark.parametrize(
    ("replicas", "isr", "min_isr", "expected"),
    [
        # one original is gone, one added replica stays in its place, in the original order
        ((1, 2, 3, 4), (1, 2, 4), 2, (1, 2, 4)),
        ((4, 5, 1, 2, 3), (5, 4, 3, 2), 2, (2, 3, 4)),
        # min.insync.replicas above the number of originals keeps what it needs
        ((1, 2, 3, 4, 5), (1, 2, 4, 5), 4, (1, 2, 4, 5)),
        # too few in sync: nothing is dropped, only the order is put back
        ((4, 1, 2, 3), (1, 2), 2, (1, 2, 3, 4)),
        ((1, 2, 3, 4), (4,), 1, (1, 2, 3, 4)),
    ],
)
def test_the_closest_list_is_in_sync_and_no_shorter_than_the_original(
    replicas: tuple[int, ...], isr: tuple[int, ...], min_isr: int, expected: tuple[int, ...]
) -> None:
    about = reassignment(Phase.ROLLING_BACK, current=(1, 2, 3, 4), cancel_mode=CancelMode.ROLLBACK)
    assert closest(about, sight(replicas, isr), GuardFacts({1, 2, 4, 5}, min_isr, 0)) == expected


@pytest.mark.parametrize(
    ("live", "failed", "since_ms", "expected"),
    [
        ({1, 2, 4}, (), 1, True),
        # dead, but not for long; alive, however long it takes to catch up
        ({1, 2, 4}, (), 2, False),
        ({1, 2, 3, 4}, (), 1, False),
        # reported by somebody: dead or alive, at once
        ({1, 2, 4}, (3,), GONE_MS, True),
        ({1, 2, 3, 4}, (3,), GONE_MS, True),
    ],
)
def test_an_original_is_given_up_when_it_is_reported_or_dead_for_long(
    live: set[int], failed: tuple[int, ...], since_ms: int, *, expected: bool
) -> None:
    guard, seen = GuardFacts(live, 1, GONE_MS + 1, failed), sight((1, 2, 3, 4), (1, 2, 4))
    block = restore_block(reassignment(Phase.ROLLING_BACK), seen, guard)
    assert block is not None
    about = reassignment(Phase.ROLLING_BACK, block=Block(block.why, block.detail, since_ms))
    assert is_given_up(about, seen, block, guard) is expected


def test_a_block_of_other_words_starts_the_time_anew() -> None:
    guard, seen = GuardFacts({1, 2, 4}, 1, GONE_MS + 1), sight((1, 2, 3, 4), (1, 2, 4))
    about = reassignment(Phase.ROLLING_BACK, block=Block(Blocker.ORIGINALS_OUT_OF_SYNC, "3 catches up", 1))
    block = restore_block(about, seen, guard)
    assert block is not None
    assert not is_given_up(about, seen, block, guard)
