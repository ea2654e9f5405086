"""PURE: the commands that users send from the page: their kinds, their decoding, and their comparison.

`trials.py` predicts the effect of such a command.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from drover.events.codec import Malformed, decode_command
from drover.events.commands import (
    AnyCommand,
    Cancel,
    ChangeLimits,
    Freeze,
    HoldBroker,
    PausePlan,
    ReleaseBroker,
    ResumePlan,
    Throttle,
    Unfreeze,
)

# The commands that the page sends; the contract has more.
SENDABLE = (Freeze, Unfreeze, Cancel, Throttle, ChangeLimits, PausePlan, ResumePlan, HoldBroker, ReleaseBroker)
# The partitions that these touch must have been shown. A freeze, pause, hold or limit also applies to later partitions.
SHOWN_FIRST = (Unfreeze, Cancel, Throttle, ResumePlan, ReleaseBroker)
# The word that a user must type for a command about a whole cluster.
EVERYTHING = "everything"
NO_REASON = "not given yet"


def read_command(fields: Mapping[str, Any], by: str) -> AnyCommand | Malformed:
    """Decode a command of the contract, on behalf of an authenticated requester."""
    if "by" in fields:
        return Malformed("by must be left out: it is the user whom the proxy names")
    command = decode_command(msgspec.json.encode({**fields, "by": by}), "application/json")
    if isinstance(command, (Malformed, *SENDABLE)):
        return command
    return Malformed(f"the page does not send {type(command).__struct_config__.tag}")


def is_same(command: AnyCommand, other: AnyCommand) -> bool:
    """Whether two commands ask for the same, apart from their ids and reasons."""
    return type(command) is type(other) and _bare(command) == _bare(other)


def _bare(command: AnyCommand) -> AnyCommand:
    return replace(command, id="-", reason="-")


def needs_word(command: AnyCommand) -> bool:
    """Whether a command is about a whole cluster, so that the user must type `EVERYTHING`."""
    return isinstance(command, Cancel | Unfreeze) and command.all
