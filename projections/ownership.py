"""PURE: the owners of the nodes in a cluster's tree, as in the table of projections/README.md.

* `PARENTS` hold others and have no data of their own; they are made with the tree.
* `PROJECTED` nodes, and all that is below `SUBTREES`, are written by the projector alone. Changes by others are drift,
  and are undone. So are nodes of others below a node that has no children.
* `SHARED` nodes are written by operators and by Drover. While the fold has a document there, the node is that document,
  and a write by anybody else is drift. While it has none, a node there is a request: the intake reads and removes it,
  and the projector leaves it alone.
* The projector ignores everything else below the chroot: requests, their error nodes, notes of operators.
"""

# Below it is a node per topic, and below those one per reassignment.
REASSIGNMENTS = "/admin/reassignments"
# Below it are requests of operators.
REQUESTS = "/admin/reassignment_requests"
PARENTS = (
    "/admin",
    "/admin/failed_brokers",
    REQUESTS,
    REASSIGNMENTS,
    "/brokers",
    "/brokers/topics",
    "/config",
    "/config/brokers",
    "/drover",
    "/drover/current_batch",
    "/drover/heal",
    "/drover/plans",
)
SUBTREES = (
    "/admin/failed_brokers",
    REASSIGNMENTS,
    "/brokers/topics",
    "/drover/current_batch",
    "/drover/heal",
    "/drover/plans",
)
SHARED = frozenset(
    {
        "/admin/cancel_reassignment_in_progress",
        "/admin/reassign_cancel",
        "/admin/reassign_partitions",
        "/admin/reassign_partitions_queue",
        "/config/brokers/<default>",
    }
)
PROJECTED = frozenset({"/drover/leaders"})
# Nodes of a real cluster in ZooKeeper mode that Drover never makes: a chroot with one of them is such a cluster's.
OTHERS_MARKS = ("/brokers/ids", "/controller", "/controller_epoch", "/cluster/id", "/admin/delete_topics")
# The nodes directly below the chroot of such a cluster, in which Drover must not put a view.
OTHERS_TOPS = frozenset(
    {
        "admin", "brokers", "cluster", "config", "consumers", "controller", "controller_epoch", "feature",
        "isr_change_notification", "latest_producer_id_block", "log_dir_event_notification", "migration",
    }
)  # fmt: skip


def is_projected(path: str) -> bool:
    """Whether a node must not exist unless the fold has it."""
    return path in PROJECTED or any(path.startswith(f"{top}/") for top in (*SUBTREES, *PROJECTED, *SHARED))


def parent_of(path: str) -> str:
    """Return the path above; empty at the top."""
    return path.rpartition("/")[0]


def depth_of(path: str) -> int:
    """Return the depth of a path."""
    return path.count("/")
