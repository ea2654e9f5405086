"""The records of the traffic, and whether what Kafka holds is what was acknowledged; pure.

A record's whole content follows from its place and number, so that any reader can tell whether it was changed.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition

DIGEST_BYTES = 16

# What was read: offset and content, in the order in which it was read.
Stored = Sequence[tuple[int, bytes]]


def content(seed: int, key: TopicPartition, number: int, size: int) -> bytes:
    """Make the record of this number: a readable head, a checksum of it, and filling made from both."""
    head = f"{seed} {key.topic} {key.partition} {number} {size} ".encode()
    return head + hashlib.shake_128(head).digest(max(DIGEST_BYTES, size - len(head)))


def number_of(seed: int, key: TopicPartition, value: bytes) -> int | None:
    """Return a record's number if it is whole and stands where it belongs."""
    try:
        *_, number, size = (int(word) if word.isdigit() else word for word in value.split(b" ", 5)[:5])
    except ValueError:
        return None
    if not isinstance(number, int) or not isinstance(size, int):
        return None
    return number if content(seed, key, number, size) == value else None


@dataclass
class Ledger:
    """What became of the records of one partition: `acknowledged` by number with the offset, `unknown` all others.

    A broker that has a record already may acknowledge it again without its offset, which is then None.
    """

    acknowledged: dict[int, int | None] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)


def judge(seed: int, ledgers: Mapping[TopicPartition, Ledger], stored: Mapping[TopicPartition, Stored]) -> list[str]:
    """Return what is wrong with the records that were read, one line each; none if nothing is."""
    return [
        f"{key}: {fault}"
        for key, ledger in ledgers.items()
        for fault in _judge_partition(seed, key, ledger, stored.get(key, ()))
    ]


def _judge_partition(seed: int, key: TopicPartition, ledger: Ledger, stored: Stored) -> list[str]:
    faults: list[str] = []
    places: dict[int, int] = {}
    expected = stored[0][0] if stored else 0
    for offset, value in stored:
        if offset != expected:
            faults.append(f"offset {offset} was read where {expected} comes next")
        expected = offset + 1
        number = number_of(seed, key, value)
        if number is None:
            faults.append(f"the record at {offset} is none of ours, or was changed")
        elif number in places:
            faults.append(f"record {number} is at {places[number]} and again at {offset}")
        else:
            places[number] = offset
    for number, acknowledged in ledger.acknowledged.items():
        if number not in places or acknowledged not in {None, places[number]}:
            faults.append(
                f"record {number} was acknowledged at {acknowledged} and is at {places.get(number, 'no offset')}"
            )
    never = places.keys() - ledger.acknowledged.keys() - ledger.unknown
    faults += [f"record {number} was never sent" for number in sorted(never)]
    # Idempotence keeps the order of what one producer sent; what was given up on may stand anywhere.
    offsets = [places[number] for number in sorted(ledger.acknowledged) if number in places]
    faults += [
        f"the order is not that of sending: offset {later} after {earlier}"
        for earlier, later in itertools.pairwise(offsets)
        if later <= earlier
    ]
    return faults


def count(ledgers: Mapping[TopicPartition, Ledger]) -> Counter[str]:
    """Count what was acknowledged and what is unknown."""
    return Counter(
        acknowledged=sum(len(ledger.acknowledged) for ledger in ledgers.values()),
        unknown=sum(len(ledger.unknown) for ledger in ledgers.values()),
    )
