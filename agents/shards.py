"""A shard in a worker: its inbox, its ownership, and the loop that turns commands into records.

The loop is the only writer of the shard's batches and has at most one in flight. Speculative state is dropped when the
shard is revoked (`tenure` changes) or its record is fenced; the log then has the state.
"""

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from drover.agents import forwarding, outcome_metrics
from drover.agents.clock import monotonic, now
from drover.agents.dead_letters import DeadLetters
from drover.agents.delivery import Delivery
from drover.agents.ownership_conflict import OwnershipConflict
from drover.agents.ports import CommandSource
from drover.agents.services import ClusterSide
from drover.agents.snapshots import SnapshotKeeper
from drover.errors import LogUnavailableError
from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.fold.log import RecordVerdict
from drover.journal.folded_log import FoldedLog
from drover.journal.port import RecordTooLargeError
from drover.reconcile.messages import Timestamp
from drover.service.metrics import Metrics
from drover.settings.settings import Settings
from drover.shard.core import ShardCore
from drover.shard.inbox import Inbox
from drover.shard.messages import Arrival, ProposedBatch
from drover.shard.ownership_conflict import ownership_conflict_in_words
from drover.time_limits import time_limit

ACQUIRE_ATTEMPTS = 8
# The least pause, so that a core that wants to be woken in the past does not starve the other tasks.
SHORTEST_WAIT_S = 0.005
# A record costs about ten times as much as a command in it. Commands that follow a record closely therefore wait until
# it is this old, to share the next one. Otherwise a busy worker would write one record per command, and fall behind.
LINGER_S = 0.015
COMPANY = 500
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ShardServices:
    """Services that all shards of a worker share; `fail` ends the process. Without `snapshots` none are written.

    `new_token` makes the token of an acquire. `broker_time_ms` returns the time of the log's brokers, if it is known.
    """

    settings: Settings
    log: FoldedLog
    clusters: ClusterSide
    source: Callable[[], CommandSource]
    fail: Callable[[str, BaseException | None], object]
    metrics: Metrics
    new_token: Callable[[], bytes]
    snapshots: SnapshotKeeper | None = None
    broker_time_ms: Callable[[], int | None] = lambda: None


