"""Giving out slots: what may start now, in the order of acceptance, within the limits and behind the throttles."""

from collections import Counter
from dataclasses import dataclass
from itertools import islice

from drover.reassignment import throttles
from drover.reassignment.judgement import blocked, gone
from drover.reassignment.plan import start
from drover.reassignment.state import ClusterState, Phase, Reassignment, Step
from drover.shard.hearing import context
from drover.shard.page import Page
from drover.shard.track import FRESH_TO_START_MS
from events.reassignments import Call, CallIntended, ReassignmentUnblocked, StepPrepared

# How far down the queue one look goes: beyond, the brokers that are free would have to be very special ones.
QUEUE_WINDOW = 2000
# How many waiting partitions are looked at in the cluster at a time.
NEEDED_WINDOW = 500
# Kafka keeps a topic's throttled replicas in one string of at most 32,767 bytes; an entry takes up to 15.
MAX_THROTTLED_ENTRIES_PER_TOPIC = 2000


@dataclass(slots=True)
class _Round:
    """One giving out of slots: what the throttles should be, and how many entries each topic's list will have."""

    asked: throttles.Wanted
    entries: Counter[str]


def give_slots(page: Page, cluster: str) -> None:
    """Start whatever may start: first what holds a slot already, then the queue, then the throttles they need.

    While the cluster is frozen no step starts (R236-9); what is under way goes on, and so do its throttles.
    """
    state = page.ahead.cluster(cluster)
    if state.mismatched_kafka_cluster_id is not None or state.kafka_cluster_id is None:
        return
    if state.freeze is None:
        _start_steps(page, state)
    _plan_throttles(page, state)


def _start_steps(page: Page, state: ClusterState) -> None:
    asked = throttles.wanted(state)
    this = _Round(asked, Counter({topic: len(entries.leader) for topic, entries in asked.entries.items()}))
    for key in tuple(state.in_flight):
        reassignment = state.reassignments[key]
        if reassignment.phase in {Phase.CONFIRMED, Phase.PREPARED}:
            _try_start(page, state, reassignment, this)
    for key in tuple(islice(state.queued, QUEUE_WINDOW)):
        if len(state.in_flight) >= state.limits.max_partitions_in_flight:
            break
        _try_start(page, state, state.reassignments[key], this)


def _try_start(page: Page, state: ClusterState, reassignment: Reassignment, this: _Round) -> None:
    track, key = page.track(state.name), reassignment.key
    if not track.may_try(key, page.now.monotonic_ms):
        return
    sight = track.fresh(key, page.now.monotonic_ms, FRESH_TO_START_MS)
    if sight is None:
        if len(track.needed) < NEEDED_WINDOW and _may_have_room(state, reassignment):
            track.needed[key] = None
        return
    if sight.facts is None or sight.facts.topic_id != reassignment.topic_id:
        _gone(page, state, reassignment)
        return
    persisted = track.persisted(key)
    found = start(reassignment, sight.facts, context(page, state, reassignment, persisted=persisted))
    track.doubt(key, sight.ended_ms, doubtful=found.doubtful)
    if found.block is not None:
        page.write_all(blocked(reassignment, found.block, state.name))
    elif found.step is not None:
        if _has_room(state, reassignment, found.step):
            _begin(page, state, reassignment, found.step, this)
        if state.reassignments[key].block is not None:
            # It waits for nothing but a slot or its throttle now.
            page.write(ReassignmentUnblocked(cluster=state.name, topic=key.topic, partition=key.partition))


def _gone(page: Page, state: ClusterState, reassignment: Reassignment) -> None:
    track, key = page.track(state.name), reassignment.key
    sight = track.sights[key]
    persisted = track.persisted(key)
    judgement = gone(reassignment, sight.facts, context(page, state, reassignment, persisted=persisted))
    track.doubt(key, sight.ended_ms, doubtful=judgement.doubtful)
    page.write_all(judgement.events)


def _may_have_room(state: ClusterState, reassignment: Reassignment) -> bool:
    """Before a look at the cluster: one free added broker is enough to make the look worth while."""
    if reassignment.in_flight:
        return True
    added = [broker for broker in reassignment.target if broker not in reassignment.current]
    limit = state.limits.max_moves_per_broker
    return not added or any(state.loads.get(broker, 0) < limit for broker in added)


def _has_room(state: ClusterState, reassignment: Reassignment, step: Step) -> bool:
    if reassignment.phase is Phase.PREPARED:
        return True
    limit = state.limits.max_moves_per_broker
    return all(state.loads.get(broker, 0) < limit for broker in step.load)


def _begin(page: Page, state: ClusterState, reassignment: Reassignment, step: Step, this: _Round) -> None:
    """Take the slot; the call follows at once, or when the plan's throttle is in force."""
    topic, partition = reassignment.key
    leader = -1 if step.leader is None else step.leader
    if throttles.is_throttled(reassignment, state) and step.adding:
        if reassignment.phase is not Phase.PREPARED:
            this.entries[topic] += len(step.expected)
            if this.entries[topic] > MAX_THROTTLED_ENTRIES_PER_TOPIC:
                return
            page.write(
                StepPrepared(
                    cluster=state.name,
                    topic=topic,
                    partition=partition,
                    step=step.number,
                    final=step.final,
                    expected=step.expected,
                    replicas=step.replicas,
                    leader=leader,
                )
            )
            return
        track = page.track(state.name)
        read = track.read(page.now.monotonic_ms)
        if not throttles.is_ready(reassignment, state, this.asked, track.live, read):
            return
    page.write(
        CallIntended(
            cluster=state.name,
            topic=topic,
            partition=partition,
            call=Call.STEP,
            expected=step.expected,
            replicas=step.replicas,
            step=step.number,
            final=step.final,
            leader=leader,
        )
    )


def _plan_throttles(page: Page, state: ClusterState) -> None:
    asked = throttles.wanted(state)
    track = page.track(state.name)
    ledger = throttles.plan_throttles(state, asked, track.live, track.read(page.now.monotonic_ms))
    page.write_all(ledger.events)
    track.read_brokers, track.read_topics = ledger.read_brokers, ledger.read_topics
