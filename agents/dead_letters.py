"""Records that are not commands, kept for people; with Connect's header names, so that existing tools show them.

They are a help, and never the truth: the record stays in its command topic. One that cannot be written is logged with
its place there, and the shard goes on.
"""

import asyncio
import math
from collections.abc import Sequence

import structlog

from drover.agents.clock import monotonic
from drover.errors import DroverError
from drover.events.bounds import shortened
from drover.events.codec import Malformed
from drover.events.topics import TopicNames
from drover.journal.port import Headers, Journal
from drover.service.metrics import Metrics
from drover.shard.messages import Arrival
from drover.time_limits import time_limit

MAX_PAYLOAD_BYTES = 64 * 1024
# The shard waits so long for their acknowledgements; after a failure it does not wait at all for a while, which is
# longer after each failure in a row: one slow second must not cost the dead letters of half a minute.
WRITE_TIMEOUT_S = 1.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
# So many are logged in a minute; the others are counted in one line a minute.
MOST_LOGGED = 10
LOGGED_EVERY_S = 60.0
_log = structlog.get_logger(__name__)


class DeadLetters:
    """Writes the dead letters of one shard."""

    def __init__(self, topics: TopicNames, shard: int, metrics: Metrics) -> None:
        self._topics = topics
        self._shard = shard
        self._metrics = metrics
        self._failures = 0
        self._paused_until_s = 0.0
        self._minute_began_s = -math.inf
        self._logged = 0
        self._unlogged = 0

    async def bury(self, journal: Journal, letters: Sequence[tuple[Arrival, str]]) -> None:
        """Produce each dead letter, its payload cut to 64 KiB, and return once all are acknowledged, or given up."""
        if not letters:
            return
        self._tell(letters)
        if self._failures and monotonic() < self._paused_until_s:
            self._give_up(letters, "the last ones could not be written")
            return
        try:
            async with time_limit(WRITE_TIMEOUT_S):
                await asyncio.gather(*(self._bury_one(journal, arrival, reason) for arrival, reason in letters))
        except (DroverError, TimeoutError) as error:
            self._paused_until_s = monotonic() + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._failures, 10))
            self._failures += 1
            self._give_up(letters, repr(error))
        else:
            self._failures = 0

    def _tell(self, letters: Sequence[tuple[Arrival, str]]) -> None:
        if monotonic() - self._minute_began_s >= LOGGED_EVERY_S:
            if self._unlogged:
                _log.warning("more records were not commands", partition=self._shard, records=self._unlogged)
            self._minute_began_s, self._logged, self._unlogged = monotonic(), 0, 0
        shown = letters[: MOST_LOGGED - self._logged]
        self._logged += len(shown)
        self._unlogged += len(letters) - len(shown)
        for arrival, reason in shown:
            _log.warning(
                "a record is not a command and went to the dead letters",
                topic=self._topics.commands[arrival.topic_index],
                partition=self._shard,
                offset=arrival.offset,
                id=arrival.command.id,
                cluster=arrival.command.cluster,
                reason=reason,
            )

    def _give_up(self, letters: Sequence[tuple[Arrival, str]], why: str) -> None:
        first, _ = letters[0]
        _log.error(
            "dead letters may be missing, the records remain in their topic",
            records=len(letters),
            first_topic=self._topics.commands[first.topic_index],
            partition=self._shard,
            first_offset=first.offset,
            why=shortened(why),
        )
        self._metrics.dead_letters_lost(self._shard, len(letters))

    async def _bury_one(self, journal: Journal, arrival: Arrival, reason: str) -> None:
        topic = self._topics.commands[arrival.topic_index]
        await journal.send(
            self._topics.dead_letters,
            arrival.payload[:MAX_PAYLOAD_BYTES],
            partition=0,
            headers=headers(topic, self._shard, arrival, reason),
        )


def headers(topic: str, partition: int, arrival: Arrival, reason: str) -> Headers:
    """Say where a dead letter came from, and why it is one, beside the headers that it had."""
    malformed = isinstance(arrival.command, Malformed)
    return (
        *arrival.headers,
        ("__connect.errors.topic", topic.encode()),
        ("__connect.errors.partition", str(partition).encode()),
        ("__connect.errors.offset", str(arrival.offset).encode()),
        ("__connect.errors.connector.name", b"drover"),
        ("__connect.errors.task.id", str(partition).encode()),
        ("__connect.errors.stage", b"VALUE_CONVERTER" if malformed else b"TASK_PUT"),
        ("__connect.errors.class.name", type(arrival.command).__qualname__.encode()),
        ("__connect.errors.exception.class.name", b"Malformed" if malformed else b"Misplaced"),
        ("__connect.errors.exception.message", shortened(reason).encode()),
    )
