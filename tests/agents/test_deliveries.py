"""How the driver delivers: some records at a time, and without a task for a delivery that need not wait."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from mode.services import Service

from drover.agents.driver import Consumer
from drover.agents.records import BYTES_TOGETHER, RECORDS_TOGETHER, Record, delivered, in_groups


@pytest.fixture
async def consumer() -> Consumer:
    made = Consumer.__new__(Consumer)
    Service.__init__(made)
    return made


def records(*sizes: int, first: int = 0) -> list[Record]:
    """Make records of so many bytes; every third offset is missing, as after an aborted transaction."""
    found: list[Any] = [
        SimpleNamespace(
            offset=first + number + number // 2, timestamp=1000 + number, timestamp_type=1, value=bytes(size)
        )
        for number, size in enumerate(sizes)
    ]
    return found


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_what_need_not_wait_is_done_at_once_and_without_a_task(consumer: Consumer) -> None:
    async def deliver() -> tuple[int, int]:
        return 7, len(asyncio.all_tasks())

    before = len(asyncio.all_tasks())
    found = await consumer.wait_first(deliver(), for_ever())
    assert found.results == [(7, before)]
    assert not found.stopped


async def test_what_fails_at_once_raises_its_fault(consumer: Consumer) -> None:
    async def deliver() -> None:
        raise ValueError("not delivered")

    with pytest.raises(ValueError, match="not delivered"):
        await consumer.wait_first(deliver(), for_ever())


async def test_what_must_wait_goes_on_where_it_waited(consumer: Consumer) -> None:
    room, queue = asyncio.Event(), asyncio.Queue[int]()

    async def deliver() -> int:
        await room.wait()
        await asyncio.sleep(0)
        return await queue.get() + 1

    asyncio.get_running_loop().call_later(0.01, room.set)
    asyncio.get_running_loop().call_later(0.02, queue.put_nowait, 41)
    found = await consumer.wait_first(deliver(), for_ever())
    assert found.results == [42]


async def test_a_delivery_that_waits_is_given_up_when_the_flow_ends(consumer: Consumer) -> None:
    ended: list[str] = []

    async def deliver() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def flow_ends() -> str:
        await asyncio.sleep(0.01)
        return "suspended"

    found = await consumer.wait_first(deliver(), flow_ends())
    assert found.results == ["suspended"]
    await asyncio.sleep(0)
    assert ended == ["cancelled"]


async def test_a_delivery_that_fails_after_it_waited_raises_its_fault(consumer: Consumer) -> None:
    async def deliver() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("not delivered")

    with pytest.raises(ValueError, match="not delivered"):
        await consumer.wait_first(deliver(), for_ever())


def test_records_stay_in_their_order_and_a_message_holds_no_more_than_a_hundred() -> None:
    fetched = records(*[10] * 250)
    groups = list(in_groups(fetched))
    assert [len(group) for group in groups] == [RECORDS_TOGETHER, RECORDS_TOGETHER, 50]
    assert [one for group in groups for one in group] == fetched


def test_after_a_large_record_others_may_run() -> None:
    sizes = (10, BYTES_TOGETHER, 10, BYTES_TOGETHER - 1, 1, 0)
    assert [[len(one.value or b"") for one in group] for group in in_groups(records(*sizes))] == [
        [10, BYTES_TOGETHER],
        [10, BYTES_TOGETHER - 1],
        [1, 0],
    ]
    assert list(in_groups([])) == []


def test_faust_reads_on_behind_the_last_record_of_a_message() -> None:
    fetched = tuple(records(1, 2, 3, first=40))
    message = delivered(TP("drover.cancel", 3), fetched, generation=4)
    assert message.records == fetched
    assert (message.topic, message.partition, message.offset, message.generation_id) == ("drover.cancel", 3, 43, 4)


async def test_what_was_fetched_reaches_the_agent_of_its_topic_in_messages_of_some_records(consumer: Consumer) -> None:
    partition, fetched = TP("drover.alter", 1), records(*[1] * 130)

    async def fetch(active: set[TP] | None, wait_s: float) -> dict[TP, list[Record]]:
        assert (active, wait_s) == ({partition}, 1.0)
        return {partition: fetched}

    thread: Any = SimpleNamespace(getmany=fetch)
    consumer._thread = thread
    found = await consumer._getmany({partition}, 1.0)
    assert [len(group) for group in found[partition]] == [RECORDS_TOGETHER, 30]
