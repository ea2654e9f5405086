"""The names of Drover's own topics and the rule that sends a cluster to its shard."""

from dataclasses import dataclass
from functools import lru_cache

DEFAULT_PREFIX = "drover"
DEFAULT_SHARDS = 6

# The order is part of the log: `Batch.cursors` holds one cursor per command topic in this order.
COMMAND_KINDS = ("alter", "cancel", "blacklist", "broker-failed")


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Every topic of one Drover; the prefix lets several share one Kafka."""

    prefix: str = DEFAULT_PREFIX

    @property
    def commands(self) -> tuple[str, ...]:
        """The four command topics, in the order of `Batch.cursors`."""
        return _command_topics(self.prefix)

    @property
    def events(self) -> str:
        """The event log: the truth. One partition is one shard."""
        return f"{self.prefix}.events"

    @property
    def snapshots(self) -> str:
        """The snapshots of each shard's fold, which make a start faster; all of it can be derived from the log."""
        return f"{self.prefix}.snapshots"

    @property
    def progress(self) -> str:
        """Byte samples of moving partitions: telemetry, never folded."""
        return f"{self.prefix}.progress"

    @property
    def dead_letters(self) -> str:
        """The records of command topics that are not commands."""
        return f"{self.prefix}.dead-letters"

    @property
    def own(self) -> frozenset[str]:
        """Every topic of Drover's own."""
        return _own_topics(self)


# Cached, because these are needed with every command.
@lru_cache(maxsize=64)
def _command_topics(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{kind}" for kind in COMMAND_KINDS)


@lru_cache(maxsize=64)
def _own_topics(names: TopicNames) -> frozenset[str]:
    return frozenset({*names.commands, names.events, names.snapshots, names.progress, names.dead_letters})


def murmur2(data: bytes) -> int:
    """Hash `data` as the Java client's default partitioner does (32 bit MurmurHash2, seed 0x9747b28c)."""
    length = len(data)
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    value = (0x9747B28C ^ length) & mask
    whole = length - length % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = value * multiplier & mask ^ word
    if length % 4:
        value ^= int.from_bytes(data[whole:], "little")
        value = value * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


# Cached, because it is called twice per command with few names, and a hash takes an eighth of the time of a decision.
@lru_cache(maxsize=4096)
def shard_of(cluster: str, shards: int) -> int:
    """Return a cluster's shard: the partition that a Java producer picks with the cluster's name as record key."""
    return (murmur2(cluster.encode()) & 0x7FFFFFFF) % shards
