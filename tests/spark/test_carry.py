"""What a job carries of a shard from batch to batch: it grows with what is open, and with the plans that are kept."""

from drover.events.plans import PlanFinished, PlanOpened, PlansForgotten
from drover.events.records import AnyEvent
from drover.fold.evolve import apply
from drover.fold.log import ShardFold
from drover.reconcile.plans.reconciler import MAX_ENDED_PLANS
from drover.spark.folding.carry import packed

CLUSTER = "prod"
# Some forty of them are what a name, a requester and a reason take that resemble no other's.
BYTES_PER_ENDED_PLAN = 60
SPARE_BYTES = 64


def carried(*events: AnyEvent) -> int:
    fold = ShardFold(0, 1)
    state = fold.state.cluster(CLUSTER)
    for number, event in enumerate(events):
        apply(state, event, 1_700_000_000_000 + number * 8640)
    return len(packed(fold, {}))


def ended_plans(count: int) -> list[AnyEvent]:
    """Plans that have no more in common than those of many teams."""
    return [
        event
        for number in range(count)
        for name in (f"{number * 2654435761 % 2**32:08x}",)
        for event in (
            PlanOpened(
                cluster=CLUSTER, plan=name, by=f"user{number % 40}@example", reason=f"ticket {name}: {number % 97}"
            ),
            PlanFinished(cluster=CLUSTER, plan=name, completed=number % 500, rolled_back=0, failed=0),
        )
    ]


def test_no_more_is_carried_of_plans_that_have_ended_than_of_those_that_the_state_keeps() -> None:
    most = carried(*ended_plans(MAX_ENDED_PLANS))
    assert most < BYTES_PER_ENDED_PLAN * MAX_ENDED_PLANS


def test_nothing_is_carried_of_plans_that_are_forgotten() -> None:
    plans = ended_plans(500)
    names = tuple(event.plan for event in plans if isinstance(event, PlanOpened))
    opened = PlanOpened(cluster=CLUSTER, plan="open", by="ana", reason="capacity")
    before, after = carried(opened), carried(opened, *plans, PlansForgotten(cluster=CLUSTER, plans=names))
    assert carried(opened, *plans) > before + 500 * 10
    assert after <= before + SPARE_BYTES
