"""The directions of brokers that a step loads: each copy leaves its leader and enters the added broker.

Copies in and copies out are counted separately, as KIP-73 has a throttle for each.
"""

from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar


class BrokerDirection(NamedTuple):
    """One way into or out of a broker."""

    broker: int
    way: Literal["in", "out"]


# One entry per copy: a direction may occur several times.
BrokerDirections = tuple[BrokerDirection, ...]
Taken = TypeVar("Taken")


# Cached, because it is needed at every event of a partition, and a cluster has few different pairs of lists.
@lru_cache(maxsize=4096)
def directions_of(adding: tuple[int, ...], leader: int | None) -> BrokerDirections:
    """Return the directions of copies to `adding`: in to each broker, and out of the leader once per copy."""
    ways_in = tuple(BrokerDirection(broker, "in") for broker in adding)
    return ways_in if leader is None else (BrokerDirection(leader, "out"),) * len(adding) + ways_in


def without(needed: tuple[Taken, ...], taken: tuple[Taken, ...]) -> tuple[Taken, ...]:
    """Return the needed entries that are not taken yet, each as often as it is lacking."""
    if not taken:
        return needed
    unused = list(taken)
    lacking = []
    for slot in needed:
        if slot in unused:
            unused.remove(slot)
        else:
            lacking.append(slot)
    return tuple(lacking)
