"""A plan that is paused and a broker that is held: what runs goes on, what would begin waits and says for whom."""

from typing import Any

import pytest

from drover.client.views.status_rows import cluster_document, notices
from drover.client.views.waiting_reason import waiting_reason
from drover.client.views.waiting_rows import queue_rows
from drover.decide.broker_holds import MAX_HELD_BROKERS
from drover.events.clusters import BrokerHeld, Budgets, HoldRole
from drover.events.commands import Command, HoldBroker, PausePlan, ReleaseBroker, ResumePlan
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanPaused, Priority
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.reconcile.starts.starter import PATIENCE
from drover.state.phase import Phase
from drover.state.scheduling import HeldBroker, Limits
from tests.shard.world import CLUSTER, World, alter, rollback

KEYS = tuple(TopicPartition("orders", number) for number in range(6))


def world(limits: Limits | None = None) -> World:
    made = World(brokers=6, limits=limits, joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS})
    return made


async def ask(made: World, kind: type[Command], id_: str, by: str = "ann", **fields: Any) -> Outcome:
    return await made.send(kind(id=id_, cluster=CLUSTER, by=by, reason="a busy hour", **fields))  # type: ignore[arg-type]


def phases(made: World, *keys: TopicPartition) -> list[Phase]:
    return [made.reassignment(key).phase for key in keys]


def why(made: World, key: TopicPartition) -> str:
    return str(waiting_reason(made.state, key))


async def test_a_paused_plan_begins_nothing_while_others_go_on_and_goes_on_when_it_is_resumed() -> None:
    made = world(Limits(max_partitions_in_flight=3))
    await made.send(alter({KEYS[0]: [4, 5, 3], KEYS[1]: [4, 2, 3]}, plan="a"))
    await made.run(300)
    await ask(made, PausePlan, "p", plan="a")
    await made.send(alter({KEYS[2]: [4, 2, 3]}, plan="a"))
    await made.send(alter({KEYS[3]: [4, 2, 3]}, plan="b"))
    made.model.join_isr(KEYS[0], 4)
    await made.run(2000)
    assert phases(made, *KEYS[:4]) == [Phase.CONFIRMED, Phase.COPYING, Phase.PENDING, Phase.COPYING]
    assert why(made, KEYS[2]) == "withheld, plan a is paused by ann (a busy hour): `drover resume a`"
    assert "plan a is paused by ann" in next(iter(notices(made.state)))
    assert cluster_document(made.state, "w", 1)["paused_plans"][0]["by"] == "ann"
    made.crash()
    await made.run(7000)
    assert phases(made, KEYS[0], KEYS[2]) == [Phase.CONFIRMED, Phase.PENDING]
    await ask(made, ResumePlan, "r", by="bob", plan="a")
    made.model.join_isr(KEYS[1], 4)
    await made.run(2000)
    assert phases(made, KEYS[0], KEYS[2]) == [Phase.COPYING, Phase.COPYING]


async def test_a_paused_plan_can_be_taken_back() -> None:
    made = world()
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    await made.run(300)
    await ask(made, PausePlan, "p", plan="a")
    await made.send(rollback(KEYS[0]))
    await made.run(2000)
    assert made.replicas(KEYS[0]) == (1, 2, 3)
    assert KEYS[0] not in made.state.reassignments


async def test_a_pause_of_what_is_not_there_is_refused_and_a_second_one_changes_nothing() -> None:
    made = world()
    assert (await ask(made, PausePlan, "1", plan="a")).refusals[0].code is RefusalCode.UNKNOWN_PLAN
    assert (await ask(made, ResumePlan, "2", plan="a")).refusals[0].code is RefusalCode.UNKNOWN_PLAN
    made.model.joins_by_itself = True
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    assert (await ask(made, ResumePlan, "3", plan="a")).remarks == ("plan a was not paused",)
    await ask(made, PausePlan, "4", plan="a")
    assert "was paused by ann already" in (await ask(made, PausePlan, "5", by="bob", plan="a")).remarks[0]
    assert sum(isinstance(event, PlanPaused) for event in made.events()) == 1
    await ask(made, ResumePlan, "6", plan="a")
    await made.finish()
    assert (await ask(made, PausePlan, "7", plan="a")).refusals[0].code is RefusalCode.PLAN_CLOSED


