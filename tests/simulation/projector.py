"""A view that follows the log, as the ZooKeeper view will: it keeps a position, and what was true there (S15)."""

from typing import TYPE_CHECKING

from drover.fold.log import ShardFold

if TYPE_CHECKING:
    from tests.simulation.world import World


class Projector:
    """A reader of one shard; position and state hash are written in one transaction, or not at all."""

    def __init__(self, world: "World", shard: int) -> None:
        self.kept: tuple[int, bytes] | None = None
        self._world = world
        self._shard = shard
        self._fold = ShardFold(shard, world.settings.shards)

    def project(self, count: int, *, dies: bool) -> None:
        """Fold so many records and write; or die just before the write, and begin again from what was written."""
        records = self._world.log.shards[self._shard]
        end = min(self._fold.position + count, len(records))
        for offset in range(self._fold.position, end):
            self._fold.fold(offset, records[offset])
        if dies:
            self._begin_again()
            return
        digest = self._world.checker.note_hash(self._shard, self._fold)
        assert self.kept is None or self.kept[0] <= self._fold.position, "S15: the view went back"
        self.kept = (self._fold.position, digest)

    @property
    def lag(self) -> int:
        """How many records the view is behind."""
        return len(self._world.log.shards[self._shard]) - (self.kept[0] if self.kept else 0)

    def _begin_again(self) -> None:
        """S15: the view is a prefix of the log, so that folding as much again makes it again."""
        self._fold = ShardFold(self._shard, self._world.settings.shards)
        if self.kept is None:
            return
        position, digest = self.kept
        for offset in range(position):
            self._fold.fold(offset, self._world.log.shards[self._shard][offset])
        assert self._world.checker.note_hash(self._shard, self._fold) == digest, "S15: the view cannot be made again"
