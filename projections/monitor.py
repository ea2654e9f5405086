"""The port for the reports of a projection."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Monitor(Protocol):
    """Receives reports of a projection. Calls must return quickly: they are made on the event loop."""

    def projected(self, cluster: str, events: int, operations: int) -> None:
        """One transaction was done."""
        ...

    def projection_failed(self, cluster: str, error: Exception) -> None:
        """The store or the log has failed; it is tried again."""
        ...

    def projection_deleted(self, cluster: str, tree: str) -> None:
        """Somebody has deleted the whole tree or its position; it is created again."""
        ...

    def projection_claimed(self, cluster: str, exposed: Mapping[str, Sequence[str]]) -> None:
        """Others could change these nodes, and cannot any more; values are their ACL ids."""
        ...

    def projection_drifted(self, cluster: str, paths: Sequence[str]) -> None:
        """Somebody has changed these nodes; they were restored."""
        ...
