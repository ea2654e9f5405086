"""Whether a throttled copy can ever catch up: a leader that grows, and what must not be taken for one (L6)."""

from collections.abc import Iterable, Mapping

from drover.decide.copy_pace import SPACING_MS, CopyPace, SizeSample, pace, rate_in_words, remember
from drover.decide.verdict import NOTHING
from drover.events.reassignments import Blocker, ReassignmentBlocked, ReassignmentUnblocked
from drover.reconcile.moves.reconcile import reconcile
from drover.state.phase import Phase
from drover.state.reassignment import Block
from tests.reassignment.support import context, moving, reassignment

LEADER, COPY = 1, 4
START = 1_000_000_000
FASTER, SLOWER = 5_200_000, 5_000_000


def remembered(sizes: Iterable[Mapping[int, int]], every_ms: int = 1000) -> tuple[SizeSample, ...]:
    samples: tuple[SizeSample, ...] = ()
    for number, found in enumerate(sizes):
        samples = remember(samples, SizeSample(number * every_ms, found))
    return samples


def growing(leader_rate: int, copy_rate: int, seconds: int = 120) -> list[dict[int, int]]:
    """One pair of sizes a second: the copy begins with nothing."""
    return [{LEADER: START + leader_rate * number, COPY: copy_rate * number} for number in range(seconds)]


def measured(sizes: Iterable[Mapping[int, int]], every_ms: int = 1000) -> CopyPace | None:
    return pace(remembered(sizes, every_ms), LEADER, COPY)


def test_a_copy_that_is_slower_than_its_leader_grows_falls_behind() -> None:
    assert measured(growing(FASTER, SLOWER)) == CopyPace(
        COPY, FASTER, SLOWER, falls_behind=True, catches_up=False
    )  # fmt: skip


def test_a_copy_that_keeps_exactly_its_distance_never_ends_either() -> None:
    found = measured(growing(SLOWER, SLOWER))
    assert found is not None
    assert found.falls_behind


def test_a_copy_that_catches_up_slowly_does_not_fall_behind() -> None:
    found = measured(growing(SLOWER, SLOWER + 1))
    assert found is not None
    assert (found.falls_behind, found.catches_up) == (False, True)


def test_less_than_two_halves_of_half_a_minute_say_nothing() -> None:
    assert measured([]) is None
    assert measured(growing(FASTER, SLOWER, 60)) is None
    assert measured(growing(FASTER, SLOWER, 61)) is not None


def test_two_samples_are_no_trend_however_far_apart() -> None:
    assert measured(growing(FASTER, SLOWER, 2), every_ms=600_000) is None


def test_a_leader_that_does_not_grow_is_caught_up_with_at_any_rate() -> None:
    """A copy that stands still waits for its turn, or for something that no throttle mends."""
    found = measured(growing(0, 0))
    assert found is not None
    assert not found.falls_behind


def test_one_burst_of_the_producers_is_no_trend() -> None:
    """Half a minute of writing, half a minute of catching up: neither verdict."""
    sizes = [{LEADER: START + 9_000_000 * min(number, 30), COPY: 5_000_000 * number} for number in range(66)]
    found = measured(sizes)
    assert found is not None
    assert (found.falls_behind, found.catches_up) == (False, False)


def test_a_restart_that_truncates_the_copy_begins_a_new_stretch() -> None:
    """What was lost then looks like falling behind; the copy is gaining."""
    sizes = growing(1000, 9000)
    for number in range(100, 120):
        sizes[number] = {LEADER: sizes[number][LEADER], COPY: 9000 * (number - 100)}
    assert measured(sizes[:100]) is not None
    assert measured(sizes) is None


def test_a_leader_whose_old_segments_are_deleted_begins_a_new_stretch() -> None:
    sizes = growing(FASTER, SLOWER)
    for number in range(90, 120):
        sizes[number] = {LEADER: sizes[number][LEADER] - 900_000_000, COPY: sizes[number][COPY]}
    assert measured(sizes) is None


def test_a_sample_without_the_copy_begins_a_new_stretch() -> None:
    """Its broker was away, or the sample is of an older step, in which this copy did not exist."""
    sizes: list[dict[int, int]] = growing(FASTER, SLOWER)
    assert measured([*({LEADER: sample[LEADER]} for sample in sizes[:100]), *sizes[100:]]) is None


def test_a_minute_is_kept_and_not_every_sample() -> None:
    samples = remembered(growing(FASTER, SLOWER, 3600))
    assert len(samples) <= 2 * 30_000 // SPACING_MS + 2
    assert samples[-1].taken_ms - samples[0].taken_ms < 75_000


def test_rates_are_written_for_people() -> None:
    assert [rate_in_words(rate) for rate in (0, 999, 1000, 5_250_000)] == ["0 B/s", "999 B/s", "1.0 kB/s", "5.2 MB/s"]


# -- what follows from it


BEHIND = remembered(growing(FASTER, SLOWER))
GAINING = remembered(growing(SLOWER, FASTER))
THROTTLED = {"throttle_bytes_per_second": 5_000_000}


def test_a_throttle_that_is_too_low_is_named_once_with_both_rates_and_the_remedy() -> None:
    about = reassignment(Phase.COPYING)
    (event,) = reconcile(about, moving(), context(sizes=BEHIND, **THROTTLED)).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.THROTTLE_TOO_LOW
    assert "the leader grows by 5.2 MB/s and the copy on broker 4 by 5.0 MB/s" in event.detail
    assert "`drover throttle set p RATE`" in event.detail
    known = reassignment(Phase.COPYING, block=Block(event.why, event.detail, 1))
    even_slower = remembered(growing(FASTER, SLOWER // 2))
    assert reconcile(known, moving(), context(sizes=even_slower, **THROTTLED)) == NOTHING


def test_the_block_goes_when_the_copy_gains_and_not_before_that_is_known() -> None:
    known = reassignment(Phase.COPYING, block=Block(Blocker.THROTTLE_TOO_LOW, "words", 1))
    assert reconcile(known, moving(), context(**THROTTLED)) == NOTHING
    (event,) = reconcile(known, moving(), context(sizes=GAINING, **THROTTLED)).events
    assert isinstance(event, ReassignmentUnblocked)


def test_the_block_goes_when_the_copy_has_joined() -> None:
    known = reassignment(Phase.COPYING, block=Block(Blocker.THROTTLE_TOO_LOW, "words", 1))
    (event,) = reconcile(known, moving(isr=(1, 2, 3, 4)), context(sizes=BEHIND, **THROTTLED)).events
    assert isinstance(event, ReassignmentUnblocked)


def test_a_dead_destination_is_named_before_its_slow_copy() -> None:
    (event,) = reconcile(
        reassignment(Phase.COPYING), moving(), context(sizes=BEHIND, live={1, 2, 3}, **THROTTLED)
    ).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.DEAD_DESTINATION


def test_a_copy_without_a_throttle_is_not_judged() -> None:
    assert reconcile(reassignment(Phase.COPYING), moving(), context(sizes=BEHIND)) == NOTHING
