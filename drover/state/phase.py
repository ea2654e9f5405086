"""The phase of a reassignment: a call, and the stage of that call. `Phase` is the recorded name of the pair.

    pending → (prepared →) intended → copying → confirmed → (prepared →) intended → … → completed
       │         │           │          │          │
       └─────────┴───────────┴──────────┴──────────┴──→ rolling-back → cancel-intended → cancelling
                                                              │                              │
                                                              └──→ restore-intended → restoring → rolled back, stopped

A prepared step that cannot begin is postponed: the reassignment is pending again, or confirmed after an earlier step.
A copy that is given up for another one goes from copying to cancel-intended, and from cancelling to confirmed. A
rollback or stop that needs copies goes from rolling-back or cancelling to confirmed, and on by steps.

From every state a reassignment fails if its partition is gone, or if others have changed it for good. One that ends
while another target waits for it is pending again, under that target, in the same record.
"""

from enum import StrEnum

from drover.events.reassignments import Call


class Stage(StrEnum):
    """The stage of a reassignment's call."""

    PENDING = "pending"
    DUE = "due"
    PREPARED = "prepared"
    INTENDED = "intended"
    RUNNING = "running"


class Phase(StrEnum):
    """The pair of call and stage under one name, as in hashes and snapshots."""

    PENDING = "pending"
    PREPARED = "prepared"
    INTENDED = "intended"
    COPYING = "copying"
    CONFIRMED = "confirmed"
    ROLLING_BACK = "rolling-back"
    CANCEL_INTENDED = "cancel-intended"
    CANCELLING = "cancelling"
    RESTORE_INTENDED = "restore-intended"
    RESTORING = "restoring"

    @property
    def call(self) -> Call:
        """The call that is next, open, or was the last to be made: a step, a cancel, or the order after a cancel."""
        return _PLACES[self][0]

    @property
    def stage(self) -> Stage:
        """The stage of that call."""
        return _PLACES[self][1]


_PLACES = {
    Phase.PENDING: (Call.STEP, Stage.PENDING),
    Phase.CONFIRMED: (Call.STEP, Stage.DUE),
    Phase.PREPARED: (Call.STEP, Stage.PREPARED),
    Phase.INTENDED: (Call.STEP, Stage.INTENDED),
    Phase.COPYING: (Call.STEP, Stage.RUNNING),
    Phase.ROLLING_BACK: (Call.CANCEL, Stage.DUE),
    Phase.CANCEL_INTENDED: (Call.CANCEL, Stage.INTENDED),
    Phase.CANCELLING: (Call.CANCEL, Stage.RUNNING),
    Phase.RESTORE_INTENDED: (Call.RESTORE, Stage.INTENDED),
    Phase.RESTORING: (Call.RESTORE, Stage.RUNNING),
}
_PHASES = {place: phase for phase, place in _PLACES.items()}
# A call of ours is open: its intent is durable, its outcome is not.
OPEN_PHASES = frozenset(phase for phase in Phase if phase.stage is Stage.INTENDED)
# The next call is a cancel or a restore, or one was made: an observation decides at once.
CANCELLED_PHASES = frozenset(phase for phase in Phase if phase.call is not Call.STEP) - OPEN_PHASES


def phase_of(call: Call, stage: Stage) -> Phase:
    """Return the phase of a call at a stage; not every pair exists."""
    return _PHASES[call, stage]
