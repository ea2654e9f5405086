"""Clients that write whatever occurs to them: moves, cancels, rubbish, the same twice, in the wrong partition."""

import random
from typing import Any

from drover.events.codec import encode_command
from drover.events.commands import (
    Alter,
    AnyCommand,
    Cancel,
    ChangeLimits,
    Freeze,
    PartitionName,
    PartitionTarget,
    Unfreeze,
)
from drover.events.topics import shard_of
from drover.testing.memory_journal import MemoryBroker, StoredRecord
from tests.runtime.slow_connections import BROKERS, PARTITIONS, RATE, TOPICS
from tests.runtime.world import CLUSTERS, SHARDS

ALTER, CANCEL = 0, 1


class Clients:
    """Write commands by chance; `sent` are those that can be read, each once or more often."""

    def __init__(self, broker: MemoryBroker, chance: random.Random) -> None:
        self.sent: list[tuple[int, AnyCommand]] = []
        self._broker = broker
        self._chance = chance

    def write_one(self, number: int) -> None:
        """Write one record, or the end of a transaction."""
        kind = self._chance.random()
        if kind < 0.05:
            self._write(self._chance.randrange(4), self._chance.randrange(SHARDS), StoredRecord(b"no command"))
        elif kind < 0.2:
            self._write(self._chance.randrange(2), self._chance.randrange(SHARDS), None)
        elif kind < 0.25 and self.sent:
            self._send(*self._chance.choice(self.sent))
        else:
            self._send(*self._command(f"c{number}"))

    def unfreeze(self, cluster: str) -> None:
        """Let the cluster go on, whoever froze it."""
        command = Unfreeze(id=f"last-{cluster}", cluster=cluster, by="ana", reason="the end", all=True)
        self._send(CANCEL, command, is_in_place=True)

    def _send(self, index: int, command: AnyCommand, *, is_in_place: bool = False) -> None:
        self.sent.append((index, command))
        right = shard_of(command.cluster, SHARDS)
        is_misplaced = not is_in_place and self._chance.random() < 0.1
        self._write(index, SHARDS - 1 - right if is_misplaced else right, StoredRecord(encode_command(command)))

    def _write(self, index: int, shard: int, record: StoredRecord | None) -> None:
        self._broker.put(self._broker.topics.commands[index], shard, record)

    def _command(self, identity: str) -> tuple[int, AnyCommand]:
        common: dict[str, Any] = {
            "id": identity,
            "cluster": self._chance.choice(sorted(CLUSTERS)),
            "by": self._chance.choice(("ana", "ben")),
            "reason": "test",
        }
        kind = self._chance.random()
        if kind < 0.5:
            return ALTER, self._alter(common)
        if kind < 0.65:
            name = PartitionName(topic=self._chance.choice(TOPICS), partition=self._chance.randrange(PARTITIONS))
            return CANCEL, Cancel(**common, mode=self._chance.choice(("rollback", "stop")), partitions=(name,))
        if kind < 0.75:
            return CANCEL, Cancel(**common, mode="rollback", all=True)
        if kind < 0.85:
            return CANCEL, Freeze(**common)
        if kind < 0.95:
            return CANCEL, Unfreeze(**common, all=self._chance.random() < 0.5)
        return ALTER, ChangeLimits(**common, values={"max_partitions_in_flight": self._chance.randint(1, 5)})

    def _alter(self, common: dict[str, Any]) -> Alter:
        everything = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
        targets = tuple(
            PartitionTarget(topic=topic, partition=partition, replicas=tuple(self._chance.sample(BROKERS, 3)))
            for topic, partition in self._chance.sample(everything, self._chance.randint(1, 4))
        )
        return Alter(**common, partitions=targets, throttle_bytes_per_second=self._chance.choice((None, RATE)))
