"""How the driver waits for a delivery: as Faust would, without a task for one that need not wait."""

import asyncio

import pytest
from mode.services import Service

from agents.driver import Consumer


@pytest.fixture
async def consumer() -> Consumer:
    made = Consumer.__new__(Consumer)
    Service.__init__(made)
    return made


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
