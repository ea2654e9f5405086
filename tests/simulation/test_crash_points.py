"""Wherever a worker dies or stands still, every promise holds and the end is that of the undisturbed run."""

from dataclasses import fields

import pytest

from tests.simulation.crash_points import End, every_point, play
from tests.simulation.scenarios import SCENARIOS, Scenario

EACH_SCENARIO = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


def differences(undisturbed: End, found: End, scenario: Scenario) -> dict[str, tuple[object, object]]:
    pairs = {
        entry.name: (getattr(undisturbed, entry.name), getattr(found, entry.name))
        for entry in fields(End)
        if entry.name not in scenario.differs
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@EACH_SCENARIO
def test_a_fault_at_any_boundary_changes_nothing_in_the_end(scenario: Scenario) -> None:
    undisturbed, _ = play(scenario)
    told: list[str] = []
    for chosen, fault, end in every_point(scenario):
        found = differences(undisturbed, end, scenario)
        if found:
            told.append(f"{scenario.name}, {fault} at boundary {chosen}: {found}")
    assert not told, "\n".join(told[:5])


@EACH_SCENARIO
def test_a_scenario_has_boundaries_and_does_something(scenario: Scenario) -> None:
    end, boundaries = play(scenario)
    assert boundaries >= 5
    assert end.verdicts


def test_there_are_enough_scenarios() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 12
