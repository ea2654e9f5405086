"""What the log says of one shard, for an audit. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from events.records import Outcome

Row = dict[str, Any]


class ShardDamage(NamedTuple):
    """A record that breaks a rule of the log, or that cannot be read: what follows it in its shard is missing."""

    shard: int
    offset: int
    what: str


class Decided(NamedTuple):
    """What became of a command: outcome `number` of the record at `offset`, decided at `at_ms` (ms since epoch).

    `verdict` is the outcome's, or says that this is a further part of one that was begun in an earlier record.
    """

    at_ms: int
    shard: int
    offset: int
    number: int
    outcome: Outcome
    verdict: str


class ShardFacts(NamedTuple):
    """What a shard says up to the end of the part audited, whose first batch is at `first`; None if it has none.

    `after` is the first batch behind the part, None if there is none. `plans` are all plans by cluster and name, as
    they stood at that end; a row lacks the columns that nothing was put to. `lives` are the reassignments that ended in
    the part, or were under way at its end. `decided` is of the part alone. `unreadable` are the records that could not
    be read, and `damage` is up to the end of the part, unless somebody has declared that it is to be passed over.
    """

    shard: int
    first: int | None
    after: int | None
    plans: Mapping[tuple[Any, ...], Row]
    lives: Sequence[Row]
    decided: Sequence[Decided]
    unreadable: Sequence[int]
    damage: ShardDamage | None
