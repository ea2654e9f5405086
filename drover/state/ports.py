"""The ports of brokers that a step weighs on: each copy leaves its leader and enters the broker that is added.

Kafka sends and receives apart (KIP-73 has a throttle for each), so copies in and copies out are counted apart.
"""

from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar


class Port(NamedTuple):
    """One way into or out of a broker."""

    broker: int
    way: Literal["in", "out"]


# One entry per copy: a port may be there several times.
Ports = tuple[Port, ...]
Taken = TypeVar("Taken")


# Asked for at every event of a partition; a cluster has few different pairs of lists.
@lru_cache(maxsize=4096)
def ports_of(adding: tuple[int, ...], leader: int | None) -> Ports:
    """Return the ports that copies to `adding` take: each broker's way in, and the leader's way out once per copy."""
    ways_in = tuple(Port(broker, "in") for broker in adding)
    return ways_in if leader is None else (Port(leader, "out"),) * len(adding) + ways_in


def without(needed: tuple[Taken, ...], held: tuple[Taken, ...]) -> tuple[Taken, ...]:
    """Return what is needed and not held yet, each as often as it is lacking."""
    if not held:
        return needed
    left = list(held)
    lacking = []
    for one in needed:
        if one in left:
            left.remove(one)
        else:
            lacking.append(one)
    return tuple(lacking)
