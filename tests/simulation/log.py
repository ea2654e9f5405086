"""The Kafka of the log, in memory: the event log's shards, the command topics, the dead letters."""

from collections.abc import Callable
from dataclasses import dataclass

from drover.events.codec import Malformed, decode_command, encode_record
from drover.events.commands import AnyCommand
from drover.events.records import SCHEMA_VERSION, Genesis
from drover.events.topics import COMMAND_KINDS

Listener = Callable[[int, int, bytes], None]


@dataclass(frozen=True, slots=True)
class StoredCommand:
    """One record of a command topic."""

    payload: bytes
    command: AnyCommand | Malformed
    timestamp_ms: int
    forwarded: bool


class EventLog:
    """One list of records per shard; `listener` hears of each record that became durable."""

    def __init__(self, shards: int) -> None:
        self.shards: tuple[list[bytes], ...] = tuple([] for _ in range(shards))
        self.listener: Listener | None = None

    def begin(self) -> None:
        """Write the first record of every shard."""
        for shard in range(len(self.shards)):
            self.append(shard, encode_record(Genesis(schema=SCHEMA_VERSION, shards=len(self.shards), shard=shard)))

    def append(self, shard: int, payload: bytes) -> int:
        """Make a record durable and return its offset."""
        records = self.shards[shard]
        records.append(payload)
        if self.listener is not None:
            self.listener(shard, len(records) - 1, payload)
        return len(records) - 1


class CommandTopics:
    """The four command topics, each with as many partitions as the log has shards, and the dead letters."""

    def __init__(self, shards: int) -> None:
        self._stored: tuple[tuple[list[StoredCommand], ...], ...] = tuple(
            tuple([] for _ in range(shards)) for _ in COMMAND_KINDS
        )
        self.dead_letters: list[tuple[int, int, int]] = []

    def put(self, topic_index: int, partition: int, payload: bytes, now_ms: int, *, forwarded: bool = False) -> int:
        """Append a command and return its offset."""
        stored = self._stored[topic_index][partition]
        stored.append(StoredCommand(payload, decode_command(payload), now_ms, forwarded))
        return len(stored) - 1

    def read(self, topic_index: int, partition: int) -> list[StoredCommand]:
        """Return everything that stands in a partition."""
        return self._stored[topic_index][partition]

    def ends(self, partition: int) -> tuple[int, ...]:
        """Return the end offset of one partition of every topic."""
        return tuple(len(topic[partition]) for topic in self._stored)
