"""`drover plans`: a row for each plan, open and finished, also those that the state has forgotten."""

from drover.cli.plans import rows_of_plans, since
from drover.client.past_plans import PastPlans
from drover.events.plans import PlanFinished, PlansForgotten
from tests.client.log import CLUSTER
from tests.web.scene import Scene, keys


def scene_of_two() -> Scene:
    """A plan that has ended, and a younger one of which one of two partitions has."""
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 3", None, keys("orders", 1))
    scene.start(*keys("orders", 1))
    scene.complete(*keys("orders", 1))
    scene.say(PlanFinished(cluster=CLUSTER, plan="friday", completed=1, rolled_back=0, failed=0))
    scene.open_plan("monday", "ben", "new disks", None, keys("clicks", 2))
    scene.start(*keys("clicks", 2))
    scene.complete(keys("clicks", 2)[0])
    return scene


def test_every_plan_has_a_row_the_newest_first() -> None:
    rows = rows_of_plans(scene_of_two().view, None)
    assert [(row.plan, row.by, row.status, row.completed, row.accepted) for row in rows] == [
        ("monday", "ben", "open", 1, 2),
        ("friday", "ann", "finished", 1, 1),
    ]
    assert rows[1].fraction == 1
    assert rows[0].fraction is not None
    assert 0 < rows[0].fraction < 1


def test_plans_that_the_state_has_forgotten_come_from_the_log() -> None:
    scene = scene_of_two()
    state = scene.view.log.cluster(CLUSTER)
    past = PastPlans()
    past.see(state)
    scene.say(PlansForgotten(cluster=CLUSTER, plans=("friday",)))
    past.see(state)
    rows = rows_of_plans(scene.view, None)
    assert [row.plan for row in rows] == ["monday"]
    (friday,) = past.rows()
    assert [row.plan for row in since(0, rows, past.rows())] == ["monday", "friday"]
    assert friday.took_ms is not None
    assert [row.plan for row in since(friday.opened_ms + friday.took_ms + 1, rows, past.rows())] == ["monday"]
