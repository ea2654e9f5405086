"""The shard core: the sans-I/O machine that turns what arrives into records, and valid records into calls.

The same object runs live, under tests and in simulation. It appends nothing and calls nobody: `draft` says what to
append, `settle` hears that it is durable and valid, and only then `effects` says what to call (R6).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from drover.reassignment.facts import Move
from drover.reassignment.state import ClusterState, Limits, Phase, PlanStatus, Reassignment
from drover.shard import holding
from drover.shard.deciding import Place, Register
from drover.shard.fold import ShardFold, ShardState
from drover.shard.hearing import hear
from drover.shard.intake import Intake, decide_arrivals, named_partitions
from drover.shard.messages import (
    AlterPartitions,
    Arrival,
    CallEnded,
    Draft,
    Effect,
    Input,
    Moment,
)
from drover.shard.outsiders import watch_outsiders
from drover.shard.page import MORE_WAIT_MS, Page
from drover.shard.queueing import take_from_queue
from drover.shard.sending import list_to_send, throttle_effects, throttle_writes, throttles_pending
from drover.shard.slots import give_slots
from drover.shard.state_hash import CURRENT_FORM
from drover.shard.track import FRESH_MS, TAKEOVER_WAIT_MS, ClusterTrack
from events.clusters import LimitsSet
from events.codec import encode_record
from events.partitions import TopicPartition
from events.records import SCHEMA_VERSION, Batch, Cursor
from events.topics import TopicNames, shard_of

CALL_START_MS = 1000
MAX_PARTITIONS_PER_CALL = 1000
STATE_HASH_EVERY = 1000

_WATCHED = frozenset({Phase.ROLLING_BACK, Phase.CANCELLING, Phase.RESTORING})


class Urgency(Enum):
    """How closely a cluster is watched: something is in flight, something only waits, or nothing is to be done."""

    BUSY = "busy"
    WAITING = "waiting"
    IDLE = "idle"


class ShardCore:
    """One shard as its owner drives it.

    `topic_ids` are the ids of the four command topics; `clusters` the configured clusters with their limits. Everything
    but the fold is speculation: `disown` drops it, and a new `own` begins from the log again.
    """

    def __init__(
        self,
        fold: ShardFold,
        *,
        topic_ids: tuple[str, ...],
        clusters: Mapping[str, Limits],
        topics: TopicNames,
    ) -> None:
        self.fold = fold
        self._topic_ids = topic_ids
        self._limits = dict(clusters)
        self._place = Place(fold.shard, fold.shards, frozenset(clusters), topics)
        self._token: bytes | None = None
        self._ahead = ShardState()
        self._tracks: dict[str, ClusterTrack] = {}
        self._inputs: list[Input] = []
        self._drafted: tuple[tuple[str, TopicPartition], ...] = ()
        self._due: list[tuple[str, TopicPartition]] = []
        self._drafted_ms = 0
        self._proved_ms = -CALL_START_MS - 1
        self._looked_for: frozenset[tuple[str, str]] = frozenset()

    # -- ownership

    @property
    def owned(self) -> bool:
        """Whether this worker may append to the shard, as far as it knows."""
        return self._token is not None

    @property
    def token(self) -> bytes | None:
        """The token under which this worker owns the shard; None while it does not."""
        return self._token

    def own(self, token: bytes, now: Moment) -> None:
        """Begin: this worker's acquire has been folded and its token is the current one.

        Calls that a predecessor left open, and throttles it left pending, wait until its time is over; then the cluster
        is looked at, and what is there is adopted without a cancel.
        """
        assert token == self.fold.token, "owning begins with the current token"
        self.disown()
        self._token = token
        self._ahead = self.fold.state.copy()
        until = now.monotonic_ms + TAKEOVER_WAIT_MS
        for name, state in self._ahead.clusters.items():
            track = self._tracks[name] = ClusterTrack()
            for key in state.in_flight:
                if state.reassignments[key].call_open:
                    track.call_ends(key, until)
            if throttles_pending(state):
                track.throttles_from_ms = until
            track.waiting_plans = {
                plan.name for plan in state.plans.values() if plan.status is PlanStatus.OPEN and plan.more
            }

    def disown(self) -> None:
        """End: revoked or fenced. All speculation, observations and pending calls are dropped; idempotent."""
        self._token = None
        self._proved_ms = -CALL_START_MS - 1
        self._ahead = ShardState()
        self._tracks = {}
        self._inputs = []
        self._drafted = ()
        self._due = []
        self._looked_for = frozenset()

    # -- in

    def deliver(self, entry: Input) -> None:
        """Take an input in; the next draft hears it. Dropped when the shard is not owned."""
        if self.owned:
            self._inputs.append(entry)

    def facts_needed(self, arrivals: Sequence[Arrival]) -> Mapping[str, frozenset[TopicPartition]]:
        """List per cluster the partitions that must be observed, and delivered, before these arrivals are drafted.

        Held commands whose turn has come are decided by the same draft, and need their looks as well.
        """
        named = {cluster: set(keys) for cluster, keys in named_partitions(arrivals, self._place, self._ahead).items()}
        due = holding.due(self._ahead, Register(self.fold.known, self.fold.at_ms), self._place)
        for (cluster, _), keys in due.items():
            named.setdefault(cluster, set()).update(keys)
        self._looked_for = frozenset(due)
        return {cluster: frozenset(keys) for cluster, keys in named.items()}

    # -- records

    def draft(self, now: Moment, arrivals: Sequence[Arrival], unavailable: Mapping[str, str]) -> Draft | None:
        """Decide everything that is there as one record; None if there is nothing to say.

        `unavailable` says of a cluster why it could not be observed. The draft decides a prefix of the arrivals. Where
        throttles are owed it may be empty: that it counts proves that the writes are this owner's to make.
        Whoever gets a draft must end it with `settle`, or with `disown`.
        """
        page = self._page(now)
        self._drafted_ms = now.monotonic_ms
        inputs, self._inputs = self._inputs, []
        for entry in inputs:
            hear(page, entry)
        register = Register(self.fold.known, page.at_ms)
        looked_for, self._looked_for = self._looked_for, frozenset()
        for name in sorted(self._ahead.clusters):
            holding.release(page, name, self._place, register, looked_for, unavailable.get(name))
        intake = decide_arrivals(page, arrivals, self._place, register, unavailable)
        for name in sorted(self._ahead.clusters):
            self._set_limits(page, name)
            take_from_queue(page, name, self._place)
            give_slots(page, name)
            watch_outsiders(page, name)
        page.finish_plans()
        if not intake.taken and not page.events and not self._owes_throttles(now):
            return None
        state_hash = self.fold.state.hash() if (self.fold.sequence + 1) % STATE_HASH_EVERY == 0 else None
        return self._finish(page, intake, state_hash)

    def closing_draft(self, now: Moment) -> Draft | None:
        """Make a record that carries nothing but the state hash, for a clean stop; None before the first batch."""
        if not self.fold.sequence:
            return None
        return self._finish(self._page(now), Intake(), self.fold.state.hash())

    def settle(self, draft: Draft) -> None:
        """Hear that the draft's record is durable and was folded as valid: its calls may be made."""
        assert self.fold.sequence >= draft.record.sequence, "a draft is settled after its record was folded"
        self._due += self._drafted
        self._drafted = ()
        self._proved_ms = self._drafted_ms

    def _page(self, now: Moment) -> Page:
        assert self.owned, "only the owner writes"
        assert not self._drafted, "the last draft was neither settled nor disowned"
        return Page(self._ahead, self._tracks, now, max(now.wall_ms, self.fold.at_ms))

    def _finish(self, page: Page, intake: Intake, state_hash: bytes | None) -> Draft:
        assert self._token is not None, "only the owner writes"
        self._drafted = tuple(page.intended)
        record = Batch(
            schema=SCHEMA_VERSION,
            token=self._token,
            epoch=self.fold.epoch,
            sequence=self.fold.sequence + 1,
            at_ms=page.at_ms,
            cursors=self._cursors(intake.taken),
            previous_hash=self.fold.chain,
            outcomes=tuple(page.outcomes),
            events=tuple(page.events),
            state_hash=state_hash,
            state_hash_form=1 if state_hash is None else CURRENT_FORM,
        )
        return Draft(
            record,
            encode_record(record),
            tuple(intake.taken),
            tuple(intake.forward),
            tuple(intake.dead_letters),
        )

    @property
    def next_offsets(self) -> tuple[int, ...]:
        """The next offset to decide in each command topic, from the log (R4)."""
        return tuple(cursor.next_offset for cursor in self._known_cursors())

    def _known_cursors(self) -> tuple[Cursor, ...]:
        return self.fold.cursors or tuple(Cursor(topic_id, 0) for topic_id in self._topic_ids)

    def _cursors(self, taken: Collection[Arrival]) -> tuple[Cursor, ...]:
        following = list(self.next_offsets)
        for arrival in taken:
            following[arrival.topic_index] = arrival.offset + 1
        return tuple(Cursor(topic_id, offset) for topic_id, offset in zip(self._topic_ids, following, strict=True))

    def _set_limits(self, page: Page, name: str) -> None:
        """Settings that decisions use are events: replay must not depend on a file."""
        limits = self._limits.get(name)
        if limits is None or limits == self._ahead.cluster(name).limits:
            return
        page.write(
            LimitsSet(
                cluster=name,
                max_partitions_in_flight=limits.max_partitions_in_flight,
                max_moves_per_broker=limits.max_moves_per_broker,
                max_replicas_per_step=limits.max_replicas_per_step,
                mends_by_itself=limits.mends_by_itself,
            )
        )

    # -- out

    def effects(self, now: Moment) -> tuple[Effect, ...]:
        """Say which calls to start now: those whose intents are durable, each once, and throttles that are owed.

        Each must start within 1 s of the draft of the last record that counted: a process that stood still since may
        not be the owner any more. To a cluster that is not the one first seen under its name, or is not configured
        any more, nothing is sent: what was intended for it has lapsed.
        """
        effects: list[Effect] = []
        by_cluster: dict[str, dict[TopicPartition, tuple[int, ...] | None]] = {}
        for name, key in self._due:
            state = self._ahead.cluster(name)
            reassignment = state.reassignments.get(key)
            if reassignment is None or not reassignment.call_open:
                continue
            self._tracks[name].call_starts(key)
            detail = self._why_not_call(state, reassignment)
            if detail is None:
                by_cluster.setdefault(name, {})[key] = list_to_send(state, key)
            else:
                self._inputs.append(CallEnded(name, (key,), now.monotonic_ms, None, detail=detail))
        self._due = []
        start_by_ms = self._proved_ms + CALL_START_MS
        for name, requests in by_cluster.items():
            items = list(requests.items())
            for first in range(0, len(items), MAX_PARTITIONS_PER_CALL):
                chunk = dict(items[first : first + MAX_PARTITIONS_PER_CALL])
                effects.append(AlterPartitions(name, chunk, start_by_ms))
        for name, track in self._tracks.items():
            if self._may_call(self._ahead.cluster(name)):
                effects += throttle_effects(self._ahead.cluster(name), track, now.monotonic_ms, start_by_ms)
        return tuple(effects)

    def _owes_throttles(self, now: Moment) -> bool:
        """Whether throttles are to be written now: their intents may be old, and somebody else the owner since."""
        return any(
            throttle_writes(state, track, now.monotonic_ms, now.monotonic_ms) is not None
            for name, track in self._tracks.items()
            if self._may_call(state := self._ahead.cluster(name))
        )

    def _why_not_call(self, state: ClusterState, reassignment: Reassignment) -> str | None:
        """A freeze may have come between an intent and its call: it holds back steps, and no way back (R236-9)."""
        if not self._may_call(state):
            return "another Kafka cluster answers under this name: nothing was sent"
        if state.freeze is not None and reassignment.phase is Phase.INTENDED:
            return f"{state.name} was frozen by {state.freeze.by} before the call: nothing was sent"
        return None

    def _may_call(self, state: ClusterState) -> bool:
        return state.name in self._limits and state.mismatched_kafka_cluster_id is None

    def wanted(self, cluster: str, moves: Mapping[TopicPartition, Move], now: Moment) -> frozenset[TopicPartition]:
        """Choose the partitions to observe now, given what List has just shown.

        A copying partition that is still listed is looked at once in a while; one that has left the list, one that is
        on its way back, and one that waits for a slot, at once.
        """
        track, state = self._tracks.get(cluster), self._ahead.clusters.get(cluster)
        if track is None or state is None:
            return frozenset()
        known, queue = state.reassignments, state.queue
        wanted = {key for key in (*track.needed, *track.doubted()) if key in known or key in queue}
        wanted.update(key for key in track.outsiders if track.fresh(key, now.monotonic_ms) is None)
        for key in state.in_flight:
            phase = state.reassignments[key].phase
            if key in track.calls or track.call_ended_ms(key) > now.monotonic_ms:
                continue
            at_once = phase in _WATCHED or (key not in moves and phase is not Phase.CONFIRMED)
            sight = track.sights.get(key)
            stale = sight is None or now.monotonic_ms - sight.ended_ms > FRESH_MS
            if at_once or stale:
                wanted.add(key)
        return frozenset(wanted)

    def urgency(self, cluster: str) -> Urgency:
        """Tell how closely the cluster should be watched."""
        track, state = self._tracks.get(cluster), self._ahead.clusters.get(cluster)
        if track is None or state is None:
            return Urgency.IDLE
        if state.in_flight or track.needed:
            return Urgency.BUSY
        throttles = state.broker_throttles or state.topic_throttles
        waits = (state.reassignments, state.queue, throttles, state.foreign, track.outsiders, track.has_unrecorded)
        return Urgency.WAITING if any(waits) else Urgency.IDLE

    def needs_liveness(self, cluster: str, now: Moment) -> bool:
        """Whether somebody must look who is there.

        Another cluster answered last, or none yet while something is queued for it; or the throttle ledger waits for
        brokers that were dead at the last look.
        """
        track, state = self._tracks.get(cluster), self._ahead.clusters.get(cluster)
        if track is None or state is None:
            return False
        if state.mismatched_kafka_cluster_id is not None or (state.queue and state.kafka_cluster_id is None):
            return True
        if not state.broker_throttles:
            return False
        return track.live_seen_ms is None or now.monotonic_ms - track.live_seen_ms > FRESH_MS

    @property
    def clusters(self) -> tuple[str, ...]:
        """The configured clusters that live in this shard."""
        here, shards = self.fold.shard, self.fold.shards
        return tuple(name for name in sorted(self._limits) if shard_of(name, shards) == here)

    def copying(self, cluster: str) -> Mapping[TopicPartition, tuple[int, tuple[int, ...], int | None]]:
        """List what is being copied: per partition its step, the brokers being added, and the leader if known."""
        state = self._ahead.clusters.get(cluster)
        found: dict[TopicPartition, tuple[int, tuple[int, ...], int | None]] = {}
        for key in state.in_flight if state is not None else ():
            reassignment = state.reassignments[key] if state is not None else None
            if reassignment is not None and reassignment.step is not None and reassignment.phase is Phase.COPYING:
                step = reassignment.step
                found[key] = (step.number, step.adding, step.leader)
        return found

    def phases(self, cluster: str) -> Mapping[str, int]:
        """Count the reassignments under way by phase."""
        state = self._ahead.clusters.get(cluster)
        if state is None:
            return {}
        counts = Counter(state.reassignments[key].phase.value for key in state.in_flight)
        counts[Phase.QUEUED.value] = len(state.queued)
        return counts

    def wake_at_ms(self, now: Moment) -> int | None:
        """Tell when (monotonic) `draft` should be called although nothing arrives; None if never."""
        times = [due for track in self._tracks.values() if (due := track.next_due_ms(now.monotonic_ms)) is not None]
        if any(track.waiting_plans for track in self._tracks.values()):
            times.append(now.monotonic_ms + MORE_WAIT_MS)
        refusal_ms = holding.next_refusal_ms(self._ahead.clusters)
        if refusal_ms is not None:
            times.append(now.monotonic_ms + max(0, refusal_ms - max(now.wall_ms, self.fold.at_ms)))
        return min(times, default=None)
