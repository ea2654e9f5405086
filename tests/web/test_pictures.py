"""What the page looks like: every view, wide and narrow, light and dark; and the pictures of it in docs/."""

import io
import re
from pathlib import Path

import pytest
from PIL import Image, ImageStat
from playwright.async_api import expect

from bench.page_pictures import ALL, PICTURES, SCHEMES, SIZES
from tests.web.conftest import Open
from tests.web.showing import Showing

VIEWS = ("now", "plan", "brokers", "throttles", "story", "time", "review", "telemetry", "health")


@pytest.mark.parametrize("view", VIEWS)
async def test_a_view_fits_its_screen_in_light_and_dark(shown: Showing, open_page: Open, view: str) -> None:
    page = await open_page(f"{shown.address}/?view={view}")
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()
    await expect(page.locator("main > :not(.hidden):not(.banners)").first).to_be_visible()
    for width, height in SIZES:
        await page.set_viewport_size({"width": width, "height": height})
        brightness = []
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            drawn = Image.open(io.BytesIO(await page.screenshot(animations="disabled"))).convert("L")
            assert drawn.size == (width, height)
            brightness.append(ImageStat.Stat(drawn).mean[0])
            # Something is drawn on it, and not one sheet of paper.
            assert ImageStat.Stat(drawn).stddev[0] > 5
        light, dark = brightness
        assert light > 200
        assert dark < 80
        too_wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0


def test_every_picture_is_there_and_is_shown() -> None:
    wanted = {f"{one.name}-{width}-{scheme}.png" for one in ALL for width, _ in SIZES for scheme in SCHEMES}
    assert {file.name for file in PICTURES.glob("page-*.png")} == wanted
    assert set(re.findall(r"\((page-[\w-]+\.png)\)", (PICTURES / "README.md").read_text(encoding="utf-8"))) == wanted
    for name in wanted:
        width = int(name.split("-")[-2])
        with Image.open(Path(PICTURES / name)) as drawn:
            assert drawn.size == (width, dict(SIZES)[width])
