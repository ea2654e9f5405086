"""What the owner remembers of a cluster: an observation counts only if it began after the last call had ended."""

from dataclasses import replace

from drover.reassignment.copy_pace import SizeSample
from drover.reassignment.facts import Observation, PartitionFacts, ThrottledReplicas
from drover.shard.track import ClusterTrack
from events.partitions import TopicPartition

KEY = TopicPartition("orders", 0)
SEEN = PartitionFacts("id", 1, (1, 2, 3), (1, 2, 3))


def observation(started_ms: int, ended_ms: int, seen: PartitionFacts = SEEN) -> Observation:
    return Observation("local", "kafka", started_ms, ended_ms, (1, 2, 3), partitions={KEY: seen})


def test_an_observation_that_began_before_the_last_call_had_ended_says_nothing() -> None:
    track = ClusterTrack()
    track.call_starts(KEY)
    assert track.see(observation(0, 10)) == ()
    track.call_ends(KEY, 100)
    assert track.see(observation(99, 120)) == ()
    assert track.fresh(KEY, 120) is None
    assert track.see(observation(100, 130)) == (KEY,)
    assert track.fresh(KEY, 130) is not None


def test_a_look_that_took_long_shows_what_was_when_it_began() -> None:
    track = ClusterTrack()
    track.see(observation(0, 10))
    track.doubt(KEY, 10, doubtful=True)
    track.see(observation(500, 2600))
    assert not track.persisted(KEY)
    track.see(observation(2010, 2620))
    assert track.persisted(KEY)


def test_sizes_of_an_older_step_or_from_before_the_call_are_not_kept() -> None:
    track, later = ClusterTrack(), SizeSample(100, {1: 10, 4: 0})
    track.measured(KEY, SizeSample(0, {1: 10, 4: 9}))
    assert track.step_sizes(KEY)
    track.call_starts(KEY)
    assert track.step_sizes(KEY) == ()
    track.measured(KEY, SizeSample(50, {1: 10}))
    track.call_ends(KEY, 100)
    track.measured(KEY, SizeSample(99, {1: 10}))
    assert track.step_sizes(KEY) == ()
    track.measured(KEY, later)
    assert track.step_sizes(KEY) == (later,)
    track.forget(KEY)
    assert track.step_sizes(KEY) == ()


def test_throttled_lists_that_were_read_of_an_earlier_topic_of_that_name_are_read_again() -> None:
    """Simulation seed 1004583: they passed for somebody else's entries, and nothing was put on the new topic."""
    track, lists = ClusterTrack(), {"orders": ThrottledReplicas(("0:1",), ("0:4",))}
    track.see(observation(0, 10))
    track.throttles_read({}, lists, 20, 20)
    track.see(observation(30, 40))
    assert track.read(40).topics == lists
    track.reading = True
    track.see(observation(50, 60, replace(SEEN, topic_id="id-new")))
    assert track.read(60).topics == {}
    track.throttles_read({}, lists, 45, 70)
    assert track.read(70).topics == {}
    track.throttles_read({}, lists, 71, 80)
    assert track.read(80).topics == lists
