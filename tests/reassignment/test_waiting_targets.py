"""Targets that wait for the end of a reassignment for which nothing was sent in the end."""

from typing import Any

import pytest

from drover.decide.commands import decide
from drover.events.reassignments import Blocker, ReassignmentBlocked, TargetReplaced
from drover.fold.evolve import apply
from tests.reassignment.support import CLUSTER, KEY, alter, facts, opened, queued, sight, state_after, tags


@pytest.mark.parametrize("has_lost_its_start", [False, True])
def test_a_target_that_waits_for_what_is_untouched_is_withdrawn_by_another_one(has_lost_its_start: bool) -> None:
    """A rollback that a guard deferred leaves a target waiting, and its step may turn out never to have been made."""
    name: dict[str, Any] = {"cluster": CLUSTER, "topic": KEY.topic, "partition": KEY.partition}
    replaced = TargetReplaced(**name, plan="q", target=(5, 2, 1))
    changed = ReassignmentBlocked(**name, why=Blocker.UNMANAGED_CHANGE, detail="its list was changed")
    state = state_after([opened(), queued(), opened("q"), replaced, *([changed] if has_lost_its_start else [])])
    decision = decide(alter({KEY: [5, 1, 2]}, plan="r"), state, facts({KEY: sight((1, 2, 3))}))
    for event in decision.events:
        apply(state, event, 2000)
    withdrawn, ended, anew = ("replacement-withdrawn", "reassignment-rolled-back", "reassignment-created")
    assert tags(decision.events) == ["plan-opened", withdrawn, ended, anew]
    assert (state.plans["q"].waiting, state.plans["q"].withdrawn) == (0, 1)
