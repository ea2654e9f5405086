"""A new owner: it waits its predecessor out, looks, and adopts what is there without a cancel and without a repeat."""

from dataclasses import replace

import pytest

from drover.agents.calls import carry_out
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Call, CallAccepted, CallIntended
from drover.fold.log import RecordVerdict
from drover.reconcile.messages import AlterPartitions, CallEnded, ChangeThrottles, ThrottlesChanged
from drover.reconcile.throttles.reconciler import ThrottlingReconciler
from drover.state.phase import Phase
from drover.testing.simulated import Loss
from tests.shard.world import CLUSTER, Death, World, alter, reconciler, rollback

KEY = TopicPartition("orders", 0)


def world(**options: object) -> World:
    made = World(joins_by_itself=False, **options)  # type: ignore[arg-type]  # passed on as they are
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    return made


def intents(made: World, call: Call) -> int:
    return sum(isinstance(event, CallIntended) and event.call is call for event in made.events())


async def left_open(made: World, *, applied: bool) -> None:
    """The owner dies with the step's call open; the call had been made, or not."""
    made.put(alter({KEY: [4, 2, 1]}))
    await made.turn(die=Death.AFTER_EFFECTS if applied else Death.AFTER_APPEND)
    assert made.reassignment(KEY).phase is Phase.INTENDED


async def test_an_open_call_is_not_judged_before_the_predecessors_time_is_over() -> None:
    made = world()
    await left_open(made, applied=True)
    await made.run(4900)
    assert made.reassignment(KEY).phase is Phase.INTENDED
    await made.run(400)
    assert made.reassignment(KEY).phase is Phase.COPYING


async def test_a_move_that_was_begun_is_adopted_and_not_sent_again() -> None:
    made = world()
    await left_open(made, applied=True)
    await made.run(8000)
    assert intents(made, Call.STEP) == 1
    assert intents(made, Call.CANCEL) == 0
    adopted = [event for event in made.events() if isinstance(event, CallAccepted)]
    assert [event.adopted for event in adopted] == [True]
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert made.replicas(KEY) == (4, 2, 1)


async def test_a_move_that_was_never_begun_is_sent_once_more() -> None:
    made = world()
    await left_open(made, applied=False)
    await made.run(6900)
    assert intents(made, Call.STEP) == 1
    await made.run(2000)
    assert intents(made, Call.STEP) == 2
    assert made.reassignment(KEY).phase is Phase.COPYING


@pytest.mark.parametrize("late_ms", [100, 2000, 4800])
async def test_a_call_of_the_predecessor_that_comes_late_is_found_and_adopted(late_ms: int) -> None:
    made = world()
    await left_open(made, applied=False)
    await made.run(late_ms)
    late = AlterPartitions("local", {KEY: (4, 2, 1)}, made.now.monotonic_ms)
    await carry_out(made.driver, late, lambda: made.now)
    await made.run(9000 - late_ms)
    assert intents(made, Call.STEP) == 1
    assert made.reassignment(KEY).phase is Phase.COPYING


async def test_a_call_that_could_not_start_within_a_second_of_its_intent_lapses() -> None:
    made = world()
    made.put(alter({KEY: [4, 2, 1]}))
    made.hold_effects = True
    await made.settle()
    made.hold_effects = False
    (effect,) = made.held
    made.model.advance(1001)
    made.core.deliver(await carry_out(made.driver, effect, lambda: made.now))
    assert made.model.moves() == {}
    await made.turn()
    assert "call-lapsed" in made.tags(KEY)
    await made.run(2000)
    assert made.reassignment(KEY).phase is Phase.COPYING


@pytest.mark.parametrize("death", list(Death))
@pytest.mark.parametrize("turns", range(4))
async def test_a_rollback_survives_its_owner_at_any_point(death: Death, turns: int) -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.run(500)
    made.put(rollback(KEY))
    for _ in range(turns):
        await made.turn()
        made.model.advance(100)
        await made.look()
    await made.turn(die=death)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    assert made.outcomes()[-1].verdict == "accepted"


