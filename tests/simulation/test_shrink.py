"""A planted fault is found, and its script becomes short enough to be read."""

from collections.abc import Callable
from statistics import median

import pytest

from drover.decide import cancellation
from drover.events.throttles import Rates
from drover.reconcile.moves import reconciler as reassignments
from drover.reconcile.throttles import reconciler as throttles
from drover.state.throttles import BrokerThrottle
from tests.simulation.run import Finished, run_script, run_seed
from tests.simulation.shrink import shrink

SEEDS = 400
STEPS = 200
MAX_MEDIAN = 30

Plant = Callable[[pytest.MonkeyPatch], None]


def _no_wait_after_a_takeover(patch: pytest.MonkeyPatch) -> None:
    for reconciler in (reassignments, throttles):
        patch.setattr(reconciler, "TAKEOVER_WAIT_MS", 0)


def _what_is_moving_is_dropped_by_a_cancel(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cancellation, "is_untouched", lambda _reassignment: True)


def _half_a_throttle_is_left(patch: pytest.MonkeyPatch) -> None:
    wanted = BrokerThrottle.wanted

    def half(self: BrokerThrottle, rate: int | None) -> Rates:
        found = wanted(self, rate)
        return found if rate is not None else Rates(found.leader, self.intended.follower)

    patch.setattr(BrokerThrottle, "wanted", half)


PLANTS: tuple[Plant, ...] = (
    _no_wait_after_a_takeover,
    _what_is_moving_is_dropped_by_a_cancel,
    _half_a_throttle_is_left,
)


def first_failure(steps: int = STEPS) -> Finished:
    found = next((run for seed in range(SEEDS) if (run := run_seed(seed, steps)).failure is not None), None)
    assert found is not None, "no seed notices the planted fault"
    return found


@pytest.mark.story
@pytest.mark.timeout(1200)
def test_a_planted_fault_is_shrunk_to_a_script_that_fails_alike() -> None:
    lengths = []
    for plant in PLANTS:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            found = first_failure()
            short = shrink(found.script)
            again = run_script(short)
            assert again.rule == found.rule
            lengths.append(len(short.actions))
        assert run_script(short).failure is None, "without the fault the same script is sound"
    assert median(lengths) <= MAX_MEDIAN, lengths


def test_a_script_that_fails_at_nothing_in_particular_shrinks_to_nothing() -> None:
    drawn = run_seed(0, 50)
    broken = lambda script: Finished(script, 0, 0, "", "AssertionError: always")  # noqa: E731 - one line says it
    assert shrink(drawn.script, broken).actions == ()
