"""The deliberate faults fit the source, and the page lists every one of them with how it was caught."""

import pytest

from tests.architecture.repository import ROOT
from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutate import NOT_CAUGHT, hunt, known_entries

EACH_MUTANT = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@EACH_MUTANT
def test_the_source_still_has_the_text_that_a_fault_changes(mutant: Mutant) -> None:
    assert (ROOT / mutant.path).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert not mutant.layer or (ROOT / mutant.layer).is_file()


def test_there_are_enough_faults_and_each_has_its_own_name() -> None:
    assert len(MUTANTS) >= 25
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_the_page_lists_every_fault_and_how_it_was_caught() -> None:
    entries = known_entries()
    assert entries.keys() == {mutant.name for mutant in MUTANTS}, "run: make mutants"
    assert not any(entry.endswith(NOT_CAUGHT) for entry in entries.values())


def test_a_fault_is_found_in_a_copy_and_the_checkout_stays_as_it_is() -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "forget-cursor")
    before = (ROOT / mutant.path).read_bytes()
    caught = hunt(mutant)
    assert caught.seeds is not None
    assert caught.failure
    assert (ROOT / mutant.path).read_bytes() == before
