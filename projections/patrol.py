"""Detect changes by others in the tree: check a few nodes at a time, and all of them in each round."""

import time
from collections import deque
from collections.abc import Iterable

from drover.projections.store import ConflictError
from drover.projections.tree import Tree

LOOKED_AT_A_TIME = 200


class Patrol:
    """Compares nodes with their known content; a full round begins every `verify_s` seconds."""

    def __init__(self, tree: Tree, verify_s: float) -> None:
        self._tree = tree
        self._verify_s = verify_s
        self._ahead: deque[str] = deque()
        self._looked = time.monotonic()
        self._began = time.monotonic()

    @property
    def is_under_way(self) -> bool:
        """Whether a round has begun and is not over."""
        return bool(self._ahead)

    @property
    def idle_s(self) -> float:
        """The seconds since the last check."""
        return time.monotonic() - self._looked

    def first(self, paths: Iterable[str]) -> None:
        """Check these nodes next."""
        self._ahead.extendleft(path for path in paths if path in self._tree.nodes)

    async def look(self) -> None:
        """Compare the next nodes, if a round is under way or due. Raises `ConflictError` for a node that differs."""
        self._looked = time.monotonic()
        if not self._ahead:
            if time.monotonic() - self._began < self._verify_s:
                return
            self._began = time.monotonic()
            self._ahead.extend(self._tree.nodes)
        some = [self._ahead.popleft() for _ in range(min(LOOKED_AT_A_TIME, len(self._ahead)))]
        differ = await self._tree.look(some)
        if differ:
            self._ahead.clear()
            raise ConflictError(min(differ))
