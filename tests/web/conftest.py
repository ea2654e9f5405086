"""One browser and one server for all tests of the page; a page that complains, or asks another host, fails its test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, async_playwright, expect

from tests.web.browser import BrowserMissingError, find_browser
from tests.web.scene import busy
from tests.web.showing import Showing, showing

# Deadlines for what never comes, not measurements: a machine that runs other tests beside can take seconds for a page.
TIMEOUT_MS = 40_000
EXPECTED_WITHIN_MS = 20_000
# What a browser says by itself when a stream is cut on purpose.
CUT = ("Failed to load resource", "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED_ENCODING")

Open = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    try:
        options = find_browser().options()
    except BrowserMissingError as error:
        pytest.fail(str(error))
    expect.set_options(timeout=EXPECTED_WITHIN_MS)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(**options)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shown() -> AsyncIterator[Showing]:
    """A busy cluster in memory."""
    async with showing(busy()) as running:
        yield running


@dataclass
class Watched:
    """What the pages of one test complained about, and whom they asked."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    contexts: list[BrowserContext] = field(default_factory=list)

    def console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(part in message.text for part in CUT):
            self.errors.append(message.text)

    def request(self, request: Request) -> None:
        self.hosts.add(request.url.split("/")[2])


@pytest_asyncio.fixture(loop_scope="session")
async def watched() -> AsyncIterator[Watched]:
    found = Watched()
    yield found
    for context in found.contexts:
        await context.close()
    assert found.errors == []
    assert {host.rpartition(":")[0] for host in found.hosts} <= {"127.0.0.1"}


@pytest.fixture
def open_page(browser: Browser, watched: Watched) -> Open:
    """Open an address in a context of its own; further arguments are the context's."""

    async def opening(address: str, **context_options: object) -> Page:
        options = {"viewport": {"width": 1440, "height": 900}, "locale": "en-US", **context_options}
        context = await browser.new_context(**options)  # type: ignore[arg-type]  # passed through to Playwright
        watched.contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        page = await context.new_page()
        page.on("console", watched.console)
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on("request", watched.request)
        await page.goto(address)
        return page

    return opening
