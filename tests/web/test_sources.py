"""A page whose source has failed says so, whatever has failed, and follows it again; how often it is computed."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drover.client.live_view import View
from drover.errors import LogUnavailableError
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from drover.local import wait_until
from drover.web import sources
from drover.web.page_state import PageState
from drover.web.present import Present
from drover.web.sources import Sources
from tests.web.scene import Scene


async def nothing(_: Sources) -> None:
    await asyncio.Event().wait()


async def no_past(_: Sources, present: Present, until: dict[int, int]) -> None:
    present.archive.complete()


@pytest.mark.parametrize("fault", [LogUnavailableError("it is away"), RecursionError("too deep")], ids=["known", "any"])
async def test_a_source_that_fails_cuts_the_page_and_is_followed_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    scene, page, is_well, failures = Scene(), PageState(), asyncio.Event(), 0

    async def watch(*_: Any) -> AsyncIterator[View]:
        nonlocal failures
        if not is_well.is_set():
            failures += 1
            raise fault
        yield scene.view
        await asyncio.Event().wait()

    caplog.set_level("INFO", logger=sources.__name__)

    monkeypatch.setattr(sources, "watch", watch)
    monkeypatch.setattr(sources, "RETRY_S", 0.05)
    monkeypatch.setattr(Sources, "_look_at_ends", nothing)
    monkeypatch.setattr(Sources, "_follow_dead_letters", nothing)
    monkeypatch.setattr(Sources, "_read_past", no_past)
    following = asyncio.create_task(Sources(LogConnection("127.0.0.1:1", TopicNames()), page).run())
    try:
        await wait_until(lambda: page.standing["cut_since_ms"] is not None, what="the page to say so")
        assert str(fault) in page.standing["cut_why"]
        await wait_until(lambda: failures > 2, what="the page to try again")
        is_well.set()
        await wait_until(lambda: page.standing["cut_since_ms"] is None, what="the page to follow again")
        assert not following.done()
        # Not at every try: a log that is away for a night must not fill a disk.
        refused, again = (record.getMessage() for record in caplog.records)
        assert refused.startswith("the page cannot follow the log")
        assert again == "the page follows the log again"
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_page_that_waits_for_the_processor_is_not_slowed_down_further(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, page, refreshed = Scene(), PageState(), 0

    async def watch(*_: Any) -> AsyncIterator[View]:
        while True:
            yield scene.view

    def refresh(_: PageState) -> None:
        nonlocal refreshed
        refreshed += 1
        time.sleep(0.2)  # time passes without processor time, as while other processes run

    monkeypatch.setattr(sources, "watch", watch)
    # By the time that a refresh takes, each would wait for more than three minutes.
    monkeypatch.setattr(sources, "BUSY_SHARE", 0.001)
    monkeypatch.setattr(PageState, "refresh", refresh)
    monkeypatch.setattr(Sources, "_look_at_ends", nothing)
    monkeypatch.setattr(Sources, "_follow_dead_letters", nothing)
    monkeypatch.setattr(Sources, "_read_past", no_past)
    following = asyncio.create_task(Sources(LogConnection("127.0.0.1:1", TopicNames()), page).run())
    try:
        await wait_until(lambda: refreshed > 2, what="the page to be computed three times")
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
