"""The page below the path of a proxy: pages, files, streams and what users send, in a real browser."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from playwright.async_api import Page, Response, expect

from drover.cli.model import parse_model
from drover.cli.page import judge
from drover.events.commands import Freeze
from drover.planner.goals import DEFAULT_LIMITS
from drover.state.cluster import ClusterState
from drover.web.surveys import Looking, PastedPlan
from tests.cli.models import write_model
from tests.client.log import CLUSTER
from tests.web.conftest import Open
from tests.web.proxy import proxy
from tests.web.scene import Scene, keys
from tests.web.showing import showing

pytestmark = pytest.mark.story

PATH = "/tools/drover/"
VIEWS = ("now", "plan", "brokers", "throttles", "story", "time", "review", "telemetry", "health")
PLAN = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}]}


class Answers:
    """What a page was answered; every address must be below the path, and there."""

    def __init__(self, page: Page, address: str) -> None:
        self.address, self.paths = address, set[str]()
        self.wrong: list[str] = []
        page.on("response", self.take)

    def take(self, response: Response) -> None:
        self.paths.add(response.url.partition("?")[0].removeprefix(self.address))
        if not response.url.startswith(self.address) or (response.status >= 400 and "telemetry" not in response.url):
            self.wrong.append(f"{response.status} {response.url}")


@pytest.fixture
def looking(tmp_path: Any) -> Looking:
    model = parse_model((tmp_path / write_model(tmp_path / "model.json")).read_text(encoding="utf-8"), "it")

    async def judging(state: ClusterState, plan: PastedPlan) -> Mapping[str, Any]:
        document = judge(model, state.name, plan, DEFAULT_LIMITS)
        return {**document, "moves": [{**move, "marks": []} for move in document["moves"]]}

    async def finding(_cluster: str) -> Mapping[str, Any]:
        raise NotImplementedError

    return Looking(judging, finding)


async def test_every_view_and_what_users_send_work_below_the_path_of_a_proxy(looking: Looking, open_page: Open) -> None:
    scene = Scene()
    scene.open_plan("friday", "bob", "new disks", 1_000_000, keys("orders", 3))
    scene.start(*keys("orders", 2))
    async with showing(scene, writes=True, looking=looking) as shown, proxy(shown.port, PATH, "ann") as address:
        page = await open_page("about:blank")
        answers = Answers(page, address)
        await page.goto(address)
        await expect(page.locator("main section.plan")).to_have_count(1)
        await expect(page.locator("header .user")).to_have_text("ann")
        for place, name in enumerate(VIEWS):
            await page.locator("#views a").nth(place).click()
            await expect(page).to_have_url(address if name == "now" else f"{address}?view={name}")
            await expect(page.locator("#views a").nth(place)).to_have_attribute("aria-current", "page")
            if name == "brokers":
                await expect(page.get_by_role("img", name="Bytes in and out of broker 5")).to_be_visible()
        await page.goto(f"{address}?view=plan&plan=friday")
        await page.locator("tr[data-href]").first.focus()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"{address}?view=story&cluster={CLUSTER}&partition=orders%3A0")
        await page.go_back()
        await expect(page.locator("tr[data-href]")).to_have_count(3)
        shown.scene.start(keys("orders", 3)[2])
        shown.refresh()
        await expect(page.locator("tr[data-href]", has_text="copying")).to_have_count(3)
        await page.get_by_role("link", name="Drover", exact=True).click()
        await expect(page).to_have_url(address)
        await page.get_by_role("button", name=f"Act on {CLUSTER}").click()
        await page.get_by_label("Freeze", exact=True).check()
        await page.get_by_label("Reason").fill("incident 7")
        await expect(page.locator(".meaning")).to_contain_text("As of log 0@")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        (sent,) = shown.sent
        assert isinstance(sent, Freeze)
        assert sent.by == "ann"
        await page.goto(f"{address}?view=review")
        await page.get_by_label("Choose a file").set_input_files(
            {"name": "plan.json", "mimeType": "application/json", "buffer": json.dumps(PLAN).encode("utf-16")}
        )
        await expect(page.locator("main")).to_contain_text("The same on the command line")
        assert answers.wrong == []
        assert await page.locator("link[rel=icon]").get_attribute("href") == "static/drover.svg"
        files = {"static/page.js", "static/base.css", "static/vendor/uPlot.css"}
        asked = {"api/stream", "api/strip", "api/plots", "api/session", "api/trial", "api/command", "api/review"}
        assert files | asked <= answers.paths
