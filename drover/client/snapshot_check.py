"""PURE: compare stored snapshots with the log."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from drover.errors import UnusableSnapshotError
from drover.fold.log import ShardFold
from drover.fold.snapshot import Manifest, differences, restore


class SnapshotCheck:
    """Compares each snapshot with the fold of the log at the offset at which the snapshot was taken."""

    def __init__(self, stored: Iterable[tuple[Manifest, Sequence[bytes]]]) -> None:
        self._stored: defaultdict[tuple[int, int], list[tuple[Manifest, Sequence[bytes]]]] = defaultdict(list)
        for manifest, chunks in stored:
            self._stored[manifest.shard, manifest.position].append((manifest, chunks))
        self._results: list[str] = []

    def see(self, fold: ShardFold) -> None:
        """Compare the snapshots of this fold's position with it."""
        for manifest, chunks in self._stored.pop((fold.shard, fold.position), ()):
            try:
                wrong = ", ".join(differences(restore(manifest, chunks), fold))
            except UnusableSnapshotError as error:
                self._add(manifest, str(error))
            else:
                self._add(manifest, wrong and f"it differs from the log in {wrong}")

    def results(self) -> list[str]:
        """Return the fault of each snapshot; an empty text for a snapshot that agrees with the log."""
        for left in self._stored.values():
            for manifest, _ in left:
                self._add(manifest, "the log has no record there")
        self._stored.clear()
        return self._results

    def _add(self, manifest: Manifest, why: str) -> None:
        self._results.append(why and f"snapshot of shard {manifest.shard} at offset {manifest.position}: {why}")
