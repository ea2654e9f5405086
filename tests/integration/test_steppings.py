"""KIP-435's swaps on a real cluster: rolled back half way, when originals have been dropped already."""

import pytest

from events.partitions import TopicPartition
from tests.integration.story import read_story
from tests.integration.support import Installation, wait_for

pytestmark = pytest.mark.cluster

COUNT = 3


async def test_swaps_that_are_rolled_back_half_way_copy_back_what_was_dropped(drover: Installation) -> None:
    await drover.create_topic("swap", {number: [1, 2] for number in range(COUNT)}, kilobytes=2048)
    keys = [TopicPartition("swap", number) for number in range(COUNT)]
    before = await drover.throttles("swap")
    options = ("--stepping", "swap", "--throttle", "500kB")
    assert (await drover.alter("swap", {key: [3, 4] for key in keys}, *options)).code == 0

    async def has_dropped() -> bool:
        lists = [moving.current for moving in (await drover.managed()).reassignments.values()]
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
