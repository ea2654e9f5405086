"""A soak takes seeds that nobody has run."""

import os
import signal
from collections.abc import Generator, Iterator

import pytest
from msgspec import json

from tests.simulation import soak as soaking
from tests.simulation.soak import SEEDS_PER_SECOND, Summary, Tally, fresh_seed, soak


def test_a_later_soak_takes_seeds_above_all_that_an_earlier_one_could_have_run() -> None:
    assert fresh_seed(1_800_000_010.0) == fresh_seed(1_800_000_000.9) + 10 * SEEDS_PER_SECOND


@pytest.fixture
def handlers() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_a_soak_that_is_ended_early_prints_a_summary_of_the_seeds_that_ran(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:

    def in_parallel(*_: object) -> Generator[Tally]:
        yield Tally(seeds=5, steps=500, cpu_s=1.0)
        yield Tally(seeds=5, steps=700, cpu_s=1.0)
        os.kill(os.getpid(), signal.SIGTERM)
        yield Tally(seeds=5, steps=900, cpu_s=1.0)

    monkeypatch.setattr(soaking, "in_parallel", in_parallel)
    assert soak(7_000_000, 1000, 100, 0.0) == 0
    summary = json.decode(capsys.readouterr().out, type=Summary)
    assert (summary.first_seed, summary.seeds, summary.steps) == (7_000_000, 10, 1200)
