"""Logs as the simulation writes them: commands of every kind, takeovers, fenced batches, trouble in between."""

from functools import cache
from random import Random

from msgspec.structs import replace

from tests.simulation.actions import perform
from tests.simulation.generate import Generator
from tests.simulation.settings import drawn
from tests.simulation.world import World

MOST_STEPS = 8000


@cache
def random_log(seed: int, records: int) -> tuple[bytes, ...]:
    """Return the only shard's log of a seed, once it has at least that many records."""
    random = Random(seed)
    settings = replace(drawn(random), shards=1)
    world = World(settings)
    generator = Generator(random, settings)
    with world.inside():
        for _ in range(MOST_STEPS):
            if len(world.log.shards[0]) >= records:
                break
            perform(world, generator.next(world))
    (log,) = world.log.shards
    assert len(log) >= records, f"seed {seed} writes only {len(log)} records"
    return tuple(log)
