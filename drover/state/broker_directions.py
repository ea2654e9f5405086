"""The directions of brokers that a step weighs on: each copy leaves its leader and enters the broker that is added.

Kafka sends and receives apart (KIP-73 has a throttle for each), so copies in and copies out are counted apart.
"""

from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar


class BrokerDirection(NamedTuple):
    """One way into or out of a broker."""

    broker: int
    way: Literal["in", "out"]


# One entry per copy: a direction may be there several times.
BrokerDirections = tuple[BrokerDirection, ...]
Taken = TypeVar("Taken")


# Asked for at every event of a partition; a cluster has few different pairs of lists.
@lru_cache(maxsize=4096)
def directions_of(adding: tuple[int, ...], leader: int | None) -> BrokerDirections:
    """Return what copies to `adding` take: each broker's way in, and the leader's way out once per copy."""
    ways_in = tuple(BrokerDirection(broker, "in") for broker in adding)
    return ways_in if leader is None else (BrokerDirection(leader, "out"),) * len(adding) + ways_in


def without(needed: tuple[Taken, ...], taken: tuple[Taken, ...]) -> tuple[Taken, ...]:
    """Return what is needed and not taken yet, each as often as it is lacking."""
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