class HostedShard:
    """Hosts a shard's core; `assigned` says that the group has assigned us the shard and the barrier is over."""

    def __init__(self, core: ShardCore, services: ShardServices) -> None:
        self.core = core
        self.fold = core.fold
        self.number = core.fold.shard
        self.assigned = False
        self.tenure = 0
        self.unowned_since: float | None = None
        self.inbox = Inbox()
        self._services = services
        self._owner = services.settings.worker.full_name
        self._group = services.settings.group
        self._topics = services.settings.log.topics
        self._dead_letters = DeadLetters(self._topics, self.number, services.metrics)
        self.delivery = Delivery(
            self.number, self.inbox, self._topics, services.log, services.source, self.wake, services.fail
        )
        self._token = b""
        self._wake = asyncio.Event()
        self._closing = False
        # Set after a record was too large: commands are decided one at a time until the culprit is known.
        self._is_narrow = False
        self._decided_at = -math.inf
        self._ownership_conflict = OwnershipConflict()

    def _now(self) -> Timestamp:
        """Return the current time by the clock of the log's brokers."""
        return now().by(self._services.broker_time_ms())

    # -- called by the group

    @property
    def next_offsets(self) -> tuple[int, ...]:
        """The next offset of each command topic, from the log (R4)."""
        return self.core.next_offsets

    @property
    def is_damaged(self) -> bool:
        """Whether the shard's log is damaged."""
        return self.fold.damage is not None

    @property
    def holds_token(self) -> bool:
        """Whether the core owns the shard, and no other worker has taken it."""
        return self.core.owned and self.fold.token == self._token and not self.is_damaged

    def wake(self) -> None:
        """Wake the loop."""
        self._wake.set()

    def revoke(self) -> None:
        """Give up the shard at once, because the group has revoked it."""
        self.tenure += 1
        self.assigned = False
        self.unowned_since = None
        self._disown()
        self.delivery.reset(self.next_offsets)

    def serve(self) -> None:
        """Start deciding, after the barrier in which the shard was acquired."""
        self.assigned = True
        self.delivery.reset(self.next_offsets)
        self._own()
        self.wake()

    async def acquire(self) -> bool:
        """Acquire the shard by compare-and-swap (R1); return False if it was revoked meanwhile."""
        tenure = self.tenure
        services = self._services
        for attempt in range(ACQUIRE_ATTEMPTS):
            token = services.new_token()
            record = Acquire(
                schema=SCHEMA_VERSION,
                epoch=self.fold.epoch + 1,
                token=token,
                owner=self._owner,
                group=self._group,
                generation=services.source().generation,
            )
            await services.log.append(self.number, record, encode_record(record))
            if self.tenure != tenure:
                return False
            if self.fold.token == token:
                self._token = token
                return True
            await asyncio.sleep(0.02 * 2**attempt * random.random())  # noqa: S311 - spreads competing owners, no secret
        raise LogUnavailableError(f"shard {self.number} was taken by others {ACQUIRE_ATTEMPTS} times in a row")

    # -- the loop

    async def run(self) -> None:
        """Decide commands as they arrive, until `close`."""
        while not self._closing:
            await self._wait()
            while self._may_decide() and await self._turn():
                pass

    def end_loop(self) -> None:
        """Make `run` return after the batch in flight."""
        self._closing = True
        self.wake()

    async def close(self) -> None:
        """After `run` has returned, record the state hash, perhaps write a snapshot, and end."""
        if self.assigned and self.holds_token and self._services.snapshots is not None:
            await self._services.snapshots.shard_closing(self.fold, self._anchor_snapshot)
        # Check again, because the group or another worker may have taken the shard meanwhile.
        if self.assigned and self.holds_token:
            await self._leave_hash()
        self.revoke()

    async def _leave_hash(self) -> None:
        proposed = self.core.closing_batch(self._now())
        if proposed is None:
            return
        try:
            await self._services.log.append(self.number, proposed.record, proposed.payload)
        except LogUnavailableError as error:
            # This record is optional. Leave the group anyway, so that others need not wait for the session's end.
            _log.warning("the last record of a shard may be missing", shard=self.number, error=str(error))

    def _may_decide(self) -> bool:
        return self.assigned and not self._closing

    async def _wait(self) -> None:
        moment = self._now()
        due_ms = self.core.wake_at_ms(moment) if self.assigned and self.core.owned else None
        seconds = None if due_ms is None else max(SHORTEST_WAIT_S, (due_ms - moment.monotonic_ms) / 1000)
        try:
            async with time_limit(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        finally:
            self._wake.clear()

    async def _turn(self) -> bool:
        """Make one record of everything that has arrived; return False if there is nothing to do."""
        if not self.holds_token:
            return await self._regain()
        await self._linger()
        tenure = self.tenure
        arrivals = self.inbox.take(self.next_offsets)
        self._is_narrow = self._is_narrow and bool(arrivals)
        arrivals = arrivals[:1] if self._is_narrow else arrivals
        needed = self.core.facts_needed(arrivals)
        unavailable = await self._services.clusters.gather(self.core, needed) if needed else {}
        proposed = None
        if self.tenure == tenure and self.holds_token:
            proposed = self.core.propose(self._now(), arrivals, unavailable)
        if proposed is None:
            self.inbox.give_back()
            self._start_effects()
            return not self.holds_token
        try:
            await self._append(proposed, arrivals, tenure)
        except RecordTooLargeError as error:
            return await self._narrow(arrivals, tenure, error)
        return True

    async def _linger(self) -> None:
        """Wait for more commands if some are waiting and the last record is recent."""
        left_s = self._decided_at + LINGER_S - monotonic()
        if left_s > 0 and 0 < self.inbox.count < COMPANY:
            await asyncio.sleep(left_s)

    async def _append(self, proposed: ProposedBatch, arrivals: tuple[Arrival, ...], tenure: int) -> None:
        await self._send_aside(proposed)
        began = monotonic()
        counted = outcome_metrics.counted(self.fold.state.clusters, proposed)
        folded = await self._services.log.append(self.number, proposed.record, proposed.payload)
        if self.tenure != tenure:
            # The shard was revoked while the record was in flight; the next owner sees in the log whether it is valid.
            return
        if folded.verdict is RecordVerdict.VALID:
            self._services.metrics.batch_appended(self.number, monotonic() - began)
            self._settle(proposed)
            outcome_metrics.report(self._services.metrics, counted, proposed, self._topics.commands)
        else:
            self._requeue(arrivals)

    async def _narrow(self, arrivals: tuple[Arrival, ...], tenure: int, error: RecordTooLargeError) -> bool:
        """Decide one command at a time, and refuse the one whose record is too large for any owner."""
        _log.error("a record was more than the log takes", shard=self.number, why=str(error), narrowed=self._is_narrow)
        if self.tenure != tenure or not self.holds_token:
            return True
        if not self._is_narrow:
            self._is_narrow = True
            self.core.own(self._token, self._now())
            self.inbox.give_back()
            return True
        proposed = self.core.propose_refusal(self._now(), arrivals, f"deciding it takes more than one record: {error}")
        if proposed is None:
            raise error
        self._is_narrow = False
        await self._append(proposed, arrivals, tenure)
        return True

    async def _send_aside(self, proposed: ProposedBatch) -> None:
        """Forward commands, and try to write dead letters, before the record whose cursors pass them."""
        journal = self._services.log.journal
        await forwarding.forward(journal, self._topics, self.number, proposed.forward)
        await self._dead_letters.bury(journal, proposed.dead_letters)

    def _settle(self, proposed: ProposedBatch) -> None:
        """Apply the effects of a record that is in the log and valid (R6)."""
        self.core.commit(proposed)
        if proposed.taken:
            self._decided_at = monotonic()
        self.inbox.settle(len(proposed.taken))
        self.delivery.resume()
        self._start_effects(is_news=True)
        self._count(proposed)
        if self._services.snapshots is not None:
            self._services.snapshots.batch_appended(self.fold, len(proposed.payload), self._anchor_snapshot)

    def _anchor_snapshot(self, snapshot_digest: bytes) -> None:
        """Record in the log that a snapshot may be used."""
        self.core.anchor_snapshot(snapshot_digest)
        self.wake()

    def _start_effects(self, *, is_news: bool = False) -> None:
        """Start the due effects; also called without any, because an idle cluster may need an observation."""
        if not self.holds_token:
            return
        effects = self.core.effects(self._now())
        if effects or is_news:
            self._services.clusters.start(self.core, effects, self.wake)

    def _count(self, proposed: ProposedBatch) -> None:
        metrics, topics = self._services.metrics, self._topics.commands
        for arrival, _ in proposed.forward:
            metrics.forwarded(topics[arrival.topic_index])
        for arrival, _ in proposed.dead_letters:
            metrics.dead_lettered(topics[arrival.topic_index])
        metrics.inbox_size(self.number, self.inbox.count)

    def _requeue(self, arrivals: tuple[Arrival, ...]) -> None:
        """Put the commands of a fenced batch back; those that another owner has decided are dropped later."""
        _log.warning("a batch was fenced", shard=self.number, commands=len(arrivals), owner=self.fold.owner)
        self._services.metrics.batch_fenced(self.number)
        self.inbox.give_back()
        self._disown()

    async def _regain(self) -> bool:
        """Yield a shard that another worker acquired to a newer generation of the group, else take it back (R1)."""
        self._disown()
        if self.is_damaged:
            return False
        self.unowned_since = self.unowned_since or monotonic()
        self._warn_of_duplicate_instance()
        tenure = self.tenure
        await asyncio.sleep(self._ownership_conflict.pause_s(monotonic()))
        if self.tenure != tenure or self._closing:
            return False
        generation = self._services.source().generation
        if self.fold.group == self._group and self.fold.generation > generation:
            _log.warning("a shard is yielded to a newer generation", shard=self.number, owner=self.fold.owner)
            self.assigned = False
            self.delivery.reset(self.next_offsets)
            self.unowned_since = monotonic()
            return False
        self._warn_of_competing_owner()
        if not await self.acquire():
            return False
        self._own()
        return True

    def _warn_of_duplicate_instance(self) -> None:
        """Warn of another process with our `instance_id`: the group confuses the two, and each ends the other."""
        instance_id = self._services.settings.worker.instance_id
        is_same_round = self.fold.generation == self._services.source().generation
        if instance_id is not None and self.fold.group == self._group and is_same_round:
            _log.error(
                "another worker has the same worker.instance_id: they take the shards from each other for ever; "
                "give each worker its own, or none",
                instance_id=instance_id,
                shard=self.number,
                other=self.fold.owner,
            )

    def _warn_of_competing_owner(self) -> None:
        other = self.fold.group
        # An administrator who resumes a damaged shard is in no group.
        is_competing = bool(other) and other != self._group
        hint = {"hint": ownership_conflict_in_words({self._group, other}, "this shard")} if is_competing else {}
        _log.warning("a shard is acquired again", shard=self.number, taken_by=self.fold.owner, of_group=other, **hint)

    def _own(self) -> None:
        if self.fold.token != self._token:
            # Another worker has taken the shard since `acquire`: the loop will notice.
            return
        self.unowned_since = None
        self.core.own(self._token, self._now())
        self._services.clusters.own(self.core, self.wake)

    def _disown(self) -> None:
        if self.core.owned:
            self.core.disown()
            self._services.clusters.disown(self.core)
