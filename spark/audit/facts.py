"""What one reading of the log has brought together for an audit. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from spark.audit.parts import ShardPart

Row = dict[str, Any]


class Facts(NamedTuple):
    """What the log says up to the end of the part audited.

    `tables` are those of the stream, as they stood at that end; `lives` has what they lack of each reassignment.
    `commands` and `refusals`, rows of `spark.audit.frames.decided`, are of that part alone, and so is `unreadable`, how
    many records could not be read.
    """

    parts: tuple[ShardPart, ...]
    tables: Mapping[str, tuple[Row, ...]]
    lives: tuple[Row, ...]
    commands: tuple[Row, ...]
    refusals: tuple[Row, ...]
    unreadable: int