@pytest.mark.parametrize(
    ("role", "started"),
    [(HoldRole.BOTH, [2]), (HoldRole.DESTINATION, [1, 2]), (HoldRole.SOURCE, [0, 2])],
)
async def test_a_held_broker_gets_or_gives_no_further_copy(role: HoldRole, started: list[int]) -> None:
    made = world()
    made.model.create_topic("back", {0: (4, 2, 3)})
    back = TopicPartition("back", 0)
    await ask(made, HoldBroker, "h", broker=4, role=role)
    await made.send(alter({KEYS[0]: [4, 2, 3], back: [5, 2, 3], KEYS[2]: [6, 2, 3]}))
    await made.run(2000)
    all_of_them = (KEYS[0], back, KEYS[2])
    assert sorted(all_of_them.index(key) for key in made.state.moves.in_flight) == started
    if role is not HoldRole.SOURCE:
        assert why(made, KEYS[0]) == (
            "withheld, broker 4 is held as a destination by ann (a busy hour): `drover broker release 4`"
        )
    await ask(made, ReleaseBroker, "r", by="bob", broker=4)
    await made.run(2000)
    assert set(made.state.moves.in_flight) == set(all_of_them)


async def test_a_slot_of_a_held_broker_wakes_nobody_until_its_release() -> None:
    made = world(Limits(max_moves_per_broker=1))
    await made.send(alter({KEYS[0]: [4, 2, 3], KEYS[1]: [4, 2, 3]}))
    await made.run(1000)
    assert phases(made, *KEYS[:2]) == [Phase.COPYING, Phase.PENDING]
    await ask(made, HoldBroker, "h", broker=4, role=HoldRole.DESTINATION)
    made.model.join_isr(KEYS[0], 4)
    await made.run(2000)
    assert phases(made, KEYS[1]) == [Phase.PENDING]
    await ask(made, ReleaseBroker, "r", by="bob", broker=4)
    await made.run(2000)
    assert phases(made, KEYS[1]) == [Phase.COPYING]


async def test_a_hold_of_a_broker_that_nobody_has_seen_is_accepted_and_says_so() -> None:
    made = world()
    await made.run(300)
    for id_, role in (("1", HoldRole.BOTH), ("2", HoldRole.SOURCE), ("again", HoldRole.SOURCE)):
        outcome = await ask(made, HoldBroker, id_, broker=99, role=role)
        assert outcome.verdict == "accepted"
        assert f"no broker 99 was ever seen in {CLUSTER}: held all the same, for when it comes" in outcome.remarks
    assert 99 in made.state.held_brokers
    seen = await ask(made, HoldBroker, "3", broker=6)
    assert seen.remarks == ()


async def test_holds_are_told_replaced_and_bounded() -> None:
    made = world()
    assert (await ask(made, ReleaseBroker, "1", broker=4)).remarks == ("broker 4 was not held",)
    await ask(made, HoldBroker, "2", broker=4)
    assert "is held by ann already" in (await ask(made, HoldBroker, "3", by="bob", broker=4)).remarks[0]
    await ask(made, HoldBroker, "4", broker=4, role=HoldRole.SOURCE)
    assert [event.role for event in made.events() if isinstance(event, BrokerHeld)] == [HoldRole.BOTH, HoldRole.SOURCE]
    assert list(notices(made.state)) == ["local: broker 4 is held as a source by ann: a busy hour"]
    made.core.fold.state.cluster(CLUSTER).held_brokers.update(
        {broker: HeldBroker("ann", "r", 1) for broker in range(10, 10 + MAX_HELD_BROKERS)}
    )
    made.core.disown()
    made.acquire()
    refused = await ask(made, HoldBroker, "5", broker=5)
    assert refused.refusals[0].code is RefusalCode.TOO_LARGE


async def test_a_plan_of_high_priority_goes_first_and_its_priority_can_be_changed() -> None:
    made = world(Limits(max_partitions_in_flight=1))
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="running"))
    await made.run(300)
    await made.send(alter({KEYS[1]: [5, 2, 3], KEYS[2]: [5, 2, 3]}, plan="usual"))
    await made.send(alter({KEYS[3]: [6, 2, 3], KEYS[4]: [6, 2, 3]}, plan="urgent", priority=Priority.HIGH))
    made.model.joins_by_itself = True
    order: list[int] = []
    for _ in range(300):
        await made.run(100)
        order += [key.partition for key in made.state.moves.in_flight if key.partition not in order]
        if made.is_idle:
            break
    assert order.index(4) < order.index(2)
    assert made.state.priorities == {"urgent": Priority.HIGH}


