"""Late effects of Drover's own calls on a reassignment that is under way: corrected once, then never again."""

import pytest

from drover.decide.verdict import UNCONFIRMED
from drover.events.reassignments import (
    CallAccepted,
    CallIntended,
    CancelMode,
    LateChangeFound,
    ReassignmentBlocked,
    RollbackRequested,
)
from drover.facts import Move, PartitionFacts
from drover.reconcile.moves.reconcile import reconcile
from drover.state.phase import Phase
from drover.state.reassignment import ExpiredCalls, Reassignment, Step
from tests.reassignment.support import TOPIC_ID, context, reassignment, sight

LATE = (5, 2, 1)
MOVE = Move((5, 2, 1, 3), (5,), (3,))
SEEN = sight(MOVE.replicas, (1, 2, 3), move=MOVE)
PHASES = [Phase.COPYING, Phase.PREPARED, Phase.CONFIRMED, Phase.ROLLING_BACK, Phase.CANCELLING, Phase.RESTORING]


def expired_calls(topic_id: str = TOPIC_ID) -> ExpiredCalls:
    return ExpiredCalls(topic_id, "old", (LATE,), (1, 2, 3), 0)


@pytest.mark.parametrize("phase", [Phase.PENDING, *PHASES])
@pytest.mark.parametrize("own", [True, False])
def test_a_late_move_is_cancelled_once_it_has_persisted(phase: Phase, own: bool) -> None:
    """Sent by this reassignment or by one that ended shortly before."""
    about = reassignment(phase, unresolved_targets=(LATE,) if own else ())
    earlier = None if own else expired_calls()
    assert reconcile(about, SEEN, context(expired_calls=earlier)) == UNCONFIRMED
    events = reconcile(about, SEEN, context(persisted=True, expired_calls=earlier)).events
    assert [type(event) for event in events] == [LateChangeFound, RollbackRequested, CallIntended]


@pytest.mark.parametrize("phase", PHASES)
def test_it_is_unmanaged_when_nobody_here_sent_it_or_the_topic_is_another(phase: Phase) -> None:
    for earlier in (None, expired_calls("another")):
        events = reconcile(reassignment(phase), SEEN, context(persisted=True, expired_calls=earlier)).events
        assert [type(event) for event in events] in ([], [ReassignmentBlocked])


def test_a_way_back_is_not_asked_for_twice() -> None:
    about = reassignment(Phase.RESTORING, unresolved_targets=(LATE,), cancel_mode=CancelMode.STOP)
    events = reconcile(about, SEEN, context(persisted=True)).events
    assert [type(event) for event in events] == [LateChangeFound, CallIntended]


def test_a_late_call_for_the_step_that_would_be_sent_again_is_taken_for_it() -> None:
    step = Step(1, True, (1, 2, 3), LATE, 1)
    about = reassignment(Phase.PREPARED, target=LATE, step=step, unresolved_targets=(LATE,))
    (event,) = reconcile(about, SEEN, context()).events
    assert isinstance(event, CallAccepted)
    assert event.adopted


@pytest.mark.parametrize("phase", [Phase.CONFIRMED, Phase.COPYING])
def test_a_late_list_that_is_in_place_already_is_taken_back(phase: Phase) -> None:
    """The second step is running or planned when a late call for the first list drops what came in since."""
    step = Step(2, False, (1, 2, 3, 4), (1, 2, 3, 4, 5), 1)
    about = reassignment(
        phase, target=(3, 4, 5), step=step, current=(1, 2, 3, 4), unresolved_targets=((3, 1, 2),)
    )  # fmt: skip
    assert reconcile(about, sight((3, 1, 2)), context()) == UNCONFIRMED
    events = reconcile(about, sight((3, 1, 2)), context(persisted=True)).events
    assert [type(event) for event in events] == [LateChangeFound, RollbackRequested]


@pytest.mark.parametrize(
    ("about", "seen"),
    [
        (reassignment(Phase.COPYING, unresolved_targets=((4, 2, 1),)), sight((4, 2, 1))),
        (reassignment(Phase.COPYING, unresolved_targets=((1, 2, 3),), outcome_unknown=True), sight((1, 2, 3))),
        (reassignment(Phase.CONFIRMED, unresolved_targets=((1, 2, 3),)), sight((1, 2, 3))),
        (reassignment(Phase.RESTORING, unresolved_targets=((1, 2, 3),), restoring=(1, 2, 3)), sight((1, 2, 3))),
    ],
)
def test_what_fits_the_phase_is_not_late(about: Reassignment, seen: PartitionFacts) -> None:
    events = reconcile(about, seen, context(persisted=True)).events
    assert LateChangeFound not in [type(event) for event in events]


def test_a_late_move_is_shown_where_its_cancel_would_harm() -> None:
    seen = sight(MOVE.replicas, (5,), move=MOVE, leader=5)
    about = reassignment(Phase.COPYING, unresolved_targets=(LATE,))
    (event,) = reconcile(about, seen, context(persisted=True)).events
    assert isinstance(event, ReassignmentBlocked)
