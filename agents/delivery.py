"""The commands that Faust delivers to one shard: in offset order, without gaps, and with backpressure."""

import asyncio
from collections import deque
from collections.abc import Callable

from drover.agents.ports import CommandSource
from drover.errors import DroverError
from drover.events.topics import TopicNames
from drover.journal.folded_log import FoldedLog
from drover.shard.inbox import Inbox
from drover.shard.messages import Arrival


class Delivery:
    """Fills a shard's inbox, and pauses fetching while it is full.

    When offsets are skipped, a direct read must show that the topic has no record there (an aborted transaction leaves
    such a gap); until then, later records wait. `wake` is called when the inbox has accepted a command, and `fail`,
    which ends the worker, when a record is missing or the gap cannot be read.
    """

    def __init__(
        self,
        shard: int,
        inbox: Inbox,
        topics: TopicNames,
        log: FoldedLog,
        source: Callable[[], CommandSource],
        wake: Callable[[], None],
        fail: Callable[[str, BaseException | None], object],
    ) -> None:
        self._shard = shard
        self._inbox = inbox
        self._topics = topics.commands
        self._log = log
        self._source = source
        self._wake = wake
        self._fail = fail
        # Topics, by index, whose fetching is paused.
        self._paused: set[int] = set()
        self._behind_gap: dict[int, deque[Arrival]] = {}
        self._resets = 0
        self._proofs: set[asyncio.Task[None]] = set()

    def reset(self, next_offsets: tuple[int, ...]) -> None:
        """Drop everything that has arrived; the consumer was set to these offsets, which come next."""
        self._inbox.reset(next_offsets)
        self._resets += 1
        self._paused.clear()
        self._behind_gap.clear()

    def arrive(self, arrival: Arrival) -> None:
        """Queue a command; never waits."""
        index = arrival.topic_index
        waiting = self._behind_gap.get(index)
        if waiting is not None:
            waiting.append(arrival)
        elif arrival.offset > self._inbox.expected(index):
            self._behind_gap[index] = deque((arrival,))
            self._hold(index)
            # A reset may come before the task begins.
            proof = asyncio.create_task(self._prove_gap(index, arrival.offset, self._resets))
            self._proofs.add(proof)
            proof.add_done_callback(self._proven)
        elif self._inbox.add(arrival):
            self._wake()
            if self._inbox.is_high:
                self._hold(index)

    def resume(self) -> None:
        """Resume fetching once half of a full inbox is decided; idempotent."""
        if self._inbox.is_low:
            self._release()

    def _hold(self, index: int) -> None:
        # Repeated at every arrival above the mark, because Faust forgets pauses with each rebalance.
        self._paused.add(index)
        self._source().hold(index, self._shard)

    def _release(self) -> None:
        for index in [index for index in self._paused if index not in self._behind_gap]:
            self._paused.discard(index)
            self._source().release(index, self._shard)

    async def _prove_gap(self, index: int, offset: int, resets: int) -> None:
        if self._resets != resets:
            return
        topic, expected = self._topics[index], self._inbox.expected(index)
        try:
            first = await self._log.journal.first_offset(topic, self._shard, expected)
        except DroverError as error:
            # The gap belongs to another worker by now, or is read again.
            if self._resets == resets:
                self._fail(f"{topic}/{self._shard}: offsets from {expected} to {offset} could not be read", error)
            return
        if self._resets != resets:
            return
        if first != offset:
            self._fail(f"{topic}/{self._shard}: offset {first} did not arrive, {offset} did", None)
            return
        self._inbox.skip_to(index, offset)
        waiting = self._behind_gap.pop(index)
        if not self._inbox.is_high:
            self._release()
        for arrival in waiting:
            self.arrive(arrival)

    def _proven(self, proof: asyncio.Task[None]) -> None:
        self._proofs.discard(proof)
        error = None if proof.cancelled() else proof.exception()
        if error is not None:
            self._fail(f"proving a gap in the commands of shard {self._shard} failed", error)
