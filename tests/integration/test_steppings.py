"""KIP-435's swaps on a real cluster: rolled back half way, when originals have been dropped; and what racks need."""

import pytest

from drover.events.partitions import TopicPartition
from tests.integration.story import read_story
from tests.integration.support import Installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story]

COUNT = 3


async def test_swaps_that_are_rolled_back_half_way_copy_back_what_was_dropped(drover: Installation) -> None:
    await drover.create_topic("swap", {number: [1, 2] for number in range(COUNT)}, kilobytes=2048)
    keys = [TopicPartition("swap", number) for number in range(COUNT)]
    before = await drover.throttles("swap")
    options = ("--stepping", "swap", "--throttle", "500kB")
    assert (await drover.alter("swap", {key: [3, 4] for key in keys}, *options)).code == 0

    async def has_dropped() -> bool:
        lists = [moving.current for moving in (await drover.state()).reassignments.values()]
        return any(not {1, 2} <= {*replicas} for replicas in lists)

    await wait_for(has_dropped, "an original to be dropped")
    cancelled = await drover.drover("cancel", "--rollback", "--plan", "swap", "--reason", "enough")
    assert cancelled.code == 0, cancelled.errors
    await drover.wait_until_settled()
    assert [await drover.replicas(key) for key in keys] == [(1, 2)] * COUNT
    assert (await drover.plan("swap")).rolled_back == COUNT

    async def restored() -> bool:
        return await drover.throttles("swap") == before

    await wait_for(restored, "every throttle to be as before")
    story = await read_story(drover.connection)
    assert story.faults == []
    told = [event["type"] for key in keys for event in story.events[key]]
    assert "return-begun" in told


async def test_a_swap_gives_its_leader_up_early_where_its_racks_need_the_other_replica(drover: Installation) -> None:
    """Brokers 1 and 4 share a rack: with 2 gone first, the partition would be in one rack until 3 has come (S4)."""
    key = TopicPartition("racks", 0)
    await drover.create_topic("racks", {0: [1, 2]})
    assert (await drover.alter("racks", {key: [4, 3]}, "--stepping", "swap")).code == 0
    await drover.wait_until_settled()
    story = await read_story(drover.connection)
    sent = [event["replicas"] for event in story.events[key] if event["type"] == "call-intended"]
    assert sent == [[4, 1, 2], [4, 2], [4, 3]]
    assert story.terminal(key) == ["reassignment-completed"]
