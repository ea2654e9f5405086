"""The shard core: the sans-I/O machine that turns what arrives into records, and valid records into calls.

The same object runs live, under tests and in simulation. It does no I/O: `propose` returns the record to append,
`commit` notes that it is durable and valid, and only then `effects` returns the calls to make (R6).
"""

from collections.abc import Mapping, Sequence

from drover.events.partitions import TopicPartition
from drover.events.records import AnyEvent
from drover.events.topics import TopicNames, shard_of
from drover.fold.log import ShardFold
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.messages import Effect, Input, Timestamp
from drover.shard.due_clusters import DueClusters
from drover.shard.managed import ManagedCluster, ManagedClusters
from drover.shard.messages import Arrival, ProposedBatch
from drover.shard.pipeline import Pipeline, Taken, partitions_to_observe
from drover.shard.proposals import Proposals, divided
from drover.shard.scope import ShardScope
from drover.state.scheduling import Limits


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
        moves_own_topics: bool = False,
    ) -> None:
        self.fold = fold
        self._proposals = Proposals(fold, topic_ids)
        scope = ShardScope(fold.shard, fold.shards, frozenset(clusters), topics, moves_own_topics)
        self._clusters = ManagedClusters(scope, dict(clusters))
        self.clusters = tuple(name for name in sorted(clusters) if shard_of(name, fold.shards) == fold.shard)
        self.disown()

    # -- ownership

    @property
    def token(self) -> bytes | None:
        """The token under which this worker owns the shard; None while it does not."""
        return self._proposals.token

    @property
    def owned(self) -> bool:
        """Whether this worker may append to the shard, as far as it knows."""
        return self.token is not None

    def own(self, token: bytes, now: Timestamp) -> None:
        """Begin: this worker's acquire has been folded and its token is the current one.

        Open calls and pending throttles of a predecessor wait until they must have ended. Then the cluster is observed,
        and moves under way are adopted without a cancel.
        """
        assert token == self.fold.token, "owning begins with the current token"
        self.disown()
        self._proposals.begin(token)
        self._clusters.begin(self.fold.state, now)
        self._due_clusters.touched.update(self._clusters.names())

    def disown(self) -> None:
        """End: revoked or fenced. All speculation, observations and pending calls are dropped; idempotent."""
        self._proposals.begin(None)
        self._clusters.end()
        self._inputs: list[Input] = []
        self._due_clusters = DueClusters(self._clusters)

    # -- in

    def deliver(self, entry: Input) -> None:
        """Queue an input for the next batch; it is dropped if the shard is not owned."""
        if self.owned:
            self._inputs.append(entry)

    def anchor_snapshot(self, snapshot_digest: bytes) -> None:
        """Let the next record anchor this snapshot, so that it may be used; no effect if the shard is not owned."""
        if self.owned:
            self._proposals.anchor_snapshot(snapshot_digest)

    def facts_needed(self, arrivals: Sequence[Arrival]) -> Mapping[str, frozenset[TopicPartition]]:
        """List per cluster the partitions that must be observed, and delivered, before these arrivals are decided."""
        if self._proposals.has_rest:
            return {}
        named = partitions_to_observe(arrivals, self._clusters)
        return {cluster: frozenset(keys) for cluster, keys in named.items()}

    def propose(
        self, now: Timestamp, arrivals: Sequence[Arrival], unavailable: Mapping[str, str]
    ) -> ProposedBatch | None:
        """Decide everything that has arrived as one batch; None if there is nothing to record.

        `unavailable` says why a cluster could not be observed. The batch decides a prefix of the arrivals. Where calls
        are owed it may be empty: if it is valid, this worker is still the owner and may call. A batch too large for one
        record is proposed in several, with the commands in the first. The caller must end each with `commit` or
        `disown`.
        """
        if self._proposals.has_rest:
            return self._proposals.propose_rest(now)
        batch = self._begin(now)
        inputs, self._inputs = self._inputs, []
        self._due_clusters.observe(inputs, batch)
        taken = Pipeline(batch, self._clusters, self.fold.decided_commands, unavailable).run(arrivals)
        batch.end_decisions()
        owes = self._due_clusters.visit(batch)
        if not (taken.arrivals or batch.events or owes or self._proposals.has_snapshot_to_anchor):
            return None
        return self._proposals.propose(divided(batch), taken, now)

    def propose_refusal(self, now: Timestamp, arrivals: Sequence[Arrival], detail: str) -> ProposedBatch | None:
        """Refuse the first arrival, because the record proposed for it was larger than the log accepts.

        All speculation is dropped. None without arrivals.
        """
        assert self.token is not None, "only the owner writes"
        self.own(self.token, now)
        batch = self._begin(now)
        taken = Pipeline(batch, self._clusters, self.fold.decided_commands, {}, refusal=detail).run(arrivals[:1])
        return self._proposals.propose(divided(batch), taken, now) if taken.arrivals else None

    def closing_batch(self, now: Timestamp) -> ProposedBatch | None:
        """Make a batch that carries only the state hash, for a clean stop; None before the first batch."""
        if not self.fold.sequence:
            return None
        return self._proposals.propose(divided(self._begin(now)), Taken(), now, with_hash=True)

    def commit(self, proposed: ProposedBatch) -> None:
        """Note that the batch is durable and was folded as valid: its calls may be made."""
        self._proposals.commit(proposed)

    def _begin(self, now: Timestamp) -> BatchBuilder:
        assert self.owned, "only the owner writes"
        return BatchBuilder(self._apply, self._proposals.at(now))

    def _apply(self, events: Sequence[AnyEvent], at_ms: int) -> tuple[AnyEvent, ...]:
        self._due_clusters.touched.add(events[0].cluster)
        return self._clusters.apply(events, at_ms)

    @property
    def next_offsets(self) -> tuple[int, ...]:
        """The next offset to decide in each command topic, from the log (R4)."""
        return self._proposals.next_offsets

    # -- out

    def effects(self, now: Timestamp) -> tuple[Effect, ...]:
        """Return the calls to start now: those whose intents are durable, each once, and throttles that are owed.

        Empty while a record is proposed and not committed, or a part of its batch is still to follow. Each must start
        within 1 s of the proposal of the last valid record. Intents lapse where the cluster is no longer configured, or
        another Kafka cluster answers under its name.
        """
        if self._proposals.is_under_way or self._proposals.has_rest:
            return ()
        return tuple(self._due_clusters.effects(now, self._proposals.at(now), self._proposals.start_by_ms))

    def wake_at_ms(self, now: Timestamp) -> int | None:
        """Return when (monotonic) to call `propose` without new arrivals; None if never."""
        is_waiting = self._proposals.has_rest or self._proposals.has_snapshot_to_anchor
        return now.monotonic_ms if is_waiting else self._due_clusters.next_ms(now.monotonic_ms)

    def cluster(self, name: str) -> ManagedCluster:
        """Return a managed cluster: what to observe in it, how urgent that is, and what is being copied."""
        return self._clusters.of(name)
