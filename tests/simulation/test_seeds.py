"""Many seeds: whatever people, workers, brokers, networks and others do, every promise holds, and all comes to rest."""

import pytest

from tests.simulation.mutate import MAX_SEEDS, STEPS
from tests.simulation.soak import Tally, again, in_parallel

FIRST_SEEDS = 60


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("first", "seeds", "least_heal_chunks"),
    [
        pytest.param(0, FIRST_SEEDS, 6, id="first"),
        pytest.param(FIRST_SEEDS, MAX_SEEDS - FIRST_SEEDS, 24, id="rest", marks=pytest.mark.story),
    ],
)
def test_every_promise_holds_in_every_seed(first: int, seeds: int, least_heal_chunks: int) -> None:
    """As many seeds as a deliberate fault may take to be found: a volume, so that a slow machine checks no less.

    Promises about heals say little unless heals happen.
    """
    total = Tally()
    for tally in in_parallel(first, seeds, STEPS, seconds=0.0):
        total.add(tally)
    failures = [f"seed {seed}: {failure}\n  {again(seed, STEPS)}" for seed, failure in sorted(total.failures.items())]
    assert not failures, "\n".join(failures[:5])
    assert total.seeds == seeds
    assert total.steps >= seeds * STEPS
    assert total.heal_chunks >= least_heal_chunks
