"""What the cluster showed or answered, to events: observations, ends of calls, throttle settings read and written."""

from typing import assert_never

from drover.reassignment import calls
from drover.reassignment.copy_pace import SizeSample
from drover.reassignment.facts import NONE, UNKNOWN_TOPIC_OR_PARTITION, Observation
from drover.reassignment.foreign_moves import given_up
from drover.reassignment.judgement import NOTHING, Context
from drover.reassignment.plan import plan
from drover.reassignment.state import ClusterState, Phase, Reassignment
from drover.shard.messages import BytesSampled, CallEnded, Identified, Input, ThrottlesChanged, ThrottlesRead
from drover.shard.outsiders import hear_moves, judge_outsider
from drover.shard.page import Page
from drover.shard.track import THROTTLE_RETRY_MS, ClusterTrack
from events.clusters import ClusterIdentified, ClusterMatched, ClusterMismatched
from events.partitions import TopicPartition
from events.records import ReassignmentEvent
from events.throttles import BrokerThrottleSet, TopicThrottleLeft, TopicThrottleSet

_INVALID_CONFIG = 40
_AWAITING_A_STEP = frozenset({Phase.QUEUED, Phase.PREPARED, Phase.CONFIRMED})


def hear(page: Page, entry: Input) -> None:
    """Let one input have its effect on the record being written."""
    match entry:
        case Observation():
            _observed(page, entry)
        case Identified():
            _identified(page, entry.cluster, entry.kafka_cluster_id)
            state = page.ahead.cluster(entry.cluster)
            if state.mismatched_kafka_cluster_id is None:
                page.track(entry.cluster).see_live(entry.live_brokers, entry.ended_ms)
                if entry.moves is not None:
                    hear_moves(page, state, entry.moves, entry.ended_ms)
        case CallEnded():
            _call_ended(page, entry)
        case ThrottlesRead():
            track = page.track(entry.cluster)
            track.throttles_read(entry.brokers, entry.topics, entry.started_ms, page.now.monotonic_ms)
        case ThrottlesChanged():
            _throttles_changed(page, entry)
        case BytesSampled():
            _sampled(page, entry)
        case _:
            assert_never(entry)


def context(page: Page, state: ClusterState, reassignment: Reassignment, *, persisted: bool) -> Context:
    """Gather what a judgement about one reassignment depends on."""
    track = page.track(state.name)
    return Context(
        cluster=state.name,
        live=track.live,
        min_isr=track.min_isr.get(reassignment.key.topic, 1),
        max_replicas_per_step=state.limits.max_replicas_per_step,
        at_ms=page.at_ms,
        persisted=persisted,
        bytes_copied=_bytes_copied(track, reassignment),
        given_up=given_up(state, reassignment.key, page.at_ms),
        throttle_bytes_per_second=state.plans[reassignment.plan].throttle_bytes_per_second,
        sizes=track.step_sizes(reassignment.key),
    )


def _sampled(page: Page, sampled: BytesSampled) -> None:
    """Sizes are asked for by topic: only of what is being copied more than the last one is remembered."""
    state, track = page.ahead.cluster(sampled.cluster), page.track(sampled.cluster)
    track.sizes.update(sampled.sizes)
    for key, sizes in sampled.sizes.items():
        reassignment = state.reassignments.get(key)
        if reassignment is not None and reassignment.phase is Phase.COPYING:
            track.measured(key, SizeSample(sampled.started_ms, sizes))


def _bytes_copied(track: ClusterTrack, reassignment: Reassignment) -> int:
    """Bytes of the running step's copies by the last sample; 0 if none was taken.

    A copy that has joined the ISR is as large as the leader's, which the last sample knows better than its own size.
    """
    sizes, step = track.sizes.get(reassignment.key), reassignment.step
    if sizes is None or step is None:
        return 0
    if step.leader is not None and step.leader in sizes:
        return sizes[step.leader] * len(step.adding)
    return sum(sizes.get(broker, 0) for broker in step.adding)


def _identified(page: Page, cluster: str, found: str) -> None:
    """First contact is recorded; another cluster under the same name stops every call."""
    state = page.ahead.cluster(cluster)
    if state.kafka_cluster_id is None:
        page.write(ClusterIdentified(cluster=cluster, kafka_cluster_id=found))
    elif state.kafka_cluster_id == found:
        if state.mismatched_kafka_cluster_id is not None:
            page.write(ClusterMatched(cluster=cluster, kafka_cluster_id=found))
    elif state.mismatched_kafka_cluster_id != found:
        page.write(
            ClusterMismatched(
                cluster=cluster,
                expected_kafka_cluster_id=state.kafka_cluster_id,
                found_kafka_cluster_id=found,
            )
        )


