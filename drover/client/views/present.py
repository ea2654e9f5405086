"""PURE: the rows of the current state, of one cluster or of all that were read, by name."""

from drover.client.live_view import View
from drover.client.views.status_rows import StatusRow, UnmanagedRow, status_rows, unmanaged_rows
from drover.client.views.waiting_rows import QueueRow, queue_rows
from drover.state.cluster import ClusterState


def clusters_of(view: View, cluster: str | None) -> list[tuple[ClusterState, str, int]]:
    """Return every cluster to show, with its owner and epoch, by name."""
    clusters = [
        (state, fold.owner, fold.epoch)
        for fold in view.log.folds.values()
        for state in fold.state.clusters.values()
        if cluster in {None, state.name}
    ]
    return sorted(clusters, key=lambda entry: entry[0].name)


def rows_of(
    view: View, cluster: str | None, plan: str | None = None, *, topic: str | None = None, state: str | None = None
) -> list[StatusRow]:
    """Return the reassignments of a plan, of a topic and in a state; without a filter, all of them."""
    rows = [
        row
        for cluster_state, _, _ in clusters_of(view, cluster)
        for row in status_rows(cluster_state, view.transfers, view.now_ms)
    ]
    return [
        row
        for row in rows
        if plan in {None, row.plan, row.next_plan} and topic in {None, row.topic} and state in {None, row.state}
    ]


def queue_of(view: View, cluster: str | None, plan: str | None = None, *, topic: str | None = None) -> list[QueueRow]:
    """Return the entries of the queue of a plan and of a topic, in queue order; without a filter, all of them."""
    rows = [row for cluster_state, _, _ in clusters_of(view, cluster) for row in queue_rows(cluster_state)]
    return [row for row in rows if plan in {None, row.plan} and topic in {None, row.topic}]


def unmanaged_of(view: View, cluster: str | None) -> list[UnmanagedRow]:
    """Return every move that is not Drover's."""
    return [row for state, _, _ in clusters_of(view, cluster) for row in unmanaged_rows(state)]
