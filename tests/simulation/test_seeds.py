"""Many seeds: whatever people, workers, brokers, networks and others do, every promise holds, and all comes to rest."""

import pytest

from tests.simulation.soak import Tally, again, in_parallel

SEEDS = 200
STEPS = 500
SECONDS = 75.0


@pytest.mark.timeout(600)
def test_every_promise_holds_in_every_seed() -> None:
    total = Tally()
    for tally in in_parallel(0, SEEDS, STEPS, SECONDS):
        total.add(tally)
    told = [f"seed {seed}: {failure}\n  {again(seed, STEPS)}" for seed, failure in sorted(total.failures.items())]
    assert not told, "\n".join(told[:5])
    assert total.seeds >= SEEDS
    assert total.steps >= SEEDS * STEPS
