"""The metrics and log lines of a worker that loses a shard to another one."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog

from drover.agents import host
from drover.agents.host import ShardHost
from tests.runtime.world import SHARDS, World, arrival_of, freeze


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def _said(shard_host: ShardHost) -> str:
    return shard_host._metrics.render().decode()


async def test_a_worker_says_nothing_of_the_backlog_of_shards_that_it_has_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gauge kept its last value, and so showed a backlog that the next owner had decided long ago."""
    monkeypatch.setattr(host, "MEASURE_S", 0.01)
    shard_host, group, _ = await world.serving_host()
    text = 'drover_commands_undecided{shard="%d"'
    world.command(freeze("f1"))
    await world.until(lambda: (text % 0) in _said(shard_host), "a figure of shard 0")
    shard_host.partitions_revoked()
    group.generation += 1
    await world.assign(shard_host, [1], group.generation)
    await world.until(
        lambda: (text % 1) in _said(shard_host) and (text % 0) not in _said(shard_host), "figures of shard 1 only"
    )


@pytest.mark.parametrize("instance_id", ["one", None])
async def test_two_workers_with_one_instance_id_are_named(instance_id: str | None, world: World) -> None:
    """The group takes them for one member that comes back: each owns every shard, in the same generation."""
    first, group, _ = await world.host("first", instance_id=instance_id)
    await world.assign(first, range(SHARDS), group.generation)
    with structlog.testing.capture_logs() as logged:
        second, _, _ = await world.host("second", instance_id=instance_id)
        await world.assign(second, range(SHARDS), group.generation)
        await world.until(lambda: any(line["event"] == "a shard is acquired again" for line in logged), "a contest")
    named = {(line["instance_id"], line["other"]) for line in logged if "same worker.instance_id" in line["event"]}
    assert named >= {("one", "second")} if instance_id else not named


async def test_the_end_of_a_transaction_is_no_undecided_command(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes an offset behind the command, which counted as a command until the next one came."""
    monkeypatch.setattr(host, "MEASURE_S", 0.01)
    shard_host, group, _ = await world.serving_host()
    topic = world.broker.topics.commands[1]
    world.command(freeze("f1"))
    world.broker.put(topic, 0, None)
    text = f'drover_commands_undecided{{shard="0",topic="{topic}"}} '
    await world.until(lambda: f"{text}2.0" in _said(shard_host), "that something is undecided")
    shard_host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(lambda: f"{text}0.0" in _said(shard_host), "that nothing is undecided")
