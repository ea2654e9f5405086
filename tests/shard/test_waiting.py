"""What waits: the queue of KIP-236, commands held for others, other targets; with owners that die."""

import pytest

from drover.cluster.port import AlterRequest
from drover.events.commands import Freeze
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentCompleted
from drover.events.refusals import RefusalCode
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, Death, World, alter, rollback, stop

FIRST, SECOND, THIRD = (TopicPartition("orders", number) for number in range(3))
DEATHS = (*Death, None)


def world(**options: object) -> World:
    made = World(brokers=5, **options)  # type: ignore[arg-type]  # passed on as they are
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}, partition_bytes=1_000_000)
    return made


async def tell(made: World, *commands: object, die: Death | None = None) -> None:
    """Write commands; the owner dies at this place of the turn that decides them."""
    for command in commands:
        made.put(command)  # type: ignore[arg-type]  # commands of every type
    await made.turn(die=die)
    await made.settle()


def verdicts(made: World, id_: str) -> list[str]:
    return [outcome.verdict for outcome in made.outcomes() if outcome.id == id_]


def is_frozen(made: World) -> bool:
    return made.state.freeze is not None


# -- stop


@pytest.mark.parametrize("death", DEATHS)
async def test_what_is_queued_is_stopped_without_a_call(death: Death | None) -> None:
    made = world(limits=Limits(max_partitions_in_flight=1), joins_by_itself=False)
    await made.send(alter({FIRST: [4, 2, 3], SECOND: [4, 3, 1]}, id="p"))
    await made.run(300)
    await tell(made, stop(SECOND), die=death)
    assert made.tags(SECOND) == ["reassignment-created", "stop-requested", "reassignment-stopped"]
    assert made.state.plans["p"].stopped == 1
    sound(made)


# -- another target


@pytest.mark.parametrize("death", DEATHS)
async def test_another_target_is_reached_over_the_original_list(death: Death | None) -> None:
    """R455-8, X18: rolled back first, never re-targeted, whoever dies on the way."""
    made = world(joins_by_itself=False)
    await made.send(alter({FIRST: [4, 2, 3]}, id="old"))
    await made.run(1000)
    assert made.reassignment(FIRST).phase is Phase.COPYING
    await tell(made, alter({FIRST: [5, 2, 3]}, id="new"), die=death)
    await made.run(9000)
    assert made.reassignment(FIRST).plan == "new"
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(FIRST) == (5, 2, 3)
    sent = [getattr(event, "replicas", None) for event in made.events() if getattr(event, "call", None) is not None]
    assert (4, 2, 3) in sent
    assert (made.state.plans["old"].rolled_back, made.state.plans["new"].completed) == (1, 1)
    assert {plan.status for plan in made.state.plans.values()} == {PlanStatus.FINISHED}
    sound(made)


@pytest.mark.parametrize("turns", range(12))
async def test_a_successor_at_any_turn_of_a_replacement_ends_at_the_new_target(turns: int) -> None:
    made = world(copy_bytes_per_second=2_000_000)
    await made.send(alter({FIRST: [4, 2, 3]}, id="old"))
    await made.run(300)
    made.put(alter({FIRST: [5, 2, 1]}, id="new", throttle_bytes_per_second=1_500_000))
    for _ in range(turns):
        made.model.advance(100)
        await made.look()
        await made.turn()
    made.crash()
    await made.finish()
    assert made.replicas(FIRST) == (5, 2, 1)
    assert made.state.plans["new"].completed == 1
    sound(made)


async def test_a_move_that_was_done_before_the_cancel_goes_on_from_there() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({FIRST: [4, 2, 3]}, id="old"))
    await made.run(500)
    made.put(alter({FIRST: [5, 2, 3]}, id="new"))
    made.model.join_isr(FIRST, 4)
    await made.settle()
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(FIRST) == (5, 2, 3)
    assert made.state.plans["old"].completed == 1
    tags = made.tags(FIRST)
    ended = tags.index("reassignment-completed")
    assert tags[ended + 1] == "reassignment-created"


async def test_a_partition_that_is_gone_gives_the_new_target_up() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({FIRST: [4, 2, 3]}, id="old"))
    await made.run(500)
    await made.send(alter({FIRST: [5, 2, 3]}, id="new"))
    made.model.delete_topic("orders")
    await made.finish()
    assert made.tags(FIRST)[-2:] == ["replacement-withdrawn", "reassignment-failed"]
    plan = made.state.plans["new"]
    assert (plan.withdrawn, plan.status) == (1, PlanStatus.FINISHED)


async def test_what_copies_while_its_call_is_open_may_be_given_another_target() -> None:
    """Nothing counts of a partition whose call is open; its new target is judged without it."""
    made = world(joins_by_itself=False)
    made.hold_effects = True
    await made.send(alter({FIRST: [4, 2, 3]}))
    assert made.reassignment(FIRST).phase is Phase.INTENDED
    assert (await made.send(alter({FIRST: [5, 2, 3]}, id="new"))).verdict == "accepted"
    made.hold_effects = False
    await made.release_effects()
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(FIRST) == (5, 2, 3)


async def test_a_new_target_on_a_cluster_out_of_reach_is_refused_and_a_stop_is_not() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({FIRST: [4, 2, 3]}))
    await made.run(300)
    made.driver.unreachable = True
    refused = await made.send(alter({FIRST: [5, 2, 3]}))
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.CLUSTER_UNAVAILABLE]
    assert (await made.send(alter({FIRST: None}))).verdict == "accepted"


# -- the queue


