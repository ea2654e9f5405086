"""Draw the pictures of the page in docs/pictures: `python -m bench.page_pictures`.

Over logs in memory, by the real server in a real browser: busy (500 moves), empty, and broken (a broker has failed, and
the log is cut off).
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, async_playwright, expect

from tests.web.browser import find_browser
from tests.web.scene import Scene, busy
from tests.web.showing import Showing, showing

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SIZES = ((1440, 900), (390, 844))
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# So that a plot has something to show.
SAMPLES, SAMPLE_S = 3, 0.4


@dataclass(frozen=True)
class Picture:
    """One picture: its name, what the address asks for, and whether the server goes away before it is taken."""

    name: str
    query: str
    cut: bool = False
    everywhere: bool = False


BUSY = (
    Picture("page-now", "", everywhere=True),
    Picture("page-plan", "view=plan&plan=friday-drain"),
    Picture("page-brokers", "view=brokers"),
    Picture("page-story", "view=story&partition=payments:2"),
    Picture("page-time", "view=time"),
)


async def main() -> None:
    """Draw them all."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**find_browser().options())
        async with showing(busy()) as shown:
            for picture in BUSY:
                await _draw(browser, shown, picture)
        empty = Scene()
        empty.open_plan("first", "ann", "try it", None, [])
        async with showing(empty) as shown:
            await _draw(browser, shown, Picture("page-empty", ""))
        async with showing(busy(60)) as shown:
            await _draw(browser, shown, Picture("page-cut", "", cut=True))
        await browser.close()


async def _draw(browser: Browser, shown: Showing, picture: Picture) -> None:
    sizes = SIZES if picture.everywhere else SIZES[:1]
    for width, height in sizes:
        for scheme in SCHEMES if picture.everywhere else SCHEMES[:1]:
            context = await browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                locale="en-US",
                timezone_id="UTC",
            )
            page = await context.new_page()
            await page.goto(f"{shown.address}/?{picture.query}")
            await _settle(page, shown)
            if picture.cut:
                shown.page.cut("log", "kafka-1:9092 did not answer")
                await expect(page.locator("body.cut")).to_have_count(1)
            await page.screenshot(path=PICTURES / f"{picture.name}-{width}-{scheme}.png", animations="disabled")
            await context.close()


async def _settle(page: Page, shown: Showing) -> None:
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()
    await expect(page.locator("#strip svg")).to_be_visible()
    for _ in range(SAMPLES):
        shown.refresh()
        await asyncio.sleep(SAMPLE_S)


if __name__ == "__main__":
    asyncio.run(main())
