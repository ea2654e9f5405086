"""PURE: the shards as rows: owner, time without one, groups that compete for it, and undecided commands."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from drover.client.history import Takeover
from drover.client.live_view import View
from drover.shard.ownership_conflict import ownership_conflict_in_words

# Five missing heartbeats: the worker no longer counts as running.
HEARD_MS = 10_000
# Two missing heartbeats: more than the delay of a busy machine.
SILENT_MS = 5_000
# Rivals take a shard from each other every few seconds; older takeovers say nothing about the present.
CONFLICT_MS = 60_000


@dataclass(frozen=True, slots=True)
class ShardRow:
    """One shard: `owner` is the last owner, empty if there was none; `is_owned` says that it is still heard from.

    `heard_ms` is the owner's last sign of life within a minute, or its last record if that is later; None without
    either. `undecided` counts the undecided commands in its topics. `competing_groups` are the groups of workers that
    take it from each other.
    """

    shard: int
    owner: str
    epoch: int
    is_owned: bool
    heard_ms: int | None
    undecided: int
    competing_groups: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)

    def silent_ms(self, now_ms: int) -> int | None:
        """Return how long the owner has been silent; None while it gives signs of life, or if the shard has no owner.

        `now_ms` is the wall clock.
        """
        if not self.is_owned or self.heard_ms is None or now_ms - self.heard_ms <= SILENT_MS:
            return None
        return now_ms - self.heard_ms

    def sentence(self, now_ms: int) -> str:
        """Say who owns the shard and whether that worker is silent, or how long it has had no owner."""
        waits = f"; {self.undecided:,} command{'' if self.undecided == 1 else 's'} undecided" if self.undecided else ""
        silent_ms = self.silent_ms(now_ms)
        if silent_ms is not None:
            return (
                f"shard {self.shard} is owned by {self.owner} (epoch {self.epoch}), silent for {silent_ms // 1000} s; "
                f"another worker takes over after its session timeout{waits}"
            )
        if self.is_owned:
            return f"shard {self.shard} is owned by {self.owner} (epoch {self.epoch}){waits}"
        if not self.owner:
            return f"shard {self.shard} has never had an owner{waits}: start a worker with `drover worker`"
        silent_s = 0 if self.heard_ms is None else max(0, now_ms - self.heard_ms) // 1000
        return (
            f"shard {self.shard} has shown no sign of an owner for {silent_s:,} s (last: {self.owner}, epoch "
            f"{self.epoch}){waits}: the rows below are that old; start a worker with `drover worker`"
        )


def shard_rows(view: View) -> list[ShardRow]:
    """Return every shard that was read, in order."""
    return [_row(view, shard) for shard in sorted(view.log.folds)]


def _row(view: View, shard: int) -> ShardRow:
    fold, heard = view.log.folds[shard], view.workers.get(shard)
    signs = [] if heard is None or heard.epoch != fold.epoch else [heard.at_ms]
    if fold.owner:
        # If no record follows a snapshot, the last batch in the snapshot is the last of the log.
        signs.append(view.log.last_record_ms.get(shard) or fold.at_ms)
    heard_ms = max(signs, default=None)
    is_owned = bool(fold.owner) and heard_ms is not None and view.now_ms - heard_ms <= HEARD_MS
    competing_groups = _competing_groups(view.log.takeovers.get(shard, ()), view.now_ms)
    return ShardRow(shard, fold.owner, fold.epoch, is_owned, heard_ms, view.undecided.get(shard, 0), competing_groups)


def _competing_groups(takeovers: Iterable[Takeover], now_ms: int) -> tuple[str, ...]:
    """Return the groups that recently took a shard from each other.

    A takeover in one direction only is normal: it happens when the workers get a new group.
    """
    changes = [
        takeover
        for takeover in takeovers
        if now_ms - takeover.at_ms <= CONFLICT_MS and takeover.before and takeover.after not in {"", takeover.before}
    ]
    if not any(later.after == earlier.before for earlier, later in combinations(changes, 2)):
        return ()
    return tuple(sorted({group for change in changes for group in (change.before, change.after)}))


def ownership_conflicts(rows: Iterable[ShardRow]) -> Iterator[str]:
    """Yield a line for each set of groups of workers that compete for shards."""
    shards: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        if row.competing_groups:
            shards.setdefault(row.competing_groups, []).append(row.shard)
    for competing_groups, numbers in shards.items():
        named = f"shard{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"
        yield ownership_conflict_in_words(competing_groups, named)
