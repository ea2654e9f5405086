"""A soak takes seeds that nobody has run."""

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.simulation import soak as soaking
from tests.simulation.soak import FIRST_FRESH_SEED, LEDGER, Line, Tally, next_fresh_seed, read, soak


def line(first_seed: int, seeds: int) -> Line:
    return Line("commit", first_seed, seeds, 2000, seeds * 2000, 1.0, 1.0, 15000)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([], 1_000_000),
        ([line(0, 2000)], 1_000_000),
        ([line(1_000_000, 2000), line(0, 2000)], 1_002_000),
        ([line(1_002_000, 10), line(1_000_000, 2000)], 1_002_010),
    ],
)
def test_it_begins_above_all_seeds_that_were_ever_run(known: list[Line], expected: int) -> None:
    assert next_fresh_seed(known) == expected


def test_no_line_of_the_ledger_calls_seeds_fresh_that_were_run_before() -> None:
    known = read(LEDGER)
    for number, one in enumerate(known):
        assert not one.fresh or one.first_seed >= next_fresh_seed(known[:number]) >= FIRST_FRESH_SEED


@pytest.fixture
def handlers() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_a_soak_that_is_told_to_end_tells_the_ledger_of_what_it_has_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that ran for an hour nothing was known."""

    def in_parallel(*_: object) -> Generator[Tally]:
        yield Tally(seeds=5, steps=500, cpu_s=1.0)
        yield Tally(seeds=5, steps=700, cpu_s=1.0)
        os.kill(os.getpid(), signal.SIGTERM)
        yield Tally(seeds=5, steps=900, cpu_s=1.0)

    monkeypatch.setattr(soaking, "in_parallel", in_parallel)
    monkeypatch.setattr(soaking, "LEDGER", tmp_path / "ledger.jsonl")
    assert soak(None, 1000, 100, 0.0) == 0
    (told,) = read(tmp_path / "ledger.jsonl")
    assert (told.first_seed, told.seeds, told.steps) == (FIRST_FRESH_SEED, 10, 1200)
