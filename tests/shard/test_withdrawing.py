"""Cancels reach what waits for other commands; the throttle of a plan is changed while it runs."""

from typing import Any

import pytest

from drover.events.commands import Freeze, Throttle, Unfreeze
from drover.events.partitions import PartitionReference
from drover.events.refusals import RefusalCode
from drover.state.plans import PlanStatus
from tests.shard.sound import sound
from tests.shard.test_waiting import DEATHS, FIRST, SECOND, tell, verdicts, world
from tests.shard.world import CLUSTER, Death, alter, rollback

NOW: dict[str, Any] = {"cluster": CLUSTER, "by": "ana", "reason": "r"}


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize(
    "scope", [{"all": True}, {"plan": "move"}, {"topics": ("orders",)}, {"deferred": "move"}], ids=str
)
async def test_every_scope_of_a_cancel_withdraws_commands_that_wait(scope: dict[str, Any], death: Death | None) -> None:
    made = world()
    await tell(made, alter({FIRST: [4, 2, 3], SECOND: [4, 3, 1]}, id="move", after=("go",)))
    await tell(made, rollback(id="stop", **scope), die=death)
    assert (verdicts(made, "stop"), verdicts(made, "move")) == (["accepted"], ["held", "refused"])
    assert next(outcome.withdrawn for outcome in made.outcomes() if outcome.id == "stop") == ("move",)
    (refusal,) = made.outcomes()[-1].refusals
    assert refusal.code is RefusalCode.WITHDRAWN
    assert "stop" in refusal.detail
    await tell(made, Freeze(id="go", cluster=CLUSTER, by="ana", reason="r"), Unfreeze(**NOW, id="on"))
    await made.finish()
    assert made.replicas(FIRST) == (1, 2, 3)
    sound(made)


@pytest.mark.parametrize("death", DEATHS)
async def test_a_cancel_of_one_partition_leaves_the_others_of_a_command_that_waits(death: Death | None) -> None:
    made = world()
    await tell(made, alter({FIRST: [4, 2, 3], SECOND: [4, 3, 1]}, id="move", after=("go",)))
    await tell(made, rollback(FIRST, id="stop"), die=death)
    assert [outcome.accepted for outcome in made.outcomes() if outcome.id == "stop"] == [(PartitionReference(*FIRST),)]
    await tell(made, Freeze(id="go", cluster=CLUSTER, by="ana", reason="r"), Unfreeze(**NOW, id="on"), die=death)
    await made.settle()
    decided = made.outcomes()[-1]
    assert (decided.id, [refusal.key for refusal in decided.refusals]) == ("move", [FIRST])
    await made.finish()
    assert (made.replicas(FIRST), made.replicas(SECOND)) == ((1, 2, 3), (4, 3, 1))
    sound(made)


async def test_what_waits_for_a_withdrawn_command_is_decided() -> None:
    made = world()
    await tell(made, alter({FIRST: [4, 2, 3]}, id="move", after=("never",)))
    await tell(made, Freeze(id="then", after=("move",), cluster=CLUSTER, by="ana", reason="r"))
    await tell(made, rollback(id="stop", all=True))
    assert verdicts(made, "then") == ["held", "accepted"]


async def test_a_command_that_does_not_wait_cannot_be_withdrawn() -> None:
    made = world()
    refused = await made.send(rollback(deferred="nothing"))
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.NO_REASSIGNMENT_IN_PROGRESS]


# -- the throttle of a plan


async def test_the_throttle_of_a_running_plan_is_changed_by_a_verb_of_its_own() -> None:
    made = world(copy_bytes_per_second=100_000)
    await made.send(alter({FIRST: [4, 2, 3]}, id="old", throttle_bytes_per_second=2_000_000))
    await made.run(500)
    missed = await made.send(alter({FIRST: [4, 2, 3]}, id="again", throttle_bytes_per_second=3_000_000))
    assert missed.verdict == "accepted"
    assert "drover throttle set old 3000000" in missed.remarks[0]
    assert (await made.send(Throttle(plan="old", bytes_per_second=3_000_000, **NOW, id="set"))).verdict == "accepted"
    await made.run(500)
    assert {throttle.intended.leader for throttle in made.state.broker_throttles.values()} == {3_000_000}
    await made.finish()


async def test_a_withdrawn_entry_is_no_reason_to_look_any_more() -> None:
    made = world()
    await made.freeze()
    await made.send(alter({FIRST: [4, 2, 3]}, id="q", queue=True))
    made.model.advance(60_000)
    await made.unfreeze()
    made.put(rollback(queued="q", id="away"))
    await made.settle()
    assert verdicts(made, "away") == ["accepted"]
    assert made.core.cluster(CLUSTER).urgency().name == "IDLE"
    assert made.state.plans["q"].status is PlanStatus.FINISHED
    assert made.is_idle


@pytest.mark.parametrize("death", DEATHS)
async def test_the_name_of_a_plan_that_is_cancelled_before_it_begins_is_closed(death: Death | None) -> None:
    """Else the next piece of a plan that was split would move its partitions."""
    made = world()
    await tell(made, alter({FIRST: [4, 2, 3]}, id="move", plan="friday", after=("go",), more=True))
    await tell(made, rollback(id="stop", plan="friday"), die=death)
    assert verdicts(made, "stop") == ["accepted"]
    await tell(made, alter({SECOND: [4, 3, 1]}, id="more", plan="friday"))
    assert [refusal.code for refusal in made.outcomes()[-1].refusals] == [RefusalCode.PLAN_CLOSED]
    assert made.state.plans["friday"].status is PlanStatus.CANCELLED
    await made.finish()
    assert made.replicas(SECOND) == (2, 3, 1)
    sound(made)
