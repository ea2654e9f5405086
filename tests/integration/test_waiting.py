"""Stop, another target, the queue, `after` and undo, from the command line to real replicas."""

import pytest

from drover.events.partitions import TopicPartition
from tests.integration.story import read_story
from tests.integration.support import Installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story]


async def copying_to(drover: Installation, key: TopicPartition, broker: int) -> None:
    """Wait until Kafka copies a partition to this broker."""

    async def copying() -> bool:
        move = (await drover.facts(key)).move
        return move is not None and broker in move.adding

    await wait_for(copying, f"{key} to be copied to {broker}")


async def test_a_stop_in_the_middle_keeps_what_is_in_sync_and_restores_the_throttles(drover: Installation) -> None:
    """R455-9, E2 on four brokers: 3 is in, 4 is being copied."""
    await drover.create_topic("halt", {0: [1, 2]}, kilobytes=4096)
    key = TopicPartition("halt", 0)
    before = await drover.throttles("halt")
    assert (await drover.alter("halt", {key: [3, 4]}, "--throttle", "400kB")).code == 0
    await copying_to(drover, key, 4)
    stopped = await drover.drover("cancel", "--stop", "--plan", "halt", "--reason", "enough")
    assert stopped.code == 0, stopped.errors
    await drover.wait_until_settled()
    assert await drover.replicas(key) == (1, 2, 3)
    plan = await drover.plan("halt")
    assert (plan.stopped, plan.rolled_back, plan.completed) == (1, 0, 0)

    async def restored() -> bool:
        return await drover.throttles("halt") == before

    await wait_for(restored, "every throttle to be as before")
    story = await read_story(drover.connection)
    assert story.faults == []
    assert story.terminal(("halt", 0)) == ["reassignment-stopped"]


async def test_another_target_is_reached_over_the_original_list(drover: Installation) -> None:
    """R455-8, X18."""
    await drover.create_topic("turn", {0: [1, 2]}, kilobytes=2048)
    key = TopicPartition("turn", 0)
    assert (await drover.alter("turn-old", {key: [3, 2]}, "--throttle", "100kB")).code == 0
    await copying_to(drover, key, 3)
    assert (await drover.alter("turn-new", {key: [4, 2]})).code == 0
    await drover.wait_until_settled()
    assert await drover.replicas(key) == (4, 2)
    assert (await drover.plan("turn-old")).rolled_back == 1
    assert (await drover.plan("turn-new")).completed == 1
    story = await read_story(drover.connection)
    assert story.faults == []
    assert story.terminal(("turn", 0)) == ["reassignment-rolled-back", "reassignment-completed"]


async def test_the_queue_is_shown_withheld_withdrawn_by_id_and_taken(drover: Installation) -> None:
    """R236-12, R236-9."""
    await drover.create_topic("line", {0: [1, 2], 1: [2, 3]})
    first, second = TopicPartition("line", 0), TopicPartition("line", 1)
    await drover.drover("freeze", "--reason", "so that the queue can be seen")
    assert (await drover.alter("line-first", {first: [3, 2]}, "--queue", "--id", "line-first")).code == 0
    assert (await drover.alter("line-second", {second: [4, 3]}, "--queue", "--id", "line-second")).code == 0
    shown = [(row["id"], row["partition"], row["target"]) for row in (await drover.status())["queue"]]
    assert shown == [("line-first", 0, [3, 2]), ("line-second", 1, [4, 3])]
    assert "withheld" in (await drover.drover("status", "--partitions")).output
    withdrawn = await drover.drover("cancel", "--queued", "line-first", "--reason", "not now")
    assert withdrawn.code == 0, withdrawn.errors
    assert (await drover.plan("line-first")).withdrawn == 1
    await drover.drover("unfreeze", "--reason", "seen")

    async def moved() -> bool:
        return await drover.replicas(second) == (4, 3)

    await wait_for(moved, "the entry that is left to be carried out")
    await drover.wait_until_settled()
    assert await drover.replicas(first) == (1, 2)
    assert (await drover.plan("line-second")).completed == 1


async def test_what_was_sent_while_frozen_starts_as_soon_as_that_is_over(drover: Installation) -> None:
    await drover.create_topic("thaw", {0: [1, 2]})
    key = TopicPartition("thaw", 0)
    await drover.drover("freeze", "--reason", "a deployment")
    assert (await drover.alter("thaw", {key: [3, 2]})).code == 0

    async def withheld() -> bool:
        return "withheld" in (await drover.drover("status")).output

    await wait_for(withheld, "the partition to be withheld")
    await drover.drover("unfreeze", "--reason", "deployed")
    await drover.wait_until_settled()
    assert await drover.replicas(key) == (3, 2)
    assert (await drover.plan("thaw")).completed == 1


async def test_what_a_plan_has_completed_is_undone_unless_it_was_moved_since(drover: Installation) -> None:
    await drover.create_topic("regret", {0: [1, 2], 1: [2, 3]})
    first, second = TopicPartition("regret", 0), TopicPartition("regret", 1)
    assert (await drover.alter("regret", {first: [3, 2], second: [4, 3]})).code == 0
    await drover.wait_until_settled()
    assert (await drover.alter("regret-since", {second: [1, 3]})).code == 0
    await drover.wait_until_settled()
    shown = await drover.drover("alter", "--undo", "regret", "--reason", "a mistake", "--dry-run", "-o", "json")
    (command,) = shown.document["commands"]
    ids = {partition.pop("topic_id") for partition in command["partitions"]}
    assert ids == {(await drover.facts(first)).topic_id}, "a topic of the same name that was made since is another one"
    assert command["partitions"] == [
        {"topic": "regret", "partition": 0, "replicas": [1, 2], "original_replicas": [3, 2]},
        {"topic": "regret", "partition": 1, "replicas": [2, 3], "original_replicas": [4, 3]},
    ]
    undone = await drover.drover("alter", "--undo", "regret", "--reason", "a mistake", "-o", "json")
    assert undone.code == 1
    (outcome,) = undone.document["outcomes"]
    assert [(row["partition"], row["code"]) for row in outcome["refusals"]] == [(1, "original-replicas-differ")]
    await drover.wait_until_settled()
    assert await drover.replicas(first) == (1, 2)
    assert await drover.replicas(second) == (1, 3)
    nothing = await drover.drover("alter", "--undo", "no-such-plan", "--reason", "a mistake")
    assert nothing.code == 1
    assert "there is no plan no-such-plan" in nothing.errors
