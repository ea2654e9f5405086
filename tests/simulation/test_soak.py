"""A soak takes seeds that nobody has run."""

import pytest

from tests.simulation.soak import FIRST_FRESH_SEED, LEDGER, Line, next_fresh_seed, read


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
