"""The facts of one shard that an audit reports, as read from the log. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from drover.events.records import Outcome

Row = dict[str, Any]


class ShardDamage(NamedTuple):
    """A record that breaks a rule of the log, or that cannot be read; later records of its shard are missing."""

    shard: int
    offset: int
    what: str


class Decided(NamedTuple):
    """The decision on a command: its outcome in the record at `offset`, decided at `at_ms` (ms since epoch)."""

    at_ms: int
    shard: int
    offset: int
    outcome: Outcome


class ShardFacts(NamedTuple):
    """The facts of one shard, up to the end of the audited part of the log.

    `first` is the offset of the part's first batch, `after` that of the first batch behind it; None if there is none.
    `plans` are all plans by cluster and name, as they were at that end; a row lacks the columns without a value.
    `lives` are the reassignments that ended in the part, or were under way at its end. `decided` is of the part alone.
    `unreadable` are the records that could not be read; `damage` is one up to the end of the part that no acquire has
    resumed.
    """

    shard: int
    first: int | None
    after: int | None
    plans: Mapping[tuple[Any, ...], Row]
    lives: Sequence[Row]
    decided: Sequence[Decided]
    unreadable: Sequence[int]
    damage: ShardDamage | None
