"""PURE: who owns each shard, since when nobody does, who fights for it, and how many commands wait there undecided."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from drover.client.history import Takeover
from drover.client.watching import View
from drover.shard.rivals import rivals_in_words

# Five signs of life: a worker that is silent for that long does nothing.
HEARD_MS = 10_000
# Two signs of life are missing, which a busy machine does not explain.
SILENT_MS = 5_000
# Rivals leave a shard to each other for up to five seconds; a takeover that is older says nothing about the present.
CONTESTED_MS = 60_000


@dataclass(frozen=True, slots=True)
class ShardRow:
    """One shard: `owner` is its last one, empty if there was none; `is_owned` says that it was heard of just now.

    `heard_ms` is its last sign of life within a minute, or its last record if that is later; None without any.
    `undecided` counts the commands in its topics. `rivals` are the groups of workers that take it from each other.
    """

    shard: int
    owner: str
    epoch: int
    is_owned: bool
    heard_ms: int | None
    undecided: int
    rivals: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)

    def silent_ms(self, now_ms: int) -> int | None:
        """Return for how long an owner has been silent that may have died; None while it gives signs of life.

        None as well once nobody owns the shard. `now_ms` is the wall clock.
        """
        if not self.is_owned or self.heard_ms is None or now_ms - self.heard_ms <= SILENT_MS:
            return None
        return now_ms - self.heard_ms

    def sentence(self, now_ms: int) -> str:
        """Say who owns the shard and whether that worker is silent, or since when nobody does."""
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
            f"nobody has owned shard {self.shard} for {silent_s:,} s, as far as was heard (last: {self.owner}, epoch "
            f"{self.epoch}){waits}: what is shown is from before; start a worker with `drover worker`"
        )


def shard_rows(view: View) -> list[ShardRow]:
    """Return every shard that was read, in order."""
    return [_row(view, shard) for shard in sorted(view.log.folds)]


def _row(view: View, shard: int) -> ShardRow:
    fold, heard = view.log.folds[shard], view.workers.get(shard)
    signs = [] if heard is None or heard.epoch != fold.epoch else [heard.at_ms]
    if fold.owner:
        # Where nothing came after a snapshot, its last batch was the last.
        signs.append(view.log.last_record_ms.get(shard) or fold.at_ms)
    heard_ms = max(signs, default=None)
    is_owned = bool(fold.owner) and heard_ms is not None and view.now_ms - heard_ms <= HEARD_MS
    rivals = _rivals(view.log.takeovers.get(shard, ()), view.now_ms)
    return ShardRow(shard, fold.owner, fold.epoch, is_owned, heard_ms, view.undecided.get(shard, 0), rivals)


def _rivals(takeovers: Iterable[Takeover], now_ms: int) -> tuple[str, ...]:
    """Return the groups that took a shard from each other lately.

    Without a way back it is no fight: that is how all workers get a new group.
    """
    changes = [
        takeover
        for takeover in takeovers
        if now_ms - takeover.at_ms <= CONTESTED_MS and takeover.before and takeover.after not in {"", takeover.before}
    ]
    if not any(later.after == earlier.before for earlier, later in combinations(changes, 2)):
        return ()
    return tuple(sorted({group for change in changes for group in (change.before, change.after)}))


def contests(rows: Iterable[ShardRow]) -> Iterator[str]:
    """Yield a line for each set of groups of workers that fight for shards."""
    shards: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        if row.rivals:
            shards.setdefault(row.rivals, []).append(row.shard)
    for rivals, numbers in shards.items():
        named = f"shard{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"
        yield rivals_in_words(rivals, named)
