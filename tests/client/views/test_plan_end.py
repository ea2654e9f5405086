"""When a plan ends: everything that is left of it, waits included, at the measured rate."""

import pytest

from drover.client.views.plan_end import Tally
from drover.client.views.plan_rows import Figures, PlanRow, figures, plan_row
from drover.events.clusters import ClusterFrozen
from drover.events.plans import PlanFinished, PlanPaused
from drover.events.queue_entries import QueueEntryAdded
from drover.events.reassignments import ReassignmentCompleted
from drover.events.records import AnyEvent
from drover.state.cluster import ClusterState
from tests.client.log import CLUSTER
from tests.web.scene import BYTES, Scene, keys, place

MB = 1_000_000
RATE = 100 * MB
# Half of one copy is done: 6 GB are left of it, and 12 GB of each partition that waits.
COPY_MS = BYTES // 2 // RATE * 1000
WAIT_MS = BYTES // RATE * 1000
PAUSED = PlanPaused(cluster=CLUSTER, plan="friday", by="ann", reason="a busy hour")
FROZEN = ClusterFrozen(cluster=CLUSTER, by="ann", reason="maintenance")
ORDERS = keys("orders", 5)


def moving(*events: AnyEvent) -> Scene:
    """A plan of five partitions: one is done, one is half copied, three wait."""
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 1", None, ORDERS)
    scene.start(*ORDERS[:2])
    scene.complete(ORDERS[0])
    scene.say(*events)
    scene.sample(ORDERS[1], BYTES // 2, RATE)
    return scene


def state_of(scene: Scene) -> ClusterState:
    return scene.writer.fold.state.clusters[CLUSTER]


def counted(scene: Scene) -> Figures:
    return figures(state_of(scene), scene.transfers, scene.view.now_ms)


def end(tally: Tally) -> tuple[int | None, int | None]:
    return tally.soonest_ms, tally.latest_ms


def test_the_end_of_a_plan_is_that_of_what_waits_too() -> None:
    found = counted(moving())
    assert found.plans["friday"].rest_bytes == 3 * BYTES
    # Samples have the time at which they were taken, so that a rate is exact but for that.
    assert end(found.plans["friday"]) == pytest.approx((COPY_MS + 3 * WAIT_MS, COPY_MS + 3 * WAIT_MS), rel=0.1)
    assert end(found.total) == end(found.plans["friday"])


def test_what_waits_counts_with_the_mean_size_of_what_was_copied_and_is_being_copied() -> None:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 1", None, ORDERS)
    scene.start(*ORDERS[:2])
    scene.say(ReassignmentCompleted(**place(ORDERS[0]), replicas=(1, 4, 5), bytes_copied=3 * BYTES))
    scene.sample(ORDERS[1], BYTES // 2, RATE)
    assert counted(scene).plans["friday"].rest_bytes == 3 * 2 * BYTES


def test_before_anything_is_measured_nothing_is_said_of_the_end() -> None:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 1", None, ORDERS)
    tally = counted(scene).plans["friday"]
    assert (tally.rest_bytes, end(tally)) == (None, (None, None))


def test_entries_of_the_queue_belong_to_their_plan() -> None:
    waits = QueueEntryAdded(cluster=CLUSTER, topic="late", partition=0, id="q", plan="friday", target=(1, 2))
    assert counted(moving(waits)).plans["friday"].rest_bytes == 4 * BYTES


@pytest.mark.parametrize("event", [PAUSED, FROZEN])
def test_what_may_not_start_has_no_end(event: AnyEvent) -> None:
    found = counted(moving(event))
    assert (found.plans["friday"].rest_bytes, end(found.plans["friday"])) == (None, (None, None))
    assert end(found.total) == (None, None)


def test_two_copies_end_between_all_together_and_each_on_its_own() -> None:
    scene = moving()
    scene.start(ORDERS[2])
    scene.sample(ORDERS[2], BYTES // 2, RATE // 2)
    # 12 GB of copies and 24 GB of waits at 150 MB/s; at the latest the waits follow the slower copy.
    assert end(counted(scene).plans["friday"]) == pytest.approx((240_000, 2 * COPY_MS + 160_000), rel=0.1)


def test_a_plan_that_has_ended_tells_what_it_took() -> None:
    scene = moving()
    row = plan_row(state_of(scene), "friday", counted(scene))
    assert row is not None
    assert (row.took_ms, row.copied_bytes, row.unmeasured) == (None, BYTES, 0)
    scene.start(*ORDERS[2:])
    scene.complete(*ORDERS[1:4])
    scene.say(ReassignmentCompleted(**place(ORDERS[4]), replicas=(2, 5, 6), bytes_unknown=True))
    scene.say(PlanFinished(cluster=CLUSTER, plan="friday", completed=5, rolled_back=0, failed=0))
    row = plan_row(state_of(scene), "friday", counted(scene))
    assert isinstance(row, PlanRow)
    assert (row.copied_bytes, row.unmeasured) == (4 * BYTES, 1)
    assert row.took_ms == scene.at_ms - row.opened_ms
    assert row.document()["took_ms"] == row.took_ms
