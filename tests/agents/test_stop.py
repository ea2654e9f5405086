"""A stop of Faust that fails half way, or takes too long, is told, and the worker goes on with its own."""

import asyncio
import threading
from contextlib import nullcontext
from typing import Any

import pytest
from aiokafka.errors import ConsumerStoppedError
from mode.threads import QueueServiceThread

from drover.agents import app
from drover.agents.app import CommandGroup
from drover.agents.driver import Consumer, closed_as_fault
from drover.agents.settings import GroupSettings
from drover.errors import GroupNotLeftError
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from tests.agents.test_intake import RecordingHost


def _group() -> CommandGroup:
    connection = LogConnection("localhost:1", TopicNames("drover"))
    return CommandGroup(GroupSettings(connection, "g", "w"), RecordingHost())


async def _process(group: CommandGroup, ended: list[str]) -> None:
    """Stop as the worker does, with something to close around it: a closed coroutine may not wait for that."""
    await _run(group, ended)


async def _run(group: CommandGroup, ended: list[str]) -> None:
    try:
        await group.stop()
    finally:
        await asyncio.sleep(0)
        ended.append("closed")


@pytest.mark.parametrize("fault", [GeneratorExit(), RuntimeError("Event loop is closed"), asyncio.CancelledError()])
async def test_a_stop_that_fails_half_way_lets_the_worker_end_in_order(
    fault: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = _group()
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def stop() -> None:
        await answer

    monkeypatch.setattr(group._app, "stop", stop)
    ended: list[str] = []
    stopping = asyncio.create_task(_process(group, ended))
    await asyncio.sleep(0)
    answer.set_exception(fault)
    await asyncio.wait((stopping,))
    assert not stopping.cancelled()
    assert stopping.exception() is None
    assert ended == ["closed"]
    assert "the group was not left in order" in capsys.readouterr().out


async def test_a_stop_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    group = _group()
    is_answered = asyncio.Event()

    async def stop() -> None:
        await is_answered.wait()

    monkeypatch.setattr(group._app, "stop", stop)
    monkeypatch.setattr(app, "LEAVE_TIMEOUT_S", 0.01)
    with pytest.raises(GroupNotLeftError):
        await group.stop()
    is_answered.set()
    await asyncio.sleep(0)


async def test_a_call_whose_coroutine_is_closed_in_the_consumers_thread_ends_as_a_fault() -> None:
    thread = QueueServiceThread()
    await thread.start()
    try:
        with pytest.raises(ConsumerStoppedError):
            await asyncio.create_task(thread.call_thread(closed_as_fault(_closed_meanwhile)))
        there = await thread.call_thread(closed_as_fault(threading.current_thread))
    finally:
        await thread.stop()
    assert there is not threading.current_thread()


@pytest.mark.parametrize("is_stopping", [True, False])
async def test_a_rejoin_that_meets_the_stop_of_the_consumer_is_no_fault(
    is_stopping: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = _group()

    async def stopped(_consumer: Consumer) -> None:
        raise ConsumerStoppedError

    monkeypatch.setattr(Consumer, "request_rejoin", stopped)
    if is_stopping:
        monkeypatch.setattr(group._app, "stop", _nothing)
        await group.stop()
    with nullcontext() if is_stopping else pytest.raises(ConsumerStoppedError):
        await group.request_rejoin()


async def _nothing() -> None: ...


async def _closed_meanwhile() -> Any:
    """What a coroutine ends with that is closed because nobody holds it any more."""
    raise GeneratorExit
