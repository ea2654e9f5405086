"""What `status` shows of the queue, and of work that a freeze withholds."""

from typing import Any

from rich.console import Console

from drover.cli.status import Choice, status_cells, status_document, status_layout, summary
from drover.client.history import FoldedLog
from drover.client.live_view import View
from drover.client.transfers import Transfers
from drover.client.views.status_rows import status_rows
from drover.client.views.waiting_rows import queue_rows
from drover.events.clusters import ClusterFrozen
from drover.events.plans import PlanOpened
from drover.events.queue_entries import QueueEntryAdded
from drover.events.reassignments import ReassignmentCreated, RollbackRequested, StepPrepared, TargetReplaced
from drover.events.records import AnyEvent
from drover.fold.evolve import apply
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState

CLUSTER = "prod"


def name(partition: int) -> dict[str, Any]:
    return {"cluster": CLUSTER, "topic": "t", "partition": partition}


def added(partition: int, target: tuple[int, ...] = (3, 4)) -> QueueEntryAdded:
    return QueueEntryAdded(**name(partition), id="a1", plan="p", target=target)


MOVING = ReassignmentCreated(**name(9), topic_id="id", plan="p", original=(1, 2), target=(3, 4))
PREPARED = StepPrepared(**name(9), step=1, final=True, expected=(1, 2), replicas=(3, 4), leader=1)
FROZEN = ClusterFrozen(cluster=CLUSTER, by="ann", reason="lunch")


def folded(*events: AnyEvent) -> tuple[ClusterState, View]:
    fold = ShardFold(0, 1)
    state = fold.state.cluster(CLUSTER)
    state.kafka_cluster_id = "kafka"
    for event in (PlanOpened(cluster=CLUSTER, plan="p", by="ann", reason="r"), *events):
        apply(state, event, 1000)
    return state, View(FoldedLog({0: fold}), Transfers())


def printed(view: View, most_rows: int | None = None) -> str:
    console = Console(width=300)
    with console.capture() as capture:
        console.print(status_layout(view, Choice(CLUSTER, by_partition=True), most_rows=most_rows))
    return capture.get()


def test_the_queue_is_shown_in_its_order_with_what_each_waits_for() -> None:
    state, view = folded(added(0), added(1))
    rows = queue_rows(state)
    assert [(row.partition, row.id, row.plan, row.target, row.since_ms) for row in rows] == [
        (0, "a1", "p", (3, 4), 1000),
        (1, "a1", "p", (3, 4), 1000),
    ]
    assert [row.waiting for row in rows] == ["its turn: it is next", "its turn: 1 ahead of it"]
    assert "No reassignment is under way; 2 partitions in the queue." in printed(view)
    assert "and 1 more in the queue" in printed(view, most_rows=1)


def test_what_was_accepted_before_and_a_move_to_the_same_list_are_waited_for() -> None:
    waiting, _ = folded(MOVING, added(0))
    assert [row.waiting for row in queue_rows(waiting)] == ["its turn: 1 accepted before have not started"]
    same, _ = folded(MOVING, PREPARED, added(9), added(0))
    assert [row.waiting for row in queue_rows(same)] == [
        "its move to that very list in plan p: its end",
        "its turn: 1 ahead of it",
    ]


def test_a_freeze_withholds_what_has_not_begun() -> None:
    """R236-9."""
    state, view = folded(MOVING, added(0), FROZEN)
    (row,) = status_rows(state, Transfers())
    (entry,) = queue_rows(state)
    assert row.waiting == entry.waiting == "withheld, frozen by ann (lunch): `drover unfreeze`"
    assert "1 reassignment: 1 pending; 1 partition in the queue" in printed(view)


def test_a_target_that_follows_is_shown_beside_the_running_one() -> None:
    other = PlanOpened(cluster=CLUSTER, plan="q", by="ann", reason="r")
    rollback = RollbackRequested(**name(9), by="ben", reason="r")
    state, view = folded(MOVING, PREPARED, other, rollback, TargetReplaced(**name(9), plan="q", target=(5, 6)))
    (row,) = status_rows(state, Transfers())
    assert (row.next_plan, row.next_target) == ("q", (5, 6))
    assert "1,2 → 3,4, then 5,6 in q" in status_cells(row, 2000, several=False)
    assert "then 5,6 in q" in printed(view)


def test_programs_get_the_queue() -> None:
    _, view = folded(added(0))
    document = status_document(view, Choice(CLUSTER))
    assert [row["id"] for row in document["queue"]] == ["a1"]
    assert [plan["waiting"] for plan in document["clusters"][0]["plans"]] == [1]


def test_the_line_for_people_counts_the_queue() -> None:
    assert summary([], 2) == "No reassignment is under way; 2 partitions in the queue."
