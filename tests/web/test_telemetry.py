"""The Telemetry view over tables as Spark's job writes them; `tests/spark` reads those of a real job."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from drover.events.partitions import TopicPartition
from drover.events.refusals import RefusalCode
from tests.web.conftest import Open
from tests.web.scene import Scene, keys
from tests.web.showing import showing
from tests.web.tables import tables_of

pytestmark = pytest.mark.story


def scene_of() -> Scene:
    scene = Scene()
    moves = keys("orders", 4)
    scene.open_plan("friday", "ann", "drain broker 1", None, moves)
    scene.start(*moves)
    scene.complete(*moves[:3])
    scene.refuse("alter-2", "<b>bob</b>", RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic oders")
    scene.be_taken_over("worker-2")
    scene.start(TopicPartition("orders", 3))
    return scene


async def test_durations_refusals_and_takeovers_are_shown_with_their_age(tmp_path: Path, open_page: Open) -> None:
    scene = scene_of()
    tables = tables_of(scene, tmp_path)
    async with showing(scene, telemetry=lambda _: tables.read()) as shown:
        page = await open_page(f"{shown.address}/?view=telemetry")
        main = page.locator("main")
        # A job that has never said anything does not run.
        await expect(main).to_contain_text("no job is running")
        await expect(main).to_contain_text("they tell of the log until")
        await expect(main.locator("time.age").first).to_be_visible()
        durations = page.get_by_role("table", name="Durations").locator("tbody tr")
        await expect(durations.filter(has_text="completed")).to_contain_text("3")
        await expect(durations.filter(has_text="copying")).to_be_visible()
        refusals = page.get_by_role("table", name="Refusals")
        await expect(refusals).to_contain_text("<b>bob</b>")
        await expect(refusals).to_contain_text("unknown-topic-or-partition")
        # Genesis' owner and its successor.
        takeovers = page.get_by_role("table", name="Takeovers").locator("tbody tr td")
        await expect(takeovers.nth(2)).to_have_text("2")
        tables.touch()
        await page.reload()
        await expect(main).to_contain_text("the job is running")


async def test_without_tables_the_page_says_how_to_get_them(open_page: Open) -> None:
    async with showing(Scene(), telemetry=lambda _: {"missing": "run `drover spark run`"}) as shown:
        page = await open_page(f"{shown.address}/?view=telemetry")
        await expect(page.locator("main")).to_contain_text("run `drover spark run`")
