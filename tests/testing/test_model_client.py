"""The client on a model installation: ends of plans and moves, the records of the log, states of the past, undo."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from drover.client import (
    Alter,
    Cancel,
    Client,
    Ended,
    Freeze,
    NotEndedError,
    NothingToUndoError,
    PartitionName,
    PartitionTarget,
    Point,
    SyncClient,
    Unfreeze,
    UnknownPlanError,
    events,
)
from drover.state.hashing import state_hash
from drover.testing.in_memory import ModelInstallation, ModelSettings, model_installation

GIGABYTE = 1_000_000_000
# 50 MB/s go into a broker.
GIGABYTE_S = 20


def alter(identity: str, *replicas: int, partition: int = 0, **more: object) -> Alter:
    target = PartitionTarget(topic="orders", partition=partition, replicas=replicas)
    command = Alter(id=identity, cluster="local", by="me", reason="test", partitions=(target,))
    return msgspec.structs.replace(command, **more)


def cancel(identity: str, mode: str = "rollback") -> Cancel:
    partition = PartitionName("orders", 0)
    command = Cancel(id=identity, cluster="local", by="me", reason="test", mode="rollback", partitions=(partition,))
    return msgspec.structs.replace(command, mode=mode)


def ways(ended: tuple[Ended, ...]) -> list[tuple[int, str]]:
    return [(end.partition.partition, end.how) for end in ended]


@pytest.fixture
async def drover(drover_model: ModelInstallation) -> ModelInstallation:
    drover_model.cluster.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=GIGABYTE)
    return drover_model


async def test_the_end_of_a_plan_is_waited_for_with_its_counts(drover: ModelInstallation) -> None:
    began_ms = drover.now_ms
    await drover.client.send(alter("a1", 4, 2, 3, plan="friday"))
    plan = await drover.client.wait_for_plan("friday")
    assert drover.now_ms - began_ms >= GIGABYTE_S * 1000
    assert (plan.completed, plan.rolled_back, plan.active) == (1, 0, 0)
    assert drover.replicas("orders", 0) == (4, 2, 3)
    later_ms = drover.now_ms
    assert (await drover.client.wait_for_plan("friday")).completed == 1
    assert drover.now_ms == later_ms, "a plan that has ended is returned at once"


async def test_a_plan_with_announced_commands_has_not_ended(drover: ModelInstallation) -> None:
    await drover.client.send_all([alter("a1", 4, 2, 3, plan="friday", more=True)])
    await drover.advance(GIGABYTE_S + 5)
    with pytest.raises(NotEndedError, match="plan friday has not ended within 1 s") as raised:
        await drover.client.wait_for_plan("friday", timeout_s=1)
    assert raised.value.plan is not None
    assert raised.value.plan.completed == 1
    await drover.client.send(alter("a2", 4, 2, 3, partition=1, plan="friday"))
    assert (await drover.client.wait_for_plan("friday")).completed == 2


async def test_a_plan_that_is_not_there_is_an_error(drover: ModelInstallation) -> None:
    with pytest.raises(UnknownPlanError, match="there is no plan nosuch in local"):
        await drover.client.wait_for_plan("nosuch")


async def test_the_moves_of_a_command_end_each_in_its_way(drover: ModelInstallation) -> None:
    targets = tuple(PartitionTarget(topic="orders", partition=number, replicas=(4, 2, 3)) for number in (1, 0))
    answer = await drover.client.send(alter("a1", 4, partitions=targets))
    await drover.client.send(cancel("c1"))
    ended = await drover.client.wait_for_moves(answer)
    assert ways(ended) == [(1, "reassignment-completed"), (0, "reassignment-rolled-back")]
    assert [end.is_completed for end in ended] == [True, False]
    assert await drover.client.wait_for_moves(answer) == ended, "the log says so at any time"


async def test_the_end_of_a_cancel_is_that_of_the_moves_that_it_cancels(drover: ModelInstallation) -> None:
    await drover.client.send(alter("a1", 4, 2, 3))
    await drover.until(drover.cluster.moves)
    answer = await drover.client.send(cancel("c1", "stop"))
    assert ways(await drover.client.wait_for_moves(answer)) == [(0, "reassignment-stopped")]
    assert drover.replicas("orders", 0) == (1, 2, 3)


async def test_a_new_target_ends_with_its_own_move_and_the_earlier_one_with_its_rollback(
    drover: ModelInstallation,
) -> None:
    first = await drover.client.send(alter("a1", 4, 2, 3))
    await drover.until(drover.cluster.moves)
    second = await drover.client.send(alter("a2", 1, 2, 4))
    assert ways(await drover.client.wait_for_moves(second)) == [(0, "reassignment-completed")]
    assert drover.replicas("orders", 0) == (1, 2, 4)
    assert ways(await drover.client.wait_for_moves(first)) == [(0, "reassignment-rolled-back")]


async def test_a_target_that_waits_and_is_replaced_ends_with_that(drover: ModelInstallation) -> None:
    await drover.client.send(alter("a1", 4, 2, 3))
    await drover.until(drover.cluster.moves)
    sent = await drover.client.submit_all([alter("a2", 1, 2, 4), alter("a3", 1, 4, 3)])
    second, third = await drover.client.outcomes(sent)
    assert ways(await drover.client.wait_for_moves(second)) == [(0, "replacement-withdrawn")]
    assert ways(await drover.client.wait_for_moves(third)) == [(0, "reassignment-completed")]


async def test_a_target_that_waits_and_is_withdrawn_ends_with_that(drover: ModelInstallation) -> None:
    first = await drover.client.send(alter("a1", 4, 2, 3))
    await drover.until(drover.cluster.moves)
    second = await drover.client.send(alter("a2", 1, 2, 4))
    await drover.client.send(cancel("c1"))
    assert ways(await drover.client.wait_for_moves(second)) == [(0, "replacement-withdrawn")]
    assert ways(await drover.client.wait_for_moves(first)) == [(0, "reassignment-rolled-back")]


async def test_an_entry_of_the_queue_ends_when_it_is_withdrawn_or_when_its_move_has_ended(
    drover: ModelInstallation,
) -> None:
    await drover.client.send(Freeze(id="f1", cluster="local", by="me", reason="test"))
    queued = await drover.client.send(alter("a2", 4, 2, 3, queue=True))
    withdraw = Cancel(id="c1", cluster="local", by="me", reason="test", mode="rollback", queued="a2")
    answer = await drover.client.send(withdraw)
    assert ways(await drover.client.wait_for_moves(queued)) == [(0, "queue-entry-removed")]
    assert ways(await drover.client.wait_for_moves(answer)) == [(0, "queue-entry-removed")]
    again = await drover.client.send(alter("a3", 4, 2, 3, queue=True))
    await drover.client.send(Unfreeze(id="f2", cluster="local", by="me", reason="test"))
    assert ways(await drover.client.wait_for_moves(again)) == [(0, "reassignment-completed")]


async def test_a_stop_by_an_alter_ends_with_the_move_that_it_stops(drover: ModelInstallation) -> None:
    await drover.client.send(alter("a1", 4, 2, 3))
    await drover.until(drover.cluster.moves)
    stop = PartitionTarget(topic="orders", partition=0, replicas=None)
    answer = await drover.client.send(alter("a2", 4, partitions=(stop,)))
    assert ways(await drover.client.wait_for_moves(answer)) == [(0, "reassignment-stopped")]


async def test_what_has_ended_by_the_time_limit_is_told(drover: ModelInstallation) -> None:
    answer = await drover.client.send(alter("a1", 4, 2, 3))
    with pytest.raises(NotEndedError, match="0 of 1 moves have ended within 2 s") as raised:
        await drover.client.wait_for_moves(answer, timeout_s=2)
    assert raised.value.ended == ()


async def test_a_refused_command_has_no_moves_to_wait_for(drover: ModelInstallation) -> None:
    answer = await drover.client.send(alter("a1", 9, 2, 3))
    assert answer.outcome.verdict == "refused"
    assert await drover.client.wait_for_moves(answer) == ()


async def test_the_log_is_replayed_and_followed_from_any_offset() -> None:
    async with model_installation(ModelSettings(shards=1)) as drover:
        drover.cluster.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=GIGABYTE)
        answer = await drover.client.send(alter("a1", 4, 2, 3))
        await drover.settle()
        records = [record async for record in drover.client.replay()]
        replayed = [event for record in records for event in record.batch.events]
        assert tuple(replayed) == drover.events()
        assert [outcome.id for record in records for outcome in record.batch.outcomes] == ["a1"]
        later = [record async for record in drover.client.replay(after=answer.offset)]
        assert later == [record for record in records if record.offset > answer.offset]
        async with aclosing(drover.client.follow(after=answer.offset)) as following:
            assert [await anext(following) for _ in later] == later
        async with aclosing(drover.client.follow()) as following:
            upcoming = asyncio.create_task(anext(following))
            await drover.client.send(alter("a2", 1, 2, 3))
            record = await upcoming
            assert record.offset > later[-1].offset


async def test_the_events_of_other_clusters_are_left_out() -> None:
    local = ModelSettings().clusters["local"]
    async with model_installation(ModelSettings(clusters={"local": local, "other": local}, shards=1)) as drover:
        drover.clusters["local"].create_topic("orders", {0: [1, 2, 3]})
        client = drover.client
        await client.send(alter("a1", 4, 2, 3))
        await drover.settle()
        clusters = {
            name: {event.cluster async for record in client.replay(cluster=name) for event in record.batch.events}
            for name in ("local", "other")
        }
        assert clusters == {"local": {"local"}, "other": {"other"}}


async def test_the_state_of_now_and_of_the_past_is_that_of_the_log(drover: ModelInstallation) -> None:
    answer = await drover.client.send(alter("a1", 4, 2, 3, plan="friday"))
    await drover.settle()
    now = await drover.client.state()
    assert state_hash({"local": now}) == state_hash({"local": drover.state()})
    assert now.plans["friday"].completed == 1
    then = await drover.client.state(Point(offset=answer.offset))
    assert (then.plans["friday"].active, list(then.reassignments)) == (1, [("orders", 0)])
    assert (await drover.client.state(Point(at_ms=answer.at_ms - 1))).plans == {}


async def test_what_a_plan_has_completed_is_taken_back(drover: ModelInstallation) -> None:
    await drover.client.send(alter("a1", 4, 2, 3, plan="friday"))
    with pytest.raises(NothingToUndoError, match="friday has completed no move"):
        await drover.client.undo("friday", id="u1", by="me", reason="test")
    await drover.client.wait_for_plan("friday")
    command = await drover.client.undo("friday", id="u1", by="me", reason="test")
    assert command.partitions[0].original_replicas == (4, 2, 3)
    await drover.client.wait_for_moves(await drover.client.send(command))
    assert drover.replicas("orders", 0) == (1, 2, 3)


def blocking(client: Client) -> tuple[str, int, list[str]]:
    """A program without an event loop."""
    with SyncClient(client) as drover:
        answer = drover.send(alter("a1", 4, 2, 3, plan="friday"), timeout_s=30)
        (ended,) = drover.wait_for_moves(answer)
        plan = drover.wait_for_plan("friday")
        first = next(record for record in drover.replay() if record.batch.outcomes)
        following = drover.follow(after=first.offset)
        assert next(following).offset > first.offset
        assert drover.state().plans["friday"] == plan
        assert drover.undo("friday", id="u1", by="me", reason="test").partitions[0].replicas == (1, 2, 3)
        (sent,) = drover.submit_all([alter("a1", 4, 2, 3, plan="friday")])
        (again,) = drover.outcomes([sent])
        assert again.repeated
        return ended.how, plan.completed, [type(event).__name__ for event in first.batch.events][:1]


async def test_a_program_without_a_loop_does_the_same(drover: ModelInstallation) -> None:
    how, completed, began_with = await asyncio.to_thread(blocking, drover.client)
    assert (how, completed, began_with) == ("reassignment-completed", 1, [events.PlanOpened.__name__])
