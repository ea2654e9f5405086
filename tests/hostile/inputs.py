"""What clients may send, by chance from a seed: nonsense, excess, and much honest work."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from drover.events.codec import CONTENT_TYPE_HEADER, encode_command, encode_record
from drover.events.commands import Alter, Cancel, Command, PartitionTarget
from drover.events.records import SCHEMA_VERSION, Acquire, Batch, Cursor, Genesis
from drover.shard.messages import FORWARDED_HEADER
from tests.runtime.world import SHARDS, cluster_in

TOPICS, PARTITIONS = 8, 500
ALTER, CANCEL, BLACKLIST, BROKER_FAILED, EVENTS = range(5)
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sent:
    """One record on its way into a topic: a command topic by its index, or the log."""

    topic_index: int
    shard: int
    payload: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


class Inputs:
    """Draws what is sent next."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._number = 0
        self._ids: list[str] = []

    def next(self) -> list[Sent]:
        """Return what one client sends at once."""
        makers: tuple[Callable[[], list[Sent]], ...] = (
            *(self._alter, self._large_alter, self._cancel, self._emergency_stop, self._freezing, self._queue),
            *(self._blacklist, self._brokers, self._flood, self._again),
            *(self._nonsense, self._long_texts, self._odd_fields, self._misplaced, self._to_the_log),
        )
        return self._random.choice(makers)()

    # -- honest

    def _envelope(self, shard: int, **more: Any) -> dict[str, Any]:
        self._number += 1
        id_ = f"c{self._number}"
        self._ids.append(id_)
        by = self._random.choice(("ann", "bob", "watchdog"))
        return {"id": id_, "cluster": cluster_in(shard), "by": by, "reason": "drain broker 1", **more}

    def _shard(self) -> int:
        return self._random.randrange(SHARDS)

    def _targets(self, count: int) -> tuple[PartitionTarget, ...]:
        numbers = self._random.sample(range(TOPICS * PARTITIONS), count)
        replicas = tuple(self._random.sample(range(1, 7), 3))
        return tuple(
            PartitionTarget(topic=f"orders-{number % TOPICS}", partition=number // TOPICS, replicas=replicas)
            for number in numbers
        )

    def _of(self, command: Command, topic_index: int, shard: int) -> list[Sent]:
        as_json = self._random.random() < 0.5
        return [Sent(topic_index, shard, encode_command(command, as_json=as_json))]

    def _alter(self, **more: Any) -> list[Sent]:
        shard = self._shard()
        targets = self._targets(self._random.randint(1, 50))
        throttle = self._random.choice((None, 1000, 10**9))
        command = Alter(**self._envelope(shard), partitions=targets, throttle_bytes_per_second=throttle, **more)
        return self._of(command, ALTER, shard)

    def _large_alter(self) -> list[Sent]:
        shard = self._shard()
        targets = self._targets(TOPICS * PARTITIONS - 1)
        if self._random.random() < 0.3:
            # A megabyte of partitions that there are not.
            targets = tuple(PartitionTarget(topic="t" * 200, partition=number, replicas=(1,)) for number in range(4000))
        return self._of(Alter(**self._envelope(shard), partitions=targets), ALTER, shard)

    def _queue(self) -> list[Sent]:
        return self._alter(queue=True)

    def _cancel(self) -> list[Sent]:
        shard = self._shard()
        scope: dict[str, Any] = self._random.choice(
            ({"topics": ("orders-1", "nothing")}, {"plan": self._some_id()}, {"queued": self._some_id()})
        )
        command = Cancel(**self._envelope(shard), mode=self._random.choice(("rollback", "stop")), **scope)
        return self._of(command, CANCEL, shard)

    def _emergency_stop(self) -> list[Sent]:
        shard = self._shard()
        return self._of(Cancel(**self._envelope(shard), mode="rollback", all=True), CANCEL, shard)

    def _freezing(self) -> list[Sent]:
        shard = self._shard()
        kind = self._random.choice(("freeze", "unfreeze", "repair"))
        return [Sent(CANCEL, shard, json.dumps({**self._envelope(shard), "type": kind}).encode())]

    def _blacklist(self) -> list[Sent]:
        shard = self._shard()
        count = self._random.choice((0, 3, 10_000, 10_001, 200_000))
        document = {**self._envelope(shard), "type": "blacklist", "brokers": list(range(count))}
        return [Sent(BLACKLIST, shard, msgspec.msgpack.encode(document))]

    def _brokers(self) -> list[Sent]:
        shard = self._shard()
        kind = self._random.choice(("broker-failed", "broker-returned"))
        broker = self._random.choice((1, 2**31 - 1, 2**31))
        document = {**self._envelope(shard), "type": kind, "broker": broker, "at_ms": self._random.choice((0, 2**53))}
        return [Sent(BROKER_FAILED, shard, msgspec.msgpack.encode(document))]

    def _flood(self) -> list[Sent]:
        return [sent for _ in range(self._random.randint(100, 1500)) for sent in self._freezing()]

    def _again(self) -> list[Sent]:
        """The same id for another command, and the same command twice."""
        first = self._alter()
        shard = first[0].shard
        other = json.dumps({**self._envelope(shard), "id": self._some_id(), "type": "freeze"}).encode()
        return [*first, *first, Sent(CANCEL, shard, other)]

    def _some_id(self) -> str:
        return self._random.choice(self._ids) if self._ids else "none"

    # -- nonsense

    def _nonsense(self) -> list[Sent]:
        random, shard = self._random, self._shard()
        payloads: tuple[Callable[[], bytes], ...] = (
            lambda: b"",
            lambda: random.randbytes(random.randint(1, 2000)),
            lambda: random.randbytes(MEGABYTE + 1),
            lambda: b"[" * 100_000,
            lambda: b"\x91" * 500_000,
            lambda: b'{"type":' * 10_000,
            lambda: b'{"id":"a","cluster":"c0","type":"' + b"x" * 1_000_000 + b'"}',
            lambda: b'{"id":"\\ud800","cluster":"c0"}',
            lambda: b"\xef\xbb\xbf{}",
            lambda: encode_command(Cancel(**self._envelope(shard), mode="stop", all=True))[:-1],
        )
        headers = random.choice(((), ((CONTENT_TYPE_HEADER, b"application/json"),), ((CONTENT_TYPE_HEADER, b"\xff"),)))
        count = random.choice((1, 1, 1, 2500))
        payload = random.choice(payloads)()
        return [Sent(random.randrange(4), shard, payload if count == 1 else b"\xc1", headers) for _ in range(count)]

    def _long_texts(self) -> list[Sent]:
        shard = self._shard()
        changed = self._random.choice(
            (
                {"reason": "r" * 900_000},
                {"by": "\x1b[2J" * 200_000},
                {"by": "b" * 257},
                {"reason": "\u202e"},
                {"reason": " "},
                {"after": [f"a{number}" for number in range(50_000)]},
                {"id": "i" * 500_000},
                {"cluster": "c" * 500_000},
                {"plan": "p" * 500_000},
            )
        )
        document = {**self._envelope(shard), "type": "cancel", "mode": "rollback", "all": True, **changed}
        return [Sent(CANCEL, shard, json.dumps(document).encode())]

    def _odd_fields(self) -> list[Sent]:
        shard = self._shard()
        target: Mapping[str, Any] = self._random.choice(
            (
                {"topic": "t\n" * 100, "partition": 0, "replicas": [1]},
                {"topic": "orders-1", "partition": 2**31 - 1, "replicas": [-1]},
                {"topic": "orders-1", "partition": 0, "replicas": list(range(100_000))},
                {"topic": "orders-1", "partition": 0, "replicas": list(range(256)), "original_replicas": [2**31 - 1]},
                {"topic": "orders-1", "partition": 0, "replicas": None},
                {"topic": "drover.events", "partition": 0, "replicas": [1, 2, 3]},
            )
        )
        document = {**self._envelope(shard), "type": "alter", "partitions": [target]}
        return [Sent(ALTER, shard, json.dumps(document).encode())]

    def _misplaced(self) -> list[Sent]:
        """Another shard's command, a cluster that is not configured, another topic's command, forwarded ones."""
        random, shard = self._random, self._shard()
        stranger = random.choice((cluster_in(1 - shard), f"stranger-{random.randrange(10**9)}"))
        document = {**self._envelope(shard), "cluster": stranger, "type": "freeze"}
        headers = random.choice(((), ((FORWARDED_HEADER, b"0:0"),)))
        return [Sent(random.randrange(4), shard, json.dumps(document).encode(), headers)]

    # -- straight into the log

    def _to_the_log(self) -> list[Sent]:
        random, shard = self._random, self._shard()
        envelope: dict[str, Any] = {"schema": SCHEMA_VERSION, "epoch": random.randrange(5), "token": b"another"}
        payloads = (
            b"\x00\x01random",
            random.randbytes(500),
            encode_record(Genesis(schema=SCHEMA_VERSION, shards=77, shard=shard)),
            encode_record(Acquire(**envelope, owner="thief", group="other", generation=random.randrange(9))),
            encode_record(
                Batch(**envelope, sequence=1, at_ms=2**52, cursors=(Cursor("id-0", 7),) * 4, previous_hash=b"")
            ),
            msgspec.msgpack.encode({"kind": "batch", "schema": 99, "token": b"another"}),
        )
        return [Sent(EVENTS, shard, random.choice(payloads))]
