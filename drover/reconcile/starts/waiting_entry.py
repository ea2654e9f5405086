"""The index entry of one waiting reassignment."""

from dataclasses import dataclass
from enum import Enum

from drover.reconcile.starts.rank import Rank
from drover.reconcile.starts.resources import Needs, Resource
from drover.state.slot_share import WHOLE_SLOT


class Where(Enum):
    """The place of a waiting reassignment in the index."""

    READY = "ready"
    PARKED = "parked"
    LOOKING = "looking"
    IN_LINE = "in-line"
    PUT_OFF = "put-off"


@dataclass(slots=True)
class Entry:
    """One waiting reassignment and the resources that it needs; a parked one waits until all of them have room."""

    rank: Rank
    where: Where
    turn: int
    needs: Needs = ()
    passed: int = 0
    share: int = WHOLE_SLOT  # of a slot, in sixteenths
    # What it was expected to take when the look was asked for.
    expected: Needs = ()
    # What has room again, if that is why it is ready.
    woken_by: Resource | None = None
