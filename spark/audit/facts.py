"""What one reading of the log has brought together for an audit. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from spark.audit.parts import ShardPart

Row = dict[str, Any]


class ShardDamage(NamedTuple):
    """A record that breaks a rule of the log, or that cannot be read: what follows it in its shard is missing."""

    shard: int
    offset: int
    what: str


class Facts(NamedTuple):
    """What the log says up to the end of the part audited.

    `plans` are those of the stream by cluster and name, as they stood at that end. `lives` are the reassignments that
    ended in the part, or were under way at its end. `commands`, `refusals` and `unreadable`, how many records could not
    be read, are of the part alone. `damages` are those up to its end that nobody has declared to be passed over.
    """

    parts: tuple[ShardPart, ...]
    plans: Mapping[tuple[str, str], Row]
    lives: tuple[Row, ...]
    commands: tuple[Row, ...]
    refusals: tuple[Row, ...]
    unreadable: int
    damages: tuple[ShardDamage, ...] = ()
