"""Draw the pictures of an audit's page in docs/pictures: `python -m bench.audit_pictures`.

Of a simulated log that the tests keep, folded without Spark, in a real browser: wide and narrow, light, dark and as it
is printed.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, async_playwright

from bench.page_pictures import PICTURES
from drover.spark.audit.page import Made, page
from drover.spark.audit.parts import Wish
from drover.spark.audit.report import report
from drover.spark.audit.shard_report import ShardReport, Wanted
from drover.spark.audit.shards import audited
from drover.spark.folding.parts import Stored
from tests.simulation import golden
from tests.web.browser import find_browser

SEED = 233
MADE_MS = 1_700_000_060_000
EVERYTHING = Wish()
Scheme = Literal["light", "dark"]
Media = Literal["screen", "print"]
SHOTS: tuple[tuple[int, Scheme, Media], ...] = (
    (1400, "light", "screen"),
    (1400, "dark", "screen"),
    (420, "light", "screen"),
    (420, "dark", "screen"),
    (1400, "light", "print"),
)
HEIGHT = 1500
# Where the tables are drawn, too.
TABLES = {(1400, "light"), (420, "dark")}


def audit_page() -> str:
    """Make the page of the audit of a kept log."""
    log = golden.read(golden.FOLDER / f"seed-{SEED}.msgpack.zlib")
    records = [
        Stored(is_sample=False, partition=shard, offset=offset, appended_ms=0, value=value)
        for shard, kept in enumerate(log.shards)
        for offset, value in enumerate(kept.records)
    ]
    ends = {shard: len(kept.records) for shard, kept in enumerate(log.shards)}
    shards = [one for one in audited(records, EVERYTHING, Wanted()) if isinstance(one, ShardReport)]
    made = Made(log="drover.events", version="0.1.0", made_ms=MADE_MS, end_ms=MADE_MS)
    return page(report(shards, EVERYTHING, dict.fromkeys(ends, 0), ends), made)


async def main() -> None:
    """Draw them all."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "audit.html"
        file.write_text(audit_page(), encoding="utf-8")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(**find_browser().options())
            for width, scheme, media in SHOTS:
                await _draw(browser, file, width, scheme, media)
            await browser.close()


async def _draw(browser: Browser, file: Path, width: int, scheme: Scheme, media: Media) -> None:
    context = await browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
    shown = await context.new_page()
    await shown.emulate_media(media=media, color_scheme=scheme)
    await shown.goto(file.as_uri())
    name = "print" if media == "print" else scheme
    await shown.screenshot(path=PICTURES / f"audit-{width}-{name}.png", animations="disabled")
    if (width, name) in TABLES:
        await shown.evaluate("document.getElementById('plans').scrollIntoView()")
        await shown.screenshot(path=PICTURES / f"audit-tables-{width}-{name}.png", animations="disabled")
    await context.close()


if __name__ == "__main__":
    asyncio.run(main())
