"""Which batches count: the rules R1 and R2 as intervals of offsets, made from the acquire records alone.

Pure. Acquire records are rare, so whoever reads a part of the log collects them first, makes the intervals, and keeps
what an interval names before anything is counted. The same rules as in `drover.shard.fold`, in another form; a test
holds the two together.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class AcquireRecord(NamedTuple):
    """An acquire as it stands in the log."""

    shard: int
    offset: int
    epoch: int
    token: bytes


class Ownership(NamedTuple):
    """Who may append to a shard from some offset on."""

    epoch: int
    token: bytes


class Interval(NamedTuple):
    """Batches of `shard` under `token` count at offsets after `first_offset` and before `next_offset` (None: open)."""

    shard: int
    token: bytes
    first_offset: int
    next_offset: int | None


Ownerships = Mapping[int, Ownership]
NOBODY = Ownership(0, b"")
# Before every offset: an ownership that began in an earlier part of the log.
BEFORE = -1


class Validity(NamedTuple):
    """What a part of the log counts by: `stale` are the acquires that lost (R1), `ownerships` hold at its end."""

    intervals: tuple[Interval, ...]
    stale: tuple[AcquireRecord, ...]
    ownerships: Ownerships


def validity(before: Ownerships, acquires: Iterable[AcquireRecord]) -> Validity:
    """Judge the acquires of a part of the log, given who owned each shard before it.

    The acquires may come in any order. A shard that nobody owned has no interval before its first valid acquire.
    """
    now = dict(before)
    begun = dict.fromkeys(before, BEFORE)
    closed: list[Interval] = []
    stale: list[AcquireRecord] = []
    for acquire in sorted(acquires):
        owner = now.get(acquire.shard, NOBODY)
        if acquire.epoch != owner.epoch + 1:  # R1: a compare-and-swap on the epoch
            stale.append(acquire)
            continue
        if acquire.shard in begun:
            closed.append(Interval(acquire.shard, owner.token, begun[acquire.shard], acquire.offset))
        now[acquire.shard] = Ownership(acquire.epoch, acquire.token)
        begun[acquire.shard] = acquire.offset
    still_open = [Interval(shard, now[shard].token, first, None) for shard, first in sorted(begun.items())]
    return Validity((*closed, *still_open), tuple(stale), now)
