"""Command topics that are deleted and made anew, before anything was decided from them, afterwards, and meanwhile."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog

from drover.agents import host as host_module
from drover.errors import ClusterUnavailableError
from drover.testing.model_worker import TOPIC_IDS, EndedError
from tests.runtime.world import SHARDS, World, arrival_of, freeze

ANEW = (TOPIC_IDS[0], TOPIC_IDS[1], TOPIC_IDS[2], "another")


@pytest_asyncio.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(host_module, "TOPICS_S", 0.01)
    made = World()
    yield made
    await made.close()


async def decide(world: World) -> None:
    """Decide a freeze, so that the log names the ids of all four topics; the last one is not used."""
    host, group, _ = await world.serving_host()
    world.command(freeze("f1"))
    host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(world.outcomes, "an outcome")


async def test_a_topic_that_was_made_anew_before_it_was_used_stops_nobody(world: World) -> None:
    """Each worker ended at once, for ever, although nothing of the topic had been decided."""
    await decide(world)
    first = world.hosts.pop()
    await first.close_shards()
    await first.stop()
    world.topic_ids = ANEW
    second, group, _ = await world.host("second", topic_ids=ANEW)
    await world.assign(second, range(SHARDS), group.generation)
    world.command(freeze("f2"))
    second.arrive(0, arrival_of(freeze("f2"), 1), group.generation)
    await world.until(lambda: len(world.outcomes()) == 2, "another outcome")
    assert world.ended == []
    assert [cursor.topic_id for cursor in world.batches()[-1].cursors] == list(ANEW)


async def test_a_topic_that_is_made_anew_while_a_worker_runs_ends_it(world: World) -> None:
    """A fetch names a topic and no id, so that the new topic was read on from the cursor of the old one."""
    await decide(world)
    world.topic_ids = ANEW
    await world.until(lambda: world.ended, "the end of the worker")
    assert world.ended == [70]


async def test_topics_that_are_not_shown_for_a_while_end_nobody(world: World) -> None:
    await decide(world)
    with structlog.testing.capture_logs() as logged:
        world.topic_ids = ClusterUnavailableError("no broker answers")
        await world.until(lambda: any("could not be read" in str(line) for line in logged), "a warning")
        world.topic_ids = (*TOPIC_IDS[:3], None)
        await world.until(lambda: world.hosts[0].is_joined, "a moment")
    assert world.ended == []


async def test_a_topic_that_is_gone_is_named_where_the_group_assigns_nothing_of_it(world: World) -> None:
    host, group, _ = await world.host("w")
    topics = world.broker.topics.commands
    with structlog.testing.capture_logs() as logged, pytest.raises(EndedError):
        await host.partitions_assigned({**dict.fromkeys(topics, (0, 1)), topics[3]: ()}, group.generation)
    assert any(f"no partition of {topics[3]} any more" in str(line.get("reason")) for line in logged)
