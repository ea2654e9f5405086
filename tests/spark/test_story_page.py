"""The page's Telemetry view over the tables of a real job that watched real moves."""

import pytest
from playwright.async_api import async_playwright, expect

from drover.cli.web import Tables
from drover.runtime.section_settings import SparkSettings
from drover.runtime.settings import LogSettings, Settings
from tests.integration.support import MANAGED
from tests.spark.test_story import Story, story  # noqa: F401 - it has happened by now, or happens here
from tests.web.browser import find_browser
from tests.web.scene import Scene
from tests.web.showing import showing

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(420)]


async def test_durations_refusals_and_takeovers_are_shown_with_their_age(story: Story) -> None:  # noqa: F811
    directory = str(story.files.directory)
    tables = Tables(Settings(LogSettings("nowhere:1"), spark=SparkSettings(directory=directory)))
    async with (
        showing(Scene(), telemetry=lambda _: tables.read(MANAGED)) as shown,
        async_playwright() as playwright,
    ):
        browser = await playwright.chromium.launch(**find_browser().options())
        page = await browser.new_page(locale="en-US")
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(f"{shown.address}/?view=telemetry")
        main = page.locator("main")
        # The job was told to stop.
        await expect(main).to_contain_text("no job is running")
        await expect(main).to_contain_text("they tell of the log until")
        durations = page.get_by_role("table", name="Durations")
        await expect(durations).to_contain_text("copying")
        assert await durations.locator("tbody tr").count() == len(tables.read(MANAGED)["durations"])
        await expect(page.get_by_role("table", name="Refusals")).to_contain_text("unknown-topic-or-partition")
        takeovers = page.get_by_role("table", name="Takeovers")
        assert await takeovers.locator("tbody tr").count() == len(tables.read(MANAGED)["takeovers"]) > 0
        assert complaints == []
        await browser.close()
