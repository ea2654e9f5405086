"""Taking entries from the queue of KIP-236: in their order, when nothing that was accepted before waits for a slot."""

from itertools import islice

from drover.reassignment import entries
from drover.reassignment.decision import Facts
from drover.reassignment.state import ClusterState
from drover.reassignment.way_out import has_lost_its_start
from drover.shard.deciding import Place
from drover.shard.page import Page
from drover.shard.track import FRESH_MS, FRESH_TO_START_MS, ClusterTrack
from events.partitions import TopicPartition

# How far down the queue one look goes for entries that need not let others pass.
QUEUE_WINDOW = 2000
# How many entries are looked at and taken at a time.
AT_ONCE = 100


def take_from_queue(page: Page, cluster: str, place: Place) -> None:
    """Take what there is room for; an entry whose partition was not seen yet keeps those behind it waiting."""
    state = page.ahead.cluster(cluster)
    if not state.queue or state.kafka_cluster_id is None or entries.why_closed(state) is not None:
        return
    track = page.track(cluster)
    room = min(AT_ONCE, state.limits.max_partitions_in_flight - len(state.in_flight))
    waits = False
    for key in tuple(islice(state.queue, QUEUE_WINDOW)):
        if room <= 0:
            return
        if entries.why_passed_over(key, state) is not None:
            continue
        room -= 1
        if not _is_seen(key, state, track, page.now.monotonic_ms):
            track.needed[key] = None
            waits = True
        elif not waits:
            page.write_all(entries.take(key, state, _facts(key, track, place, page.now.monotonic_ms)))


def _is_seen(key: TopicPartition, state: ClusterState, track: ClusterTrack, now_ms: int) -> bool:
    """Whether enough is known to decide: the partition itself, or of one that Drover is moving its new brokers."""
    if track.fresh(key, now_ms, FRESH_TO_START_MS) is not None:
        return True
    active = state.reassignments.get(key)
    if active is None or has_lost_its_start(active) or track.live_seen_ms is None:
        return False
    return now_ms - track.live_seen_ms <= FRESH_MS and key.topic in track.min_isr


def _facts(key: TopicPartition, track: ClusterTrack, place: Place, now_ms: int) -> Facts:
    sight = track.fresh(key, now_ms)
    return Facts(
        partitions={} if sight is None else {key: sight.facts},
        moves=track.moves,
        live_brokers=track.live,
        min_isr=track.min_isr,
        own_topics=place.own_topics,
    )
