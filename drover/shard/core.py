"""The shard core: the sans-I/O machine that turns what arrives into records, and valid records into calls.

The same object runs live, under tests and in simulation. It appends nothing and calls nobody: `propose` says what to
append, `commit` notes that it is durable and valid, and only then `effects` says what to call (R6).
"""

from collections.abc import Mapping, Sequence

from drover.capability.batch import BatchBuilder
from drover.capability.messages import Effect, Input, Moment
from drover.scheduling.state import Limits
from drover.shard import deferred
from drover.shard.agenda import Agenda
from drover.shard.deciding import CommandIndex, go_on
from drover.shard.fold import ShardFold
from drover.shard.intake import Intake, decide_arrivals, following, named_partitions, refuse_too_large
from drover.shard.managed import ManagedCluster, ManagedClusters
from drover.shard.messages import Arrival, ProposedBatch
from drover.shard.proposing import Draft, divided, proposed_batch
from drover.shard.scope import ShardScope
from drover.state.hashing import is_hash_due
from events.partitions import TopicPartition
from events.records import AnyEvent, Cursor
from events.topics import TopicNames, shard_of

CALL_START_MS = 1000
# Clocks of brokers differ a little, and log time waits for the slower ones. What is further ahead is put right.
MAX_AHEAD_MS = 60_000


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
        self.clusters = tuple(name for name in sorted(clusters) if shard_of(name, fold.shards) == fold.shard)
        self.disown()

    # -- ownership

    @property
    def owned(self) -> bool:
        """Whether this worker may append to the shard, as far as it knows."""
        return self.token is not None

    def own(self, token: bytes, now: Moment) -> None:
        """Begin: this worker's acquire has been folded and its token is the current one.

        Calls that a predecessor left open, and throttles it left pending, wait until its time is over. Then the cluster
        is observed, and what is there is adopted without a cancel.
        """
        assert token == self.fold.token, "owning begins with the current token"
        self.disown()
        self.token = token
        self._clusters.begin(self.fold.state, now)
        self._agenda.touched.update(self._clusters.names())

    def disown(self) -> None:
        """End: revoked or fenced. All speculation, observations and pending calls are dropped; idempotent."""
        self.token = None
        self._clusters.end()
        self._inputs: list[Input] = []
        # What did not fit into the record before: it follows at once, and nothing is called before it is durable.
        self._rest: tuple[Draft, ...] = ()
        # A snapshot that was written, and that the log does not vouch for yet.
        self._snapshot_digest: bytes | None = None
        self._is_proposed = False
        self._proposed_ms = 0
        # When the last valid record was proposed: until then this worker was certainly the owner.
        self._proved_ms = -CALL_START_MS - 1
        self._looked_for: frozenset[tuple[str, str]] = frozenset()
        self._agenda = Agenda()

    # -- in

    def deliver(self, entry: Input) -> None:
        """Queue an input for the next batch; it is dropped if the shard is not owned."""
        if self.owned:
            self._inputs.append(entry)

    def vouch_for(self, snapshot_digest: bytes) -> None:
        """Let the next record say that this snapshot may be used; nothing if the shard is not owned."""
        if self.owned:
            self._snapshot_digest = snapshot_digest

    def facts_needed(self, arrivals: Sequence[Arrival]) -> Mapping[str, frozenset[TopicPartition]]:
        """List per cluster the partitions that must be observed, and delivered, before these arrivals are decided.

        Deferred commands whose turn has come are decided in the same batch, and need observations as well.
        """
        if self._rest:
            return {}
        named = named_partitions(arrivals, self._clusters)
        due = deferred.due(self._clusters, CommandIndex(self.fold.known, self.fold.at_ms))
        for (cluster, _), keys in due.items():
            named.setdefault(cluster, set()).update(keys)
        self._looked_for = frozenset(due)
        return {cluster: frozenset(keys) for cluster, keys in named.items()}

    def propose(self, now: Moment, arrivals: Sequence[Arrival], unavailable: Mapping[str, str]) -> ProposedBatch | None:
        """Decide everything that has arrived as one batch; None if there is nothing to record.

        `unavailable` says why a cluster could not be observed. The batch decides a prefix of the arrivals. Where calls
        are owed it may be empty: if it is valid, this worker is still the owner and may call. What is too much for one
        record is proposed in several, the commands in the first. The caller must end the batch with `commit` or
        `disown`.
        """
        if self._rest:
            draft, *rest = self._rest
            return self._finish(draft, Intake(), now, tuple(rest))
        batch = self._begin(now)
        inputs, self._inputs = self._inputs, []
        for entry in inputs:
            self._agenda.touched.add(entry.cluster)
            self._clusters.of(entry.cluster).handle(entry, batch)
        index = CommandIndex(self.fold.known, batch.at_ms)
        looked_for, self._looked_for = self._looked_for, frozenset()
        self._agenda.touched.update(cluster for cluster, _ in looked_for)
        self._agenda.touch_due(batch.now.monotonic_ms)
        for name in sorted(self._agenda.touched):
            cluster = self._clusters.of(name)
            go_on(batch, cluster, self._clusters, looked_for, unavailable.get(name))
            deferred.release(batch, cluster, self._clusters, index, looked_for, unavailable.get(name))
        intake = decide_arrivals(batch, arrivals, self._clusters, index, unavailable)
        batch.end_decisions()
        owes = self._reconcile(batch)
        if not (intake.taken or batch.events or owes or self._snapshot_digest):
            return None
        draft, *rest = divided(batch)
        return self._finish(draft, intake, now, tuple(rest))

    def propose_refusal(self, now: Moment, arrivals: Sequence[Arrival], detail: str) -> ProposedBatch | None:
        """Refuse the first arrival, after what was proposed for it turned out to be more than the log takes.

        All speculation is dropped. None if nothing has arrived.
        """
        assert self.token is not None, "only the owner writes"
        self.own(self.token, now)
        batch = self._begin(now)
        intake = refuse_too_large(batch, arrivals[:1], self._clusters, detail)
        if not intake.taken:
            return None
        (draft,) = divided(batch)
        return self._finish(draft, intake, now, ())

    def _reconcile(self, batch: BatchBuilder) -> bool:
        """Visit the clusters that were touched; return whether calls are owed there."""
        visited = self._agenda.visit()
        for name in visited:
            self._clusters.of(name).reconcile(batch)
            self._agenda.due_ms[name] = self._clusters.of(name).due_ms(batch.now)
        # Clusters that have changed are visited once more.
        self._agenda.touched = {event.cluster for event in batch.events} | self._clusters.with_released()
        return any(self._clusters.of(name).owes(batch.now) for name in visited)

    def closing_batch(self, now: Moment) -> ProposedBatch | None:
        """Make a batch that carries only the state hash, for a clean stop; None before the first batch."""
        if not self.fold.sequence:
            return None
        (draft,) = divided(self._begin(now))
        return self._finish(draft, Intake(), now, (), with_hash=True)

    def commit(self, proposed: ProposedBatch) -> None:
        """Note that the batch is durable and was folded as valid: its calls may be made."""
        assert self.fold.sequence >= proposed.record.sequence, "a batch is committed after its record was folded"
        self._is_proposed = False
        self._proved_ms = self._proposed_ms
        if proposed.record.snapshot_digest == self._snapshot_digest:
            self._snapshot_digest = None
        if self._rest:
            return
        self._agenda.acting.update(self._agenda.visited)
        for name in self._agenda.visited:
            self._clusters.of(name).committed()

    def _begin(self, now: Moment) -> BatchBuilder:
        assert self.owned, "only the owner writes"
        return BatchBuilder(self._apply, self._at(now))

    def _apply(self, event: AnyEvent, at_ms: int) -> tuple[AnyEvent, ...]:
        self._agenda.touched.add(event.cluster)
        return self._clusters.apply(event, at_ms)

    def _finish(
        self, draft: Draft, intake: Intake, now: Moment, rest: tuple[Draft, ...], *, with_hash: bool = False
    ) -> ProposedBatch:
        assert self.token is not None, "only the owner writes"
        assert not self._is_proposed, "the last batch was neither committed nor disowned"
        self._is_proposed, self._rest = True, rest
        self._proposed_ms = now.monotonic_ms
        cursors = following(self._cursors, intake.taken)
        has_hash = with_hash or is_hash_due(self.fold.sequence + 1, self.fold.state.clusters)
        state_hash = self.fold.state.hash() if has_hash else None
        return proposed_batch(self.fold, self.token, cursors, draft, intake, state_hash, self._snapshot_digest)

    @property
    def next_offsets(self) -> tuple[int, ...]:
        """The next offset to decide in each command topic, from the log (R4)."""
        return tuple(cursor.next_offset for cursor in self._cursors)

    @property
    def decided_early(self) -> tuple[frozenset[int], ...]:
        """The offsets beyond the next one that are decided already, in each command topic, from the log."""
        return tuple(frozenset(cursor.ahead) for cursor in self._cursors)

    @property
    def busy_clusters(self) -> frozenset[str]:
        """The clusters in which a command is being decided in several records: no other one is decided until then."""
        return self._clusters.partly_decided().intersection(self.clusters)

    @property
    def _cursors(self) -> tuple[Cursor, ...]:
        known = self.fold.cursors or tuple(Cursor(topic_id, 0) for topic_id in self._topic_ids)
        # The ids are those of the topics as they are now; the barrier has compared them.
        return tuple(
            Cursor(topic_id, cursor.next_offset, cursor.ahead)
            for topic_id, cursor in zip(self._topic_ids, known, strict=True)
        )

    # -- out

    def effects(self, now: Moment) -> tuple[Effect, ...]:
        """Return the calls to start now: those whose intents are durable, each once, and throttles that are owed.

        Each must start within 1 s of the proposal of the last valid record: a process that has been suspended since may
        no longer be the owner. Nothing is sent to a cluster that is no longer configured, or is not the one first seen
        under its name: what was intended for it lapses.
        """
        if self._rest:
            return ()
        effects: list[Effect] = []
        for name in self._agenda.act():
            effects += self._clusters.of(name).effects(now, self._proved_ms + CALL_START_MS)
            self._agenda.due_ms[name] = self._clusters.of(name).due_ms(self._at(now))
        return tuple(effects)

    def wake_at_ms(self, now: Moment) -> int | None:
        """Tell when (monotonic) `propose` should be called although nothing arrives; None if never."""
        is_waiting = bool(self._rest or self._snapshot_digest)
        return now.monotonic_ms if is_waiting else self._agenda.next_ms(now.monotonic_ms)

    def _at(self, now: Moment) -> Moment:
        """The same moment in log time, which goes back only after a wrong clock had set it far ahead."""
        if now.is_certain and self.fold.at_ms > now.wall_ms + MAX_AHEAD_MS:
            return now
        return Moment(max(now.wall_ms, self.fold.at_ms), now.monotonic_ms)

    def cluster(self, name: str) -> ManagedCluster:
        """Return a managed cluster: what to observe in it, how urgent that is, and what is being copied."""
        return self._clusters.of(name)
