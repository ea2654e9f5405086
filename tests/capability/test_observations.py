"""What the owner remembers of a cluster: an observation counts only if it began after the last call had ended."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from drover.decide.copy_pace import SizeSample
from drover.events.partitions import TopicPartition
from drover.facts import Move, Observation, PartitionFacts
from drover.reconcile.debounce import Debounce
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.observations import FRESH_MS, METADATA_LAG_MS, MOST_METADATA_LAG_MS, CallEffect, ObservationCache

KEY = TopicPartition("orders", 0)
SEEN = PartitionFacts("id", 1, (1, 2, 3), (1, 2, 3))


def observation(started_ms: int, ended_ms: int) -> Observation:
    return Observation("local", "kafka", started_ms, ended_ms, (1, 2, 3), partitions={KEY: SEEN})


def test_an_observation_that_began_before_the_last_call_had_ended_says_nothing() -> None:
    observed = ObservationCache()
    observed.call_starts(KEY)
    assert not observed.see(observation(0, 10)).partitions
    observed.call_ends(KEY, 100)
    assert not observed.see(observation(99, 120)).partitions
    assert observed.fresh(KEY, 120) is None
    assert set(observed.see(observation(100, 130)).partitions) == {KEY}
    assert observed.fresh(KEY, 130) is not None


def test_a_move_has_begun_when_the_list_before_did_not_show_it() -> None:
    observed, other = ObservationCache(), TopicPartition("orders", 1)
    move = Move((4, 2, 3, 1), (4,), (1,))
    observed.see_moves({KEY: move}, 10)
    assert observed.begun == {KEY}
    observed.see_moves({KEY: move, other: move}, 20)
    assert observed.begun == {other}
    observed.see_moves({other: move}, 30)
    assert observed.begun == set()


def test_a_list_from_before_an_answered_call_does_not_count_while_metadata_lags_or_until_the_next_call() -> None:
    observed = ObservationCache()
    observed.call_ends(KEY, 100)
    observed.call_made(KEY, (3, 2, 1), 100)
    assert not observed.see(observation(1000, 1010)).partitions
    assert observed.see(observation(100 + METADATA_LAG_MS, 2200)).partitions
    observed.call_made(KEY, (3, 2, 1), 3000)
    observed.call_starts(KEY)
    observed.call_ends(KEY, 3100)
    assert observed.see(observation(3100, 3200)).partitions


def test_the_list_that_an_accepted_call_replaced_does_not_count_while_metadata_lags_or_until_the_next_call() -> None:
    observed = ObservationCache()
    observed.call_ends(KEY, 100)
    observed.call_replaced(KEY, (3, 2, 1), 100)
    assert observed.see(observation(1000, 1010)).partitions, "another list may be what the call has led to"
    observed.call_replaced(KEY, SEEN.replicas, 100)
    assert not observed.see(observation(1000, 1010)).partitions
    moving = structs.replace(SEEN, move=Move(SEEN.replicas, (), (3,)))
    assert observed.see(replace(observation(1000, 1010), partitions={KEY: moving})).partitions
    assert observed.see(observation(100 + MOST_METADATA_LAG_MS, 30_200)).partitions
    observed.call_replaced(KEY, SEEN.replicas, 31_000, is_accepted=False)
    assert not observed.see(observation(31_010, 31_020)).partitions
    assert observed.see(observation(31_000 + METADATA_LAG_MS, 33_010)).partitions, "perhaps it was not replaced"
    observed.call_replaced(KEY, SEEN.replicas, 31_000)
    observed.call_starts(KEY)
    observed.call_ends(KEY, 31_100)
    assert observed.see(observation(31_100, 31_200)).partitions


def test_lists_of_an_incarnation_say_nothing_about_the_next_one_of_the_topic() -> None:
    observed = ObservationCache()
    assert observed.see(observation(0, 10)).partitions
    observed.call_made(KEY, (3, 2, 1), 100)
    observed.call_replaced(KEY, SEEN.replicas, 100)
    assert not observed.see(observation(200, 210)).partitions
    anew = structs.replace(SEEN, topic_id="another")
    for started_ms in (300, 400):
        assert observed.see(replace(observation(started_ms, started_ms + 10), partitions={KEY: anew})).partitions


@pytest.mark.parametrize(
    ("effect", "made_counts", "replaced_counts"),
    [(CallEffect.DONE, True, True), (CallEffect.NONE, False, False), (CallEffect.UNKNOWN, True, False)],
)
def test_what_was_known_before_a_call_holds_on_where_the_call_was_not_accepted(
    effect: CallEffect, *, made_counts: bool, replaced_counts: bool
) -> None:
    """A call that was lost may have asked for the list that was replaced before, but not for the one that was made."""
    for note, counts in (("call_made", made_counts), ("call_replaced", replaced_counts)):
        observed = ObservationCache()
        getattr(observed, note)(KEY, (3, 2, 1) if note == "call_made" else SEEN.replicas, 100)
        observed.call_starts(KEY)
        observed.call_ends(KEY, 200, effect)
        assert bool(observed.see(observation(1000, 1010)).partitions) is counts
        assert observed.see(observation(100 + MOST_METADATA_LAG_MS, 30_200)).partitions


def test_the_leader_that_an_election_has_replaced_does_not_count_while_metadata_lags() -> None:
    """Else a step would be planned as if that broker still led, and keep it for a while beside what it adds."""
    observed, moved = ObservationCache(), structs.replace(SEEN, leader=2)
    observed.call_starts(KEY, changes_list=False)
    observed.call_ends(KEY, 100)
    observed.leader_replaced(KEY, SEEN.leader or 0, 100)
    assert not observed.see(observation(1000, 1010)).partitions
    moving = structs.replace(SEEN, move=Move((4, *SEEN.replicas), (4,), ()))
    assert not observed.see(replace(observation(1000, 1010), partitions={KEY: moving})).partitions
    assert observed.see(replace(observation(1000, 1010), partitions={KEY: moved})).partitions
    assert observed.see(observation(100 + METADATA_LAG_MS, 2200)).partitions
    observed.leader_replaced(KEY, 2, 3000)
    assert observed.see(observation(3100, 3200)).partitions, "the next election has brought it back"


def test_two_lists_that_were_replaced_one_after_the_other_are_both_old() -> None:
    observed, other = ObservationCache(), structs.replace(SEEN, replicas=(3, 2, 1))
    observed.call_replaced(KEY, SEEN.replicas, 100)
    observed.call_starts(KEY)
    observed.call_ends(KEY, 600, CallEffect.UNKNOWN)
    observed.call_replaced(KEY, other.replicas, 600)
    for facts in (SEEN, other):
        assert not observed.see(replace(observation(1000, 1010), partitions={KEY: facts})).partitions
    assert observed.see(observation(100 + MOST_METADATA_LAG_MS, 30_200)).partitions
    assert not observed.see(replace(observation(30_200, 30_210), partitions={KEY: other})).partitions


@pytest.mark.parametrize(
    ("move", "counts"),
    [
        (Move(SEEN.replicas, (1,), (3,)), False),
        (Move(SEEN.replicas, (), (3,)), True),
        (Move(SEEN.replicas, (1,), ()), True),
        (Move((4, *SEEN.replicas), (4,), (3,)), True),
    ],
    ids=["merged", "a-cancelled-shrink", "a-growth", "another-list"],
)
def test_the_merged_list_of_a_move_that_is_over_does_not_count_while_metadata_lags(move: Move, *, counts: bool) -> None:
    """Whoever moved it: the stock tool's moves end as Drover's own do."""
    observed = ObservationCache()
    moving = structs.replace(SEEN, move=move)
    both: dict[str, Any] = {"partitions": {KEY: moving}, "moves": {KEY: move}}
    assert observed.see(replace(observation(0, 10), **both)).partitions
    assert bool(observed.see(observation(100, 110)).partitions) is counts
    assert bool(observed.see(observation(1000, 1010)).partitions) is counts
    assert observed.see(replace(observation(1000, 1010), **both)).partitions, "it moves again"
    assert bool(observed.outdated(observation(1100, 1110))) is not counts
    assert bool(observed.see(observation(1100, 1110)).partitions) is counts
    assert bool(observed.outdated(observation(1200, 1210))) is not counts
    later = observation(1110 + MOST_METADATA_LAG_MS, 40_000)
    assert not observed.outdated(later)
    assert observed.see(later).partitions


def test_a_look_that_took_long_shows_what_was_when_it_began() -> None:
    observed, debounce = ObservationCache(), Debounce()
    observed.see(observation(0, 10))
    debounce.note(KEY, 10, unconfirmed=True)
    observed.see(observation(500, 2600))
    assert not debounce.has_persisted(KEY, observed.partitions[KEY])
    observed.see(observation(2010, 2620))
    assert debounce.has_persisted(KEY, observed.partitions[KEY])


def test_what_a_predecessor_may_still_be_calling_is_not_believed_before_its_time_is_over() -> None:
    observed = ObservationCache()
    observed.predecessor_calls(KEY, 5000)
    assert observed.predecessors_end_ms(10) == 5000
    assert not observed.see(observation(4999, 5100)).partitions
    assert set(observed.see(observation(5000, 5100)).partitions) == {KEY}
    assert observed.predecessors_end_ms(5001) is None


def test_sizes_of_an_older_step_or_from_before_the_call_are_not_kept() -> None:
    observed = ObservationCache()
    sizes, later = CopySizes(observed), SizeSample(100, {1: 10, 4: 0})
    sizes.measured(KEY, SizeSample(0, {1: 10, 4: 9}))
    assert sizes.of_step(KEY)
    observed.call_starts(KEY)
    sizes.call_starts(KEY)
    assert sizes.of_step(KEY) == ()
    sizes.measured(KEY, SizeSample(50, {1: 10}))
    observed.call_ends(KEY, 100)
    sizes.measured(KEY, SizeSample(99, {1: 10}))
    assert sizes.of_step(KEY) == ()
    sizes.measured(KEY, later)
    assert sizes.of_step(KEY) == (later,)
    sizes.forget(KEY)
    assert sizes.of_step(KEY) == ()


def test_many_old_observations_go_little_by_little_and_the_fresh_ones_stay() -> None:
    observed = ObservationCache()
    keys = [TopicPartition("orders", number) for number in range(30_000)]
    observed.see(Observation("local", "kafka", 0, 0, (1,), partitions=dict.fromkeys(keys, SEEN)))
    kept = dict.fromkeys(keys[:100], SEEN)
    sizes = []
    for ended_ms in range(FRESH_MS + 1, FRESH_MS + 31):
        observed.see(Observation("local", "kafka", ended_ms, ended_ms, (1,), partitions=kept))
        sizes.append(len(observed.partitions))
    gone = [before - after for before, after in pairwise([len(keys), *sizes])]
    assert max(gone) <= 1_100
    assert sizes[-1] <= 20_000
    assert set(kept) <= set(observed.partitions)
