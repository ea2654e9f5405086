"""Draw the pictures of the page in docs/pictures: `python -m tests.web.pictures [NAME ...]`.

Over logs in memory, by the real server in a real browser: every view of a busy cluster (500 moves), a cluster on which
nothing happens, and what is broken (the log is cut off, nobody owns the shard), at two sizes, light and dark.
"""

import asyncio
import io
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright, expect

from drover.cli.model import parse_model
from drover.cli.page import judge, others_document
from drover.client.views.found_throttles import FoundEntries, FoundRates, Whose
from drover.planner.goals import DEFAULT_LIMITS
from drover.planner.model import ClusterModel
from drover.state.cluster import ClusterState
from drover.web.plots import EVERY_MS, POINTS
from drover.web.surveys import Looking, PastedPlan
from tests.cli.models import write_model
from tests.client.log import CLUSTER
from tests.web.browser import find_browser
from tests.web.scene import Scene, busy
from tests.web.showing import USER_HEADER, Showing, showing
from tests.web.tables import tables_of

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SIZES = ((1440, 900), (390, 844))
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
COLOURS = 256
# The square of the distance of two colours that nobody tells apart at the edge of a letter.
SAME_SHADE = 40
# So that a plot has something to show.
SAMPLES, SAMPLE_S = 3, 0.4
PLAN = {
    "version": 1,
    "partitions": [
        {"topic": "orders", "partition": 1, "replicas": [5, 3, 1]},
        {"topic": "orders", "partition": 2, "replicas": [3, 1, 6]},
        {"topic": "orders", "partition": 3, "replicas": [1, 2, 3]},
    ],
}

# What others have left in the cluster.
RATES = (FoundRates(2, 5_000_000, 5_000_000, Whose.LEFTOVER, "left over: no move needs it"),)
ENTRIES = (
    FoundEntries("clicks", ("0:1", "1:2"), ("0:4",), Whose.LEFTOVER, "left over: their partitions are not moving"),
    FoundEntries("audit-log", ("*",), (), Whose.THEIRS, "every replica, or partitions that others move"),
)

Preparing = Callable[[Page, Showing], Awaitable[None]]


async def _nothing(_page: Page, _shown: Showing) -> None:
    return


async def _judged(page: Page, _shown: Showing) -> None:
    await page.get_by_label("A plan").fill(json.dumps(PLAN))
    await page.get_by_label("Throttle", exact=True).fill("40MB/s")
    await page.get_by_role("button", name="Judge").click()
    await expect(page.locator(".problems")).to_be_visible()


async def _asked(page: Page, _shown: Showing) -> None:
    await page.get_by_role("button", name="Act on friday-drain").click()
    await page.get_by_label("Roll back").check()
    await expect(page.locator(".meaning")).to_contain_text("As of log")
    await page.get_by_label("Reason").fill("latency alarm")


async def _looked_for_strays(page: Page, _shown: Showing) -> None:
    await page.get_by_role("button", name="Look at the cluster").click()
    await expect(page.get_by_text("2 leftover throttles")).to_be_visible()


async def _cut(page: Page, shown: Showing) -> None:
    shown.page.cut("log", "kafka-1:9092 did not answer")
    await expect(page.locator("body.cut")).to_have_count(1)


async def _looked_back(page: Page, _shown: Showing) -> None:
    for _ in range(2):
        await page.get_by_role("link", name="10 minutes").first.click()
    await expect(page.locator("main")).to_contain_text("20 min ago")
    await expect(page.locator("main table").first.locator("tbody tr").first).to_be_visible()


@dataclass(frozen=True)
class Picture:
    """One picture: its name, the scene, what the address asks for, and what is done before it is taken."""

    name: str
    scene: str
    query: str = ""
    prepare: Preparing = _nothing


ALL = (
    Picture("page-now", "busy"),
    Picture("page-plan", "busy", "view=plan&plan=friday-drain"),
    Picture("page-brokers", "busy", "view=brokers"),
    Picture("page-throttles", "busy", "view=throttles", _looked_for_strays),
    Picture("page-story", "busy", "view=story&partition=payments:2"),
    Picture("page-time", "busy", "view=time", _looked_back),
    Picture("page-review", "busy", "view=review", _judged),
    Picture("page-telemetry", "busy", "view=telemetry"),
    Picture("page-health", "busy", "view=health"),
    Picture("page-act", "busy", "", _asked),
    Picture("page-empty", "empty"),
    Picture("page-cut", "few", "", _cut),
    Picture("page-ownerless", "ownerless"),
)