@pytest.mark.parametrize("role", [HoldRole.SOURCE, HoldRole.BOTH])
async def test_no_slot_is_kept_for_a_move_that_waits_for_a_held_broker(role: HoldRole) -> None:
    """Others pass it a hundred times, and then the only slot of their common destination was kept for it."""
    others = [TopicPartition("many", number) for number in range(PATIENCE + 10)]
    held = TopicPartition("held", 0)
    made = World(brokers=4, limits=Limits(budgets=Budgets(max_incoming_per_broker=1)))
    made.model.create_topic("many", {key.partition: (2, 3) for key in others}, partition_bytes=2_000_000)
    made.model.create_topic("held", {0: (1, 3)}, partition_bytes=4_000_000)
    await made.look()
    await made.settle()
    await ask(made, HoldBroker, "h", broker=1, role=role)
    await made.send(alter({held: (1, 4), **dict.fromkeys(others, (2, 4))}))
    await made.measure()
    await made.run(60_000)
    assert set(made.state.reassignments) == {held}
    assert "`drover broker release 1`" in why(made, held)
    await ask(made, ReleaseBroker, "r", broker=1)
    await made.finish()
    assert made.replicas(held) == (1, 4)


async def test_a_hold_that_comes_later_takes_back_what_was_kept() -> None:
    """What was parked for slots before the hold is parked for the release after it."""
    others = [TopicPartition("many", number) for number in range(PATIENCE + 10)]
    slow, held = TopicPartition("slow", 0), TopicPartition("held", 0)
    limits = Limits(budgets=Budgets(max_incoming_per_broker=1, max_outgoing_per_broker=1))
    made = World(brokers=5, limits=limits, joins_by_itself=False)
    made.model.create_topic("many", {key.partition: (2, 3) for key in others}, partition_bytes=2_000_000)
    made.model.create_topic("held", {0: (1, 3)}, partition_bytes=4_000_000)
    made.model.create_topic("slow", {0: (1, 3)}, partition_bytes=4_000_000)
    await made.look()
    await made.settle()
    await made.send(alter({slow: (1, 5)}, priority=Priority.HIGH))
    await made.run(300)
    await made.send(alter({held: (1, 4), **dict.fromkeys(others, (2, 4))}))
    await made.measure()
    await made.run(2000)
    await ask(made, HoldBroker, "h", broker=1)
    for _ in range(3 * len(others)):
        for key in [key for key in made.state.moves.in_flight if key != slow]:
            made.model.join_isr(key, 4)
        await made.run(300)
    assert set(made.state.reassignments) == {held, slow}


async def test_what_a_paused_plan_has_accepted_does_not_hold_up_the_queue() -> None:
    made = world()
    await made.freeze()
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    await ask(made, PausePlan, "p", plan="a")
    await made.unfreeze()
    await made.send(alter({KEYS[1]: [4, 2, 3]}, plan="b", queue=True))
    await made.run(2000)
    assert phases(made, *KEYS[:2]) == [Phase.PENDING, Phase.COPYING]


@pytest.mark.parametrize("dies", [False, True], ids=["", "takeover"])
async def test_an_entry_of_a_paused_plan_stays_in_the_queue_and_lets_later_ones_pass(*, dies: bool) -> None:
    """Taken, it would have rolled back what another plan moves, and then waited itself."""
    made = world()
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="x"))
    await made.run(1000)
    await made.freeze()
    await made.send(alter({KEYS[0]: [5, 2, 3], KEYS[1]: [5, 2, 3]}, plan="a", queue=True))
    await ask(made, PausePlan, "p", plan="a")
    await made.send(alter({KEYS[2]: [4, 2, 3]}, plan="b", queue=True))
    if dies:
        made.crash()
    await made.unfreeze()
    await made.run(8000)
    assert list(made.state.queue) == [KEYS[0], KEYS[1]]
    assert phases(made, KEYS[0], KEYS[2]) == [Phase.COPYING, Phase.COPYING]
    assert not made.reassignment(KEYS[0]).is_cancelled
    waiting = {row.waiting for row in queue_rows(made.state)}
    assert waiting == {"withheld, plan a is paused by ann (a busy hour): `drover resume a`"}
    await ask(made, ResumePlan, "r", plan="a")
    await made.run(2000)
    assert not made.state.queue
    assert made.reassignment(KEYS[1]).phase is Phase.COPYING