async def test_a_command_that_was_not_yet_durable_is_decided_by_the_successor() -> None:
    made = world()
    made.put(alter({KEY: [4, 2, 1]}, id="a"))
    await made.turn(die=Death.BEFORE_APPEND)
    assert made.outcomes() == []
    await made.settle()
    assert [outcome.id for outcome in made.outcomes()] == ["a"]


async def test_a_command_that_was_durable_is_not_decided_again() -> None:
    made = world()
    made.put(alter({KEY: [4, 2, 1]}, id="a"))
    await made.turn(die=Death.AFTER_APPEND)
    await made.settle()
    assert [outcome.id for outcome in made.outcomes()] == ["a"]


async def test_pending_throttles_of_the_predecessor_are_written_by_the_successor_after_the_wait() -> None:
    made = world()
    made.put(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    while not any(entry.pending for entry in made.state.broker_throttles.values()):
        await made.turn(die=Death.AFTER_APPEND if _about_to_write(made) else None)
    made.crash()
    await made.run(4800)
    assert all(entry.pending for entry in made.state.broker_throttles.values())
    made.driver.lose_next(Loss.ANSWER)
    await made.run(6000)
    assert made.reassignment(KEY).phase is Phase.COPYING
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert all(not state.configs for state in made.model.brokers.values())


def _about_to_write(made: World) -> bool:
    throttling = reconciler(made, ThrottlingReconciler)
    return throttling is not None and bool(throttling._readings._brokers)


async def test_an_owner_that_stood_still_while_its_record_was_on_its_way_calls_nobody() -> None:
    made = world()
    made.put(alter({KEY: [4, 2, 1]}))
    arrivals = made.inbox.take(made.core.next_offsets)
    made.core.deliver(await made.driver.observe(made.core.facts_needed(arrivals)["local"], with_min_isr=True))
    proposed = made.core.propose(made.now, arrivals, {})
    assert proposed is not None
    made.append(proposed.payload)
    # The acknowledgement is heard when the process goes on: by then somebody else may own the shard.
    made.model.advance(1001)
    made.core.commit(proposed)
    (effect,) = made.core.effects(made.now)
    ended = await carry_out(made.driver, effect, lambda: made.now)
    assert isinstance(ended, CallEnded)
    assert ended.results is None
    assert not ended.lost
    assert made.model.moves() == {}


async def test_an_owner_that_stood_still_writes_no_throttles_before_a_record_of_its_own_counts() -> None:
    """Simulation seed 501134: what it had owed was written again after its successor had put everything back."""
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    made.hold_effects = True
    while not made.state.topic_throttles:
        await made.turn()
    (owed,) = [effect for effect in made.held if isinstance(effect, ChangeThrottles)]
    made.held.clear()
    made.core.deliver(ThrottlesChanged(CLUSTER, made.now.monotonic_ms, {}, {}))
    await made.turn()
    made.model.advance(16_000)
    proposed = made.core.propose(made.now, (), {})
    assert proposed is not None
    assert (proposed.record.events, proposed.record.outcomes) == ((), ())
    assert made.core.effects(made.now) == ()
    made.append(proposed.payload)
    made.core.commit(proposed)
    assert made.core.effects(made.now) == (replace(owed, start_by_ms=made.now.monotonic_ms + 1000),)


async def test_an_owner_that_was_replaced_while_it_stood_still_writes_no_throttles() -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    made.hold_effects = True
    while not made.state.topic_throttles:
        await made.turn()
    made.held.clear()
    made.core.deliver(ThrottlesChanged(CLUSTER, made.now.monotonic_ms, {}, {}))
    await made.turn()
    before = made.core
    made.crash()
    made.hold_effects = False
    await made.send(rollback(KEY))
    await made.finish()
    assert all(not state.configs for state in made.model.brokers.values())
    # It has not heard of its successor, and is told of nothing.
    proposed = before.propose(made.now, (), {})
    assert proposed is not None
    assert made.append(proposed.payload) is RecordVerdict.FENCED
    assert before.effects(made.now) == ()
