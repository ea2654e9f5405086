"""Many seeds: whatever people, workers, brokers, networks and others do, every promise holds, and all comes to rest."""

import pytest

from tests.simulation.mutate import MAX_SEEDS, STEPS
from tests.simulation.soak import Tally, again, in_parallel

# Promises about heals say little unless heals happen.
MIN_HEAL_CHUNKS = 30


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_promise_holds_in_every_seed() -> None:
    """As many seeds as a deliberate fault may take to be found: a volume, so that a slow machine checks no less."""
    total = Tally()
    for tally in in_parallel(0, MAX_SEEDS, STEPS, seconds=0.0):
        total.add(tally)
    told = [f"seed {seed}: {failure}\n  {again(seed, STEPS)}" for seed, failure in sorted(total.failures.items())]
    assert not told, "\n".join(told[:5])
    assert total.seeds == MAX_SEEDS
    assert total.steps >= MAX_SEEDS * STEPS
    assert total.heal_chunks >= MIN_HEAL_CHUNKS
