"""Moves that others begin on a real cluster: seen, shown, left alone, and mended when they can never end."""

import json

import pytest

from drover.cluster.port import AddThrottledReplicas, AlterRequest, SetBrokerRates
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, PartitionFacts, ThrottledReplicas
from tests.integration.story import read_story
from tests.integration.support import LOOK_S, Installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story]


async def somebody_moves(drover: Installation, key: TopicPartition, *lists: tuple[int, ...] | None) -> None:
    for replicas in lists:
        answer = await drover.driver.alter([AlterRequest(key, replicas)])
        assert answer[key].accepted, answer


async def throttled_copy(drover: Installation, key: TopicPartition) -> None:
    """Nothing is copied to broker 4 for this partition, as another operator's throttle would have it."""
    entries = ThrottledReplicas((), (f"{key.partition}:4",))
    await drover.change_throttles(SetBrokerRates(4, BrokerRates(None, 1)), AddThrottledReplicas(key.topic, entries))

    async def shown() -> bool:
        rates = await drover.driver.broker_rates((4,))
        return rates[4] == BrokerRates(None, 1)

    await wait_for(shown, "broker 4 to show its rate")


async def let_go(drover: Installation) -> None:
    await drover.change_throttles(SetBrokerRates(4, BrokerRates(None, None)))


async def unmanaged(drover: Installation, key: TopicPartition) -> dict[str, object] | None:
    rows = (await drover.status())["unmanaged"]
    return next((row for row in rows if (row["topic"], row["partition"]) == key), None)


async def told(drover: Installation, key: TopicPartition) -> list[str]:
    history = await drover.drover("history", "--partition", f"{key.topic}:{key.partition}", "-o", "jsonl")
    return [json.loads(line)["what"] for line in history.output.splitlines()]


async def make_stuck(drover: Installation, key: TopicPartition) -> PartitionFacts:
    """Live fact on 4.3.1: a re-target to the original set while the partition moves is listed for ever."""
    await somebody_moves(drover, key, (4, 1, 2), (1, 2, 3))

    async def shown() -> bool:
        move = (await drover.facts(key)).move
        return move is not None and move.never_ends == (4,)

    await wait_for(shown, f"{key} to be in Kafka's odd state")
    return await drover.facts(key)


async def test_a_move_of_somebody_else_is_shown_told_and_left_alone(drover: Installation) -> None:
    await drover.create_topic("stranger", {0: [3, 1, 2]}, kilobytes=8192)
    key = TopicPartition("stranger", 0)
    await throttled_copy(drover, key)
    await somebody_moves(drover, key, (4, 1, 2))

    async def seen() -> bool:
        return await unmanaged(drover, key) is not None

    # An idle cluster is looked at every 10 s, and what is seen must last for 2 s.
    await wait_for(seen, "the move of somebody else to be shown", pause_s=LOOK_S)
    row = await unmanaged(drover, key)
    assert row is not None
    assert (row["adding"], row["removing"], row["never_ends"]) == ([4], [3], [])
    refused = await drover.alter("stranger", {key: [2, 1, 3]})
    assert "unmanaged-move" in refused.output + refused.errors
    await let_go(drover)

    async def over() -> bool:
        return await unmanaged(drover, key) is None

    await wait_for(over, "its end to be noticed", pause_s=LOOK_S)
    assert await drover.replicas(key) == (4, 1, 2)
    assert [what for what in await told(drover, key) if what.startswith("unmanaged")] == [
        "unmanaged-move-seen",
        "unmanaged-move-ended",
    ]


async def test_a_move_that_never_ends_is_found_named_and_repaired(drover: Installation) -> None:
    await drover.create_topic("stuck", {0: [3, 1, 2]}, kilobytes=8192)
    key = TopicPartition("stuck", 0)
    await throttled_copy(drover, key)
    await make_stuck(drover, key)
    await let_go(drover)

    async def named() -> bool:
        row = await unmanaged(drover, key)
        return row is not None and row["never_ends"] == [4]

    await wait_for(named, "the move that never ends to be named", pause_s=LOOK_S)
    assert "`drover repair`" in (await drover.drover("status")).output

    async def in_sync() -> bool:
        return 4 in (await drover.facts(key)).isr

    await wait_for(in_sync, "broker 4 to be in sync")
    assert (await drover.facts(key)).move is not None, "it ends by itself, other than was seen"
    mended = await drover.drover("repair", "--reason", "a re-target went wrong", "--id", "mend-stuck", "-o", "json")
    assert mended.code == 0, mended.output + mended.errors
    await drover.wait_until_settled()
    facts = await drover.facts(key)
    assert facts.move is None
    assert set(facts.replicas) == {1, 2, 3}
    assert (await drover.plan("mend-stuck")).rolled_back == 1
    assert (await told(drover, key))[-1] == "reassignment-rolled-back"
    again = await drover.drover("repair", "--partition", "stuck:0", "--reason", "once more", "-o", "json")
    assert "no-reassignment-in-progress" in again.output
    assert (await read_story(drover.connection)).faults == []


async def test_one_of_drovers_own_that_somebody_made_endless_is_taken_back_in_its_order(drover: Installation) -> None:
    await drover.create_topic("twisted", {0: [3, 1, 2]}, kilobytes=8192)
    key = TopicPartition("twisted", 0)
    await throttled_copy(drover, key)
    assert (await drover.alter("twisted", {key: [4, 1, 2]})).code == 0

    async def copying() -> bool:
        return (await drover.facts(key)).move is not None

    await wait_for(copying, "the move to be listed")
    await somebody_moves(drover, key, (1, 2, 3))
    await drover.wait_until_settled()
    await let_go(drover)
    assert await drover.replicas(key) == (3, 1, 2)
    story = await told(drover, key)
    assert [what for what in story if what in {"reassignment-blocked", "rollback-requested"}] == [
        "rollback-requested",
        "reassignment-blocked",
    ]
    assert story[-1] == "reassignment-rolled-back"
