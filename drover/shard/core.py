"""The shard core: the sans-I/O machine that turns what arrives into records, and valid records into calls.

The same object runs live, under tests and in simulation. It appends nothing and calls nobody: `propose` says what to
append, `commit` notes that it is durable and valid, and only then `effects` says what to call (R6).
"""

from collections.abc import Collection, Mapping, Sequence

from drover.capability.batch import BatchBuilder
from drover.capability.contract import Urgency
from drover.capability.messages import Effect, Input, Moment
from drover.facts import Move
from drover.scheduling.state import Limits
from drover.shard import deferred
from drover.shard.deciding import CommandIndex
from drover.shard.fold import ShardFold
from drover.shard.intake import Intake, decide_arrivals, named_partitions
from drover.shard.managed import ManagedClusters
from drover.shard.messages import Arrival, ProposedBatch
from drover.shard.scope import ShardScope
from drover.state.hashing import CURRENT_FORM
from events.codec import encode_record
from events.partitions import TopicPartition
from events.records import SCHEMA_VERSION, AnyEvent, Batch, Cursor
from events.topics import TopicNames, shard_of

CALL_START_MS = 1000
STATE_HASH_EVERY = 1000


class ShardCore:
    """One shard as its owner drives it.

    `topic_ids` are the ids of the four command topics; `clusters` the configured clusters with their limits. Everything
    but the fold is speculative: `disown` drops it, and a new `own` starts from the log again. Only clusters to which
    something has happened are visited.
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
        # The token under which this worker owns the shard; None while it does not.
        self.token: bytes | None = None
        self._topic_ids = topic_ids
        scope = ShardScope(fold.shard, fold.shards, frozenset(clusters), topics)
        self._clusters = ManagedClusters(scope, dict(clusters))
        self._here = tuple(name for name in sorted(clusters) if shard_of(name, fold.shards) == fold.shard)
        self.disown()

    # -- ownership

    @property
    def owned(self) -> bool:
        """Whether this worker may append to the shard, as far as it knows."""
        return self.token is not None

    @property
    def clusters(self) -> tuple[str, ...]:
        """The configured clusters that live in this shard."""
        return self._here

    def own(self, token: bytes, now: Moment) -> None:
        """Begin: this worker's acquire has been folded and its token is the current one.

        Calls that a predecessor left open, and throttles it left pending, wait until its time is over. Then the cluster
        is observed, and what is there is adopted without a cancel.
        """
        assert token == self.fold.token, "owning begins with the current token"
        self.disown()
        self.token = token
        self._clusters.begin(self.fold.state, now)
        self._touched.update(self._clusters.names())

    def disown(self) -> None:
        """End: revoked or fenced. All speculation, observations and pending calls are dropped; idempotent."""
        self.token = None
        self._clusters.end()
        self._inputs: list[Input] = []
        self._is_proposed = False
        self._proposed_ms = 0
        # When the last valid record was proposed: until then this worker was certainly the owner.
        self._proved_ms = -CALL_START_MS - 1
        self._looked_for: frozenset[tuple[str, str]] = frozenset()
        # The clusters to visit in the next batch, those that may have effects, and when the others are due.
        self._touched: set[str] = set()
        self._visited: list[str] = []
        self._acting: set[str] = set()
        self._due_ms: dict[str, int | None] = {}

    # -- in

    def deliver(self, entry: Input) -> None:
        """Queue an input for the next batch; it is dropped if the shard is not owned."""
        if self.owned:
            self._inputs.append(entry)

    def facts_needed(self, arrivals: Sequence[Arrival]) -> Mapping[str, frozenset[TopicPartition]]:
        """List per cluster the partitions that must be observed, and delivered, before these arrivals are decided.

        Deferred commands whose turn has come are decided in the same batch, and need observations as well.
        """
        named = named_partitions(arrivals, self._clusters)
        due = deferred.due(self._clusters, CommandIndex(self.fold.known, self.fold.at_ms))
        for (cluster, _), keys in due.items():
            named.setdefault(cluster, set()).update(keys)
        self._looked_for = frozenset(due)
        return {cluster: frozenset(keys) for cluster, keys in named.items()}

    # -- records

    def propose(self, now: Moment, arrivals: Sequence[Arrival], unavailable: Mapping[str, str]) -> ProposedBatch | None:
        """Decide everything that has arrived as one batch; None if there is nothing to record.

        `unavailable` says why a cluster could not be observed. The batch decides a prefix of the arrivals. Where calls
        are owed it may be empty: if it is valid, this worker is still the owner and may call. The caller must end the
        batch with `commit` or `disown`.
        """
        now, batch = self._begin(now)
        inputs, self._inputs = self._inputs, []
        for entry in inputs:
            self._touched.add(entry.cluster)
            self._clusters.of(entry.cluster).handle(entry, batch)
        index = CommandIndex(self.fold.known, batch.at_ms)
        looked_for, self._looked_for = self._looked_for, frozenset()
        self._touched.update(cluster for cluster, _ in looked_for)
        self._touched.update(name for name, due in self._due_ms.items() if due is not None and due <= now.monotonic_ms)
        for name in sorted(self._touched):
            cluster = self._clusters.of(name)
            deferred.release(batch, cluster, self._clusters, index, looked_for, unavailable.get(name))
        intake = decide_arrivals(batch, arrivals, self._clusters, index, unavailable)
        visited = sorted(self._touched)
        for name in visited:
            self._clusters.of(name).reconcile(batch)
            self._due_ms[name] = self._clusters.of(name).due_ms(now)
        self._visited = visited
        self._acting.update(visited)
        # Clusters that have changed are visited once more.
        self._touched = {event.cluster for event in batch.events} | self._clusters.with_released()
        owes = any(self._clusters.of(name).owes(now) for name in visited)
        if not intake.taken and not batch.events and not owes:
            return None
        state_hash = self.fold.state.hash() if (self.fold.sequence + 1) % STATE_HASH_EVERY == 0 else None
        return self._finish(batch, intake, state_hash)

    def closing_batch(self, now: Moment) -> ProposedBatch | None:
        """Make a batch that carries only the state hash, for a clean stop; None before the first batch."""
        if not self.fold.sequence:
            return None
        return self._finish(self._begin(now)[1], Intake(), self.fold.state.hash())

    def commit(self, proposed: ProposedBatch) -> None:
        """Note that the batch is durable and was folded as valid: its calls may be made."""
        assert self.fold.sequence >= proposed.record.sequence, "a batch is committed after its record was folded"
        self._is_proposed = False
        self._proved_ms = self._proposed_ms
        self._acting.update(self._visited)
        for name in self._visited:
            self._clusters.of(name).committed()

    def _begin(self, now: Moment) -> tuple[Moment, BatchBuilder]:
        assert self.owned, "only the owner writes"
        assert not self._is_proposed, "the last batch was neither committed nor disowned"
        self._proposed_ms = now.monotonic_ms
        moment = self._at(now)
        return moment, BatchBuilder(self._apply, moment, moment.wall_ms)

    def _apply(self, event: AnyEvent, at_ms: int) -> tuple[AnyEvent, ...]:
        self._touched.add(event.cluster)
        return self._clusters.of(event.cluster).apply(event, at_ms)

    def _finish(self, batch: BatchBuilder, intake: Intake, state_hash: bytes | None) -> ProposedBatch:
        assert self.token is not None, "only the owner writes"
        self._is_proposed = True
        record = Batch(
            schema=SCHEMA_VERSION,
            token=self.token,
            epoch=self.fold.epoch,
            sequence=self.fold.sequence + 1,
            at_ms=batch.at_ms,
            cursors=self._cursors(intake.taken),
            previous_hash=self.fold.chain,
            outcomes=tuple(batch.outcomes),
            events=tuple(batch.events),
            state_hash=state_hash,
            state_hash_form=1 if state_hash is None else CURRENT_FORM,
        )
        aside = (tuple(intake.taken), tuple(intake.forward), tuple(intake.dead_letters))
        return ProposedBatch(record, encode_record(record), *aside)

    @property
    def next_offsets(self) -> tuple[int, ...]:
        """The next offset to decide in each command topic, from the log (R4)."""
        known = self.fold.cursors or tuple(Cursor(topic_id, 0) for topic_id in self._topic_ids)
        return tuple(cursor.next_offset for cursor in known)

    def _cursors(self, taken: Collection[Arrival]) -> tuple[Cursor, ...]:
        following = list(self.next_offsets)
        for arrival in taken:
            following[arrival.topic_index] = arrival.offset + 1
        return tuple(Cursor(topic_id, offset) for topic_id, offset in zip(self._topic_ids, following, strict=True))

    # -- out

    def effects(self, now: Moment) -> tuple[Effect, ...]:
        """Return the calls to start now: those whose intents are durable, each once, and throttles that are owed.

        Each must start within 1 s of the proposal of the last valid record: a process that has been suspended since may
        no longer be the owner. Nothing is sent to a cluster that is no longer configured, or is not the one first seen
        under its name: what was intended for it lapses.
        """
        acting, self._acting = sorted(self._acting), set()
        effects: list[Effect] = []
        for name in acting:
            effects += self._clusters.of(name).effects(now, self._proved_ms + CALL_START_MS)
            self._due_ms[name] = self._clusters.of(name).due_ms(self._at(now))
        return tuple(effects)

    def wake_at_ms(self, now: Moment) -> int | None:
        """Tell when (monotonic) `propose` should be called although nothing arrives; None if never."""
        if self._touched:
            return now.monotonic_ms
        return min((due for due in self._due_ms.values() if due is not None), default=None)

    def _at(self, now: Moment) -> Moment:
        """The same moment in log time, which never goes back."""
        return Moment(max(now.wall_ms, self.fold.at_ms), now.monotonic_ms)

    # -- looking

    def wanted(self, cluster: str, moves: Mapping[TopicPartition, Move], now: Moment) -> frozenset[TopicPartition]:
        """Choose the partitions to observe now, given what List has just shown."""
        known = self._clusters.known(cluster)
        return frozenset() if known is None else known.wanted(moves, now)

    def urgency(self, cluster: str) -> Urgency:
        """Tell how closely the cluster should be watched."""
        known = self._clusters.known(cluster)
        return Urgency.IDLE if known is None else known.urgency()

    def wants_brokers(self, cluster: str, now: Moment) -> bool:
        """Whether the live brokers must be looked up although no partition is wanted."""
        known = self._clusters.known(cluster)
        return known is not None and known.wants_brokers(now)

    def copying(self, cluster: str) -> Mapping[TopicPartition, tuple[int, tuple[int, ...], int | None]]:
        """List what is being copied: per partition its step, the brokers being added, and the leader if known."""
        known = self._clusters.known(cluster)
        return {} if known is None else known.copying()

    def phases(self, cluster: str) -> Mapping[str, int]:
        """Count the reassignments under way by phase."""
        known = self._clusters.known(cluster)
        return {} if known is None else known.phases()
