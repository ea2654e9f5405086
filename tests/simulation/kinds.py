"""One kind of thing that can happen: how its arguments are drawn, and how it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.simulation.worker import Shard, Worker
from tests.simulation.world import World

Arguments = tuple[Any, ...]
Choose = Callable[[Random, World], Arguments | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One line of the table; `group` names the rate in `Settings.rates` that scales `weight`."""

    name: str
    group: str
    weight: int
    choose: Choose
    act: Callable[..., None]


def a_cluster(random: Random, world: World) -> str:
    return random.choice(world.settings.names)


def a_broker(random: Random, world: World) -> int:
    return random.randint(1, world.settings.brokers)


def a_worker(world: World, number: int) -> Worker | None:
    """Find a worker by a number that is counted round, so that it always names one."""
    return world.workers[number % len(world.workers)] if world.workers else None


def a_shard(world: World, worker: int, shard: int) -> Shard | None:
    """Find a shard of a worker that runs."""
    found = a_worker(world, worker)
    return None if found is None or found.paused else found.shards[shard % world.settings.shards]
