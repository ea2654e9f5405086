"""PURE: the commands that users send from the page: which they are, how they are read, and when one is another.

`trials.py` says what such a command would mean.
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
# What these touch must have been shown. A freeze, a pause, a hold and a limit apply to whatever comes meanwhile, too.
SHOWN_FIRST = (Unfreeze, Cancel, Throttle, ResumePlan, ReleaseBroker)
# Typed by whoever acts on a whole cluster at once.
EVERYTHING = "everything"
NO_REASON = "not given yet"


def read_command(fields: Mapping[str, Any], by: str) -> AnyCommand | Malformed:
    """Read a command as the contract has it, for a requester who is known."""
    if "by" in fields:
        return Malformed("by is the user whom the proxy names, and nobody else")
    command = decode_command(msgspec.json.encode({**fields, "by": by}), "application/json")
    if isinstance(command, (Malformed, *SENDABLE)):
        return command
    return Malformed(f"the page does not send {type(command).__struct_config__.tag}")


def is_same(one: AnyCommand, other: AnyCommand) -> bool:
    """Tell whether two commands ask for the same, whatever their ids and reasons."""
    return type(one) is type(other) and _bare(one) == _bare(other)


def _bare(command: AnyCommand) -> AnyCommand:
    return replace(command, id="-", reason="-")


def needs_word(command: AnyCommand) -> bool:
    """Tell whether a command is about everything at once."""
    return isinstance(command, Cancel | Unfreeze) and command.all
