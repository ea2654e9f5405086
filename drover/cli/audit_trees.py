"""The trees in ZooKeeper beside the log, for `drover audit verify`: if the workers make them (`zookeeper.project`)."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from drover.cli.output import plural
from drover.errors import DroverError
from drover.events.topics import shard_of
from drover.settings.settings import Settings

if TYPE_CHECKING:
    from drover.projections.comparing import Comparison


@dataclass(frozen=True, slots=True)
class Compared:
    """One cluster's tree, compared with the fold of the log up to the tree's place; or why it could not be."""

    cluster: str
    comparison: "Comparison | None" = None
    why_not: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the tree is what the log says."""
        return self.comparison is not None and not self.comparison.differences

    def lines(self) -> list[str]:
        """List every difference, and a line that sums up."""
        if self.comparison is None:
            return [f"{self.cluster} in ZooKeeper: not compared: {self.why_not}"]
        found = self.comparison
        verdict = plural(len(found.differences), "difference") if found.differences else "no difference"
        summary = f"{plural(found.nodes, 'node')}, {verdict}, {plural(found.behind, 'event')} behind."
        return [
            *(f"{self.cluster} in ZooKeeper: {difference.path} {difference.what}" for difference in found.differences),
            f"{self.cluster} in ZooKeeper: {summary}",
        ]

    def document(self) -> dict[str, Any]:
        """Return it for programs; fields may be added and never changed."""
        known = {} if self.comparison is None else asdict(self.comparison)
        empty: dict[str, Any] = {"nodes": None, "behind": None, "differences": []}
        return {**empty, **known, "cluster": self.cluster, "not_compared": self.why_not or None}


async def compare_trees(settings: Settings, only: str | None, shards: int, broken: Collection[int]) -> list[Compared]:
    """Compare the tree of every configured cluster, or of one; none if the workers are not to make any.

    `broken` are shards whose log breaks a rule: what they result in cannot be known.
    """
    if settings.zookeeper.hosts is None or not settings.zookeeper.project:
        return []
    from drover.projections.projecting import compare_tree  # noqa: PLC0415 - kazoo is loaded only where it is needed

    compared = []
    for cluster in sorted(settings.clusters) if only is None else [only]:
        if shard_of(cluster, shards) in broken:
            compared.append(Compared(cluster, why_not="its shard of the log breaks a rule"))
            continue
        try:
            compared.append(Compared(cluster, await compare_tree(settings, cluster)))
        except DroverError as error:
            # The findings in the log must be reported all the same.
            compared.append(Compared(cluster, why_not=str(error)))
    return compared
