"""The throttle of a plan is changed while it runs; an entry that is withdrawn leaves nothing to look for."""

from typing import Any

from drover.events.commands import Throttle
from drover.state.plans import PlanStatus
from tests.shard.test_waiting import FIRST, verdicts, world
from tests.shard.world import CLUSTER, alter, rollback

NOW: dict[str, Any] = {"cluster": CLUSTER, "by": "ana", "reason": "r"}


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
    assert made.core.cluster(CLUSTER).attention(made.now).urgency.name == "IDLE"
    assert made.state.plans["q"].status is PlanStatus.FINISHED
    assert made.is_idle
