"""The files of kept shards: a few for each shard, named by their places. They may be removed at any time."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from drover.spark.audit.kept import KeptShard, Place, decoded, places_before, places_before_plan, thinned
from drover.spark.audit.parts import AuditSpan

# The most files for each shard: in a log of any length, the nearest is rarely further away than a tenth of it.
MOST_PER_SHARD = 16
_SUFFIX = ".kept"


class KeptFiles:
    """The saved shards of a log in a directory, which need not exist."""

    def __init__(self, directory: Path, topic: str) -> None:
        self._directory = directory / topic

    def nearest(self, shard: int, end: int, span: AuditSpan, plan: str | None) -> KeptShard | None:
        """Return the kept shard nearest before the wanted part; None if the shard must be read from its beginning.

        `end` is the shard's present end. Files that cannot be used are removed if possible.
        """
        places = {place for place in self._places(shard) if place.position <= end}
        shard_file = self._first(shard, places_before(places, span, shard))
        if shard_file is not None or plan is None or not places:
            return shard_file
        newest = self._first(shard, sorted(places, reverse=True))
        if newest is None:
            return None
        return self._first(shard, places_before_plan(places, span, newest, plan))

    def keep(self, shard: int, place: Place, content: bytes) -> None:
        """Keep a shard, and remove others where there are too many. Raises `OSError`."""
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._file(shard, place)
        partial = file.with_suffix(".part")
        try:
            partial.write_bytes(content)
            partial.replace(file)
        except OSError:
            # Another audit hardly ever ends at this place, so it would not overwrite the file.
            partial.unlink(missing_ok=True)
            raise
        places = self._places(shard)
        self._remove(shard, places - thinned(places, MOST_PER_SHARD))

    def forget(self, shard: int) -> None:
        """Remove everything of a shard: it is of another log."""
        self._remove(shard, self._places(shard))

    def _places(self, shard: int) -> set[Place]:
        places = set()
        for file in self._directory.glob(f"{shard}-*{_SUFFIX}"):
            _, position, latest_ms = file.stem.split("-")
            places.add(Place(int(position), int(latest_ms)))
        return places

    def _first(self, shard: int, places: Iterable[Place]) -> KeptShard | None:
        candidates = (self._read(shard, place) for place in places)
        return next((candidate for candidate in candidates if candidate is not None), None)

    def _read(self, shard: int, place: Place) -> KeptShard | None:
        file = self._file(shard, place)
        try:
            decoded_shard = decoded(file.read_bytes())
        except OSError:  # another audit has removed it, or it is another user's
            return None
        if decoded_shard is None or (decoded_shard.shard, decoded_shard.position) != (shard, place.position):
            with suppress(OSError):
                file.unlink(missing_ok=True)
            return None
        return decoded_shard

    def _remove(self, shard: int, places: Iterable[Place]) -> None:
        for place in places:
            self._file(shard, place).unlink(missing_ok=True)

    def _file(self, shard: int, place: Place) -> Path:
        return self._directory / f"{shard}-{place.position}-{place.latest_ms}{_SUFFIX}"