def _observed(page: Page, observation: Observation) -> None:
    _identified(page, observation.cluster, observation.kafka_cluster_id)
    state = page.ahead.cluster(observation.cluster)
    if state.mismatched_kafka_cluster_id is not None:
        # Nothing that another cluster shows says anything about ours.
        return
    track = page.track(observation.cluster)
    for key in track.see(observation):
        reassignment = state.reassignments.get(key)
        if reassignment is None:
            judge_outsider(page, state, key, observation.ended_ms)
        elif reassignment.in_flight or given_up(state, key, page.at_ms) is not None:
            _judge(page, state, reassignment, observation.ended_ms)
    hear_moves(page, state, observation.moves, observation.ended_ms)


def _judge(page: Page, state: ClusterState, reassignment: Reassignment, ended_ms: int) -> None:
    track, key = page.track(state.name), reassignment.key
    if (state.name, key) in page.intended:
        # An earlier input of this very record has led to a call: what else was seen before it says nothing more.
        return
    if reassignment.call_open:
        # Not this owner's call (those are not looked at while open): a predecessor's, whose time is over by now.
        page.write_all(calls.lost(reassignment, "the owner changed while the call was open", state.name))
        reassignment = state.reassignments[key]
    if reassignment.attempts and not track.may_try(key, page.now.monotonic_ms):
        return
    persisted = track.persisted(key)
    judgement = plan(reassignment, track.sights[key].facts, context(page, state, reassignment, persisted=persisted))
    if judgement == NOTHING and reassignment.phase in _AWAITING_A_STEP:
        # What waits for a step is judged, and doubted, where slots are given.
        return
    track.doubt(key, ended_ms, doubtful=judgement.doubtful)
    page.write_all(judgement.events)
    after = state.reassignments.get(key)
    if after is not None and after.attempts > reassignment.attempts:
        track.retry_later(key, after.attempts, page.now.monotonic_ms)


def _call_ended(page: Page, ended: CallEnded) -> None:
    state, track = page.ahead.cluster(ended.cluster), page.track(ended.cluster)
    for key in ended.partitions:
        reassignment = state.reassignments.get(key)
        if key not in track.calls or reassignment is None or not reassignment.call_open:
            continue
        track.call_ends(key, ended.ended_ms)
        page.write_all(_end_of(reassignment, ended, key))
        after = state.reassignments.get(key)
        if after is not None and after.attempts > reassignment.attempts:
            track.retry_later(key, after.attempts, page.now.monotonic_ms)


def _end_of(reassignment: Reassignment, ended: CallEnded, key: TopicPartition) -> tuple[ReassignmentEvent, ...]:
    if ended.results is None:
        end = calls.lost if ended.lost else calls.never_sent
        return end(reassignment, ended.detail, ended.cluster)
    result = ended.results.get(key)
    if result is None:
        return calls.lost(reassignment, "Kafka's answer leaves the partition out", ended.cluster)
    return calls.answered(reassignment, result, ended.cluster)


def _throttles_changed(page: Page, changed: ThrottlesChanged) -> None:
    state, track = page.ahead.cluster(changed.cluster), page.track(changed.cluster)
    track.changing = False
    track.throttles_changed(changed.brokers, changed.topics, changed.ended_ms)
    for broker, result in changed.brokers.items():
        entry = state.broker_throttles.get(broker)
        if result.code == NONE and entry is not None and entry.pending:
            page.write(BrokerThrottleSet(cluster=state.name, broker=broker))
    for topic, result in changed.topics.items():
        known = state.topic_throttles.get(topic)
        if known is None or not known.pending:
            continue
        if result.code == NONE:
            page.write(TopicThrottleSet(cluster=state.name, topic=topic))
        elif result.code in {UNKNOWN_TOPIC_OR_PARTITION, _INVALID_CONFIG}:
            detail = f"Kafka refuses its lists: code {result.code} {result.message or ''}".rstrip()
            page.write(TopicThrottleLeft(cluster=state.name, topic=topic, detail=detail, topic_id=known.topic_id))
    owed = any(entry.pending for entry in state.broker_throttles.values()) or any(
        known.pending for known in state.topic_throttles.values()
    )
    if owed:
        # Every write may be repeated: what was not answered is written again a little later.
        track.throttles_from_ms = page.now.monotonic_ms + THROTTLE_RETRY_MS
