"""A page whose source has failed says so, whatever has failed, and follows it again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drover.client.watching import View
from drover.errors import LogUnavailableError
from drover.journal.connection import LogConnection
from drover.local import wait_until
from drover.web import sources
from drover.web.page_state import PageState
from drover.web.present import Present
from drover.web.sources import Sources
from events.topics import TopicNames
from tests.web.scene import Scene


async def nothing(_: Sources) -> None:
    await asyncio.Event().wait()


async def no_past(_: Sources, present: Present, until: dict[int, int]) -> None:
    present.archive.complete()


@pytest.mark.parametrize("fault", [LogUnavailableError("it is away"), RecursionError("too deep")], ids=["known", "any"])
async def test_a_source_that_fails_cuts_the_page_and_is_followed_again(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    scene, page, is_well = Scene(), PageState(), asyncio.Event()

    async def watch(*_: Any) -> AsyncIterator[View]:
        yield scene.view
        if not is_well.is_set():
            raise fault
        await asyncio.Event().wait()

    monkeypatch.setattr(sources, "watch", watch)
    monkeypatch.setattr(sources, "RETRY_S", 0.05)
    monkeypatch.setattr(Sources, "_look_at_ends", nothing)
    monkeypatch.setattr(Sources, "_follow_dead_letters", nothing)
    monkeypatch.setattr(Sources, "_read_past", no_past)
    following = asyncio.create_task(Sources(LogConnection("127.0.0.1:1", TopicNames()), page).run())
    try:
        await wait_until(lambda: page.standing["cut_since_ms"] is not None, what="the page to say so")
        assert str(fault) in page.standing["cut_why"]
        is_well.set()
        await wait_until(lambda: page.standing["cut_since_ms"] is None, what="the page to follow again")
        assert not following.done()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
