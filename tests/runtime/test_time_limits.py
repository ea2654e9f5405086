"""A time limit ends with TimeoutError in a cancelled task, too, which asyncio's does not in Python 3.11.2."""

import asyncio

import pytest

from drover.time_limits import time_limit


async def forever() -> None:
    await asyncio.Event().wait()


async def forever_and_clean_up(ended: list[str]) -> None:
    """Wait until this is cancelled, and then clean up for longer than there is time for."""
    try:
        await forever()
    finally:
        try:
            async with time_limit(0.01):
                await forever()
        except TimeoutError:
            ended.append("too late")


async def test_what_ends_in_time_is_not_disturbed() -> None:
    async with time_limit(20):
        await asyncio.sleep(0)


async def test_without_seconds_there_is_no_limit() -> None:
    async with time_limit(None):
        await asyncio.sleep(0)


async def test_what_takes_too_long_ends_with_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit(0.01):
            await forever()


async def test_what_a_cancelled_task_still_does_ends_with_a_timeout() -> None:
    ended: list[str] = []
    task = asyncio.create_task(forever_and_clean_up(ended))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["too late"]


async def test_a_limit_inside_a_longer_one_that_is_over_ends_with_a_timeout_of_its_own() -> None:
    ended: list[str] = []

    async def limited_twice() -> None:
        async with time_limit(0.01):
            await forever_and_clean_up(ended)

    with pytest.raises(TimeoutError):
        await limited_twice()
    assert ended == ["too late"]


async def test_a_cancellation_from_outside_stays_one() -> None:
    async def limited() -> None:
        async with time_limit(20):
            await forever()

    task = asyncio.create_task(limited())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_comes_once_the_limit_is_over_is_not_lost() -> None:
    async def limited() -> None:
        async with time_limit(0.01):
            try:
                await forever()
            finally:
                task.cancel()  # as somebody outside would, before the limit has said so

    task = asyncio.create_task(limited())
    with pytest.raises(asyncio.CancelledError):
        await task