async def main(names: list[str]) -> None:
    """Draw those that are named, or all."""
    wanted = [picture for picture in ALL if not names or picture.name in names]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**find_browser().options())
        for scene in dict.fromkeys(picture.scene for picture in wanted):
            async with _shown(scene) as shown:
                for picture in wanted:
                    if picture.scene == scene:
                        await _draw(browser, shown, picture)
        await browser.close()


@asynccontextmanager
async def _shown(name: str) -> AsyncIterator[Showing]:
    scene = {"busy": busy, "few": lambda: busy(60), "ownerless": lambda: busy(60), "empty": _empty}[name]()
    with tempfile.TemporaryDirectory(prefix="drover-pictures-") as folder:
        tables = tables_of(scene, Path(folder) / "spark")
        model = _model(Path(folder))

        async def review(state: ClusterState, plan: PastedPlan) -> Mapping[str, Any]:
            return judge(model, state.name, plan, DEFAULT_LIMITS)

        async def find_throttles(_: str) -> Mapping[str, Any]:
            return others_document(RATES, ENTRIES, time.time_ns() // 1_000_000)

        def telemetry(_: str | None) -> Mapping[str, Any]:
            tables.touch()
            return tables.read()

        async with showing(scene, writes=True, looking=Looking(review, find_throttles), telemetry=telemetry) as shown:
            _remember_rates(shown)
            if name == "ownerless":
                scene.fall_silent()
            yield shown


def _remember_rates(shown: Showing) -> None:
    """Give each broker that copies now ten minutes of rates, as the page would have seen them."""
    shown.refresh()
    now_ms = shown.scene.view.now_ms
    for broker, points in shown.page.plots.of(CLUSTER).items():
        _, rate_in, rate_out = points[-1]
        past = []
        for number in range(POINTS - 1):
            share = min(1.0, number / 60) * (0.85 + 0.15 * math.sin(number / 17 + int(broker)))
            past.append((now_ms - (POINTS - number) * EVERY_MS, round(rate_in * share), round(rate_out * share)))
        known = shown.page.plots.points[CLUSTER][int(broker)]
        known.extendleft(reversed(past))


def _model(folder: Path) -> ClusterModel:
    return parse_model(Path(write_model(folder / "model.json")).read_text(encoding="utf-8"), "the model")


def _empty() -> Scene:
    scene = Scene()
    scene.open_plan("first", "ann", "try it", None, [])
    return scene


async def _draw(browser: Browser, shown: Showing, picture: Picture) -> None:
    # Where nobody acts, the page is drawn as it is without a proxy.
    headers = {USER_HEADER: "ann@example.com"} if picture.prepare is _asked else None
    for width, height in SIZES:
        for scheme in SCHEMES:
            context = await browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                locale="en-US",
                timezone_id="UTC",
                extra_http_headers=headers,
            )
            page = await context.new_page()
            await page.goto(f"{shown.address}/?{picture.query}")
            await _settle(page, shown)
            await picture.prepare(page, shown)
            taken = await page.screenshot(animations="disabled")
            _save(taken, PICTURES / f"{picture.name}-{width}-{scheme}.png")
            shown.page.restore("log")
            await context.close()


def _save(taken: bytes, file: Path) -> None:
    """Keep the page's colours exactly, and of the shades at the edges of letters the nearest: a third as large."""
    drawn = Image.open(io.BytesIO(taken)).convert("RGB")
    content = drawn.tobytes()
    pixels = [content[at : at + 3] for at in range(0, len(content), 3)]
    kept: list[bytes] = []
    nearest: dict[bytes, int] = {}
    for shade, _ in Counter(pixels).most_common():
        found = min(range(len(kept)), key=lambda number: _distance(kept[number], shade), default=None)
        if found is None or (len(kept) < COLOURS and _distance(kept[found], shade) > SAME_SHADE):
            found = len(kept)
            kept.append(shade)
        nearest[shade] = found
    small = Image.new("P", drawn.size)
    small.putdata([nearest[pixel] for pixel in pixels])
    small.putpalette(b"".join(kept))
    small.save(file, optimize=True)


def _distance(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


async def _settle(page: Page, shown: Showing) -> None:
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()
    await expect(page.locator("#strip svg")).to_be_visible()
    for _ in range(SAMPLES):
        shown.scene.keep_copying()
        shown.refresh()
        await asyncio.sleep(SAMPLE_S)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
