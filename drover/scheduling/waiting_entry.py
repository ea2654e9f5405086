"""One waiting reassignment as the index keeps it."""

from dataclasses import dataclass
from enum import Enum

from drover.reassignment.slot_share import WHOLE_SLOT
from drover.scheduling.rank import Rank
from drover.scheduling.resources import Needs, Resource


class Where(Enum):
    """The place of a waiting reassignment in the index."""

    READY = "ready"
    PARKED = "parked"
    LOOKING = "looking"
    IN_LINE = "in-line"
    PUT_OFF = "put-off"


@dataclass(slots=True)
class Entry:
    """One waiting reassignment: it needs room at `needs`, and waits for that if it is parked."""

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
