"""Which records of the log count, in plain Python with msgpack: R1, R2, the chain, and R9 after damage."""

import hashlib
from collections import defaultdict
from typing import Any

import msgpack

from tests.spark.kafka_rows import Stored

UNREADABLE = "unreadable"


class Validity:
    """Feed it every record of the log, each shard's in its order."""

    def __init__(self) -> None:
        self.owners: dict[int, tuple[int, bytes]] = defaultdict(lambda: (0, b""))
        self.chains: dict[int, tuple[int, bytes]] = defaultdict(lambda: (0, b""))
        self.damaged: dict[int, int] = {}

    def judge(self, stored: Stored) -> tuple[str, dict[str, Any]]:
        """Say what became of a record, in the words of the table `takeovers`, and what it holds."""
        shard, value = stored.partition, stored.value or b""
        _, token = self.owners[shard]
        try:
            record = msgpack.unpackb(value)
            assert record["kind"] in {"genesis", "acquire", "batch"}
        except (AssertionError, ValueError, TypeError, msgpack.UnpackException):
            if token and token in value:
                self.damaged.setdefault(shard, stored.offset)
            return UNREADABLE, {}
        if record["kind"] == "acquire":
            return self._acquire(shard, record), record
        if record["kind"] == "genesis":
            return "void_records" if token else "genesis", record
        return self._batch(stored, record, value), record

    def _acquire(self, shard: int, record: dict[str, Any]) -> str:
        epoch, _ = self.owners[shard]
        is_ours = record.get("resumes_after") == self.damaged.get(shard)
        if record["epoch"] == epoch + 1 and is_ours:
            self.owners[shard] = (record["epoch"], record["token"])
            self.damaged.pop(shard, None)
            return "takeovers"
        return "void_records" if shard in self.damaged else "lost_acquires"

    def _batch(self, stored: Stored, record: dict[str, Any], value: bytes) -> str:
        shard = stored.partition
        if shard in self.damaged:
            return "void_records"
        if record["token"] != self.owners[shard][1]:
            return "fenced_batches"
        sequence, chain = self.chains[shard]
        if (record["sequence"], record["previous_hash"]) != (sequence + 1, chain):
            self.damaged[shard] = stored.offset
            return UNREADABLE
        self.chains[shard] = (record["sequence"], hashlib.blake2b(value, digest_size=16).digest())
        return "batches"
