"""What a writer reported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.shard.world import CLUSTER


@dataclass
class Notes:
    """What a writer reported."""

    errors: list[Exception] = field(default_factory=list)
    drifted: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    claimed: list[str] = field(default_factory=list)
    transactions: int = 0

    def projected(self, cluster: str, events: int, operations: int) -> None:
        assert (bool(cluster), events >= 0, operations > 0) == (True, True, True)
        self.transactions += 1

    def projection_failed(self, cluster: str, error: Exception) -> None:
        assert cluster == CLUSTER
        self.errors.append(error)

    def projection_deleted(self, cluster: str, tree: str) -> None:
        assert cluster == CLUSTER
        self.deleted.append(tree)

    def projection_claimed(self, cluster: str, exposed: Mapping[str, Sequence[str]]) -> None:
        assert cluster == CLUSTER
        self.claimed += sorted(exposed)

    def projection_drifted(self, cluster: str, paths: Sequence[str]) -> None:
        assert cluster == CLUSTER
        self.drifted += paths