@pytest.mark.parametrize("death", DEATHS)
async def test_the_queue_is_taken_in_its_order_behind_what_was_accepted(death: Death | None) -> None:
    """R236-12."""
    made = world(limits=Limits(max_partitions_in_flight=1), copy_bytes_per_second=4_000_000)
    queued = alter({SECOND: [4, 3, 1], THIRD: [4, 1, 2]}, id="q", queue=True)
    await tell(made, queued, alter({FIRST: [4, 2, 3]}, id="now"), die=death)
    assert verdicts(made, "now") == ["accepted"]
    await made.finish()
    ends = [event.key for event in made.events() if isinstance(event, ReassignmentCompleted)]
    assert ends == [FIRST, SECOND, THIRD]
    assert made.state.plans["q"].completed == 2
    assert made.state.plans["q"].status is PlanStatus.FINISHED
    sound(made)


@pytest.mark.parametrize("turns", range(10))
async def test_a_successor_at_any_turn_takes_each_entry_once(turns: int) -> None:
    made = world(limits=Limits(max_partitions_in_flight=1))
    made.put(alter({FIRST: [4, 2, 3], SECOND: [4, 3, 1]}, id="q", queue=True))
    for _ in range(turns):
        made.model.advance(100)
        await made.look()
        await made.turn()
    made.crash()
    await made.finish()
    assert (made.replicas(FIRST), made.replicas(SECOND)) == ((4, 2, 3), (4, 3, 1))
    assert made.state.plans["q"].completed == 2
    sound(made)


async def test_a_queued_entry_takes_a_moving_partition_back_first() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({FIRST: [4, 2, 3]}, id="old"))
    await made.run(500)
    assert (await made.send(alter({FIRST: [5, 2, 3]}, id="q", queue=True))).verdict == "accepted"
    await made.run(500)
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(FIRST) == (5, 2, 3)
    assert (made.state.plans["old"].rolled_back, made.state.plans["q"].completed) == (1, 1)


async def test_nothing_is_taken_while_the_cluster_is_frozen() -> None:
    """R236-9."""
    made = world()
    await made.freeze()
    await made.send(alter({FIRST: [4, 2, 3]}, id="q", queue=True))
    await made.run(3000)
    assert list(made.state.queue) == [FIRST]
    assert made.state.reassignments == {}
    await made.unfreeze()
    await made.finish(within_ms=5000)
    assert made.replicas(FIRST) == (4, 2, 3)


async def test_an_entry_waits_for_an_unmanaged_move_and_those_behind_it_do_not() -> None:
    made = world(joins_by_itself=False)
    made.model.alter([AlterRequest(FIRST, (5, 2, 3))])
    await made.send(alter({FIRST: [4, 2, 3], SECOND: [4, 3, 1]}, id="q", queue=True))
    await made.run(3000)
    assert list(made.state.queue) == [FIRST]
    assert made.reassignment(SECOND).phase is Phase.COPYING
    made.model.joins_by_itself = True
    made.model.join_isr(FIRST, 5)
    made.model.join_isr(SECOND, 4)
    await made.finish()
    assert made.replicas(FIRST) == (4, 2, 3)


async def test_what_is_refused_at_its_turn_says_why_and_ends_its_plan() -> None:
    made = world()
    made.model.create_topic("gone", {0: [1, 2, 3]}, partition_bytes=1)
    await made.freeze()
    gone = TopicPartition("gone", 0)
    await made.send(alter({gone: [4, 2, 3], FIRST: [99, 2, 3]}, id="q", queue=True))
    made.model.delete_topic("gone")
    made.model.advance(60_000)
    await made.unfreeze()
    await made.finish()
    details = [getattr(event, "detail", "") for event in made.events() if type(event).__name__ == "QueueEntryRemoved"]
    assert [detail.split(":")[0] for detail in details] == ["invalid-replica-assignment", "unknown-topic-or-partition"]
    plan = made.state.plans["q"]
    assert (plan.withdrawn, plan.status) == (2, PlanStatus.FINISHED)


# -- the freeze, just before a call


async def test_a_freeze_between_the_intent_and_the_call_holds_the_step_back() -> None:
    """R236-9, S12: it is checked again just before the call."""
    made = world()
    made.put(alter({FIRST: [4, 2, 3]}))
    await decide_without_calls(made)
    assert made.reassignment(FIRST).phase is Phase.INTENDED
    made.put(Freeze(id="f", cluster=CLUSTER, by="ana", reason="r"))
    await decide_without_calls(made)
    assert made.core.effects(made.now) == ()
    await made.settle()
    assert made.tags(FIRST)[-1] == "call-lapsed"
    assert made.model.moves() == {}
    await made.unfreeze()
    await made.finish()
    assert made.replicas(FIRST) == (4, 2, 3)


async def test_a_freeze_holds_no_rollback_back() -> None:
    """R236-9: the ways back go on."""
    made = world(joins_by_itself=False)
    await made.send(alter({FIRST: [4, 2, 3]}))
    await made.run(500)
    made.put(rollback(FIRST))
    await decide_without_calls(made)
    await made.look()
    await decide_without_calls(made)
    assert made.reassignment(FIRST).phase is Phase.CANCEL_INTENDED
    made.put(Freeze(id="f", cluster=CLUSTER, by="ana", reason="r"))
    await decide_without_calls(made)
    assert len(made.core.effects(made.now)) == 1


async def decide_without_calls(made: World) -> None:
    """One turn in which the record becomes durable and the calls do not start yet."""
    arrivals = made.inbox.take(made.core.next_offsets)
    for keys in made.core.facts_needed(arrivals).values():
        made.core.deliver(await made.driver.observe(keys, with_min_isr=True))
    proposed = made.core.propose(made.now, arrivals, {})
    assert proposed is not None
    made.append(proposed.payload)
    made.core.commit(proposed)
    made.inbox.settle(len(proposed.taken))
