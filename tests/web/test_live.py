"""`drover web` on a real cluster, in a real browser, while a worker moves replicas."""

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect
from rich.console import Console

from drover.cli.local import Stage
from drover.cli.local import page as page_of_demo
from drover.client.client import Client
from drover.cluster.port import AddThrottledReplicas, RemoveThrottledReplicas
from drover.events.commands import Freeze, Unfreeze
from drover.events.partitions import TopicPartition
from drover.facts import ThrottledReplicas
from drover.local import LocalCluster
from tests.integration.support import MANAGED, Installation, installation, wait_for
from tests.web.conftest import Open
from tests.web.showing import USER_HEADER

pytestmark = [pytest.mark.cluster, pytest.mark.story]
ADDRESS = re.compile(r"The page is at (http://127\.0\.0\.1:\d+)/")
RECORDED = 60
# A review looks at all of the cluster.
CLUSTER_LOOKED_AT_MS = 30_000
# Every view, while replicas move, and something that it says.
VIEWS = {
    "Plan": "seen:0", "Brokers": "of 200.0", "Throttles": "in force", "Story": "friday", "Time": "seen:0",
    "Review": "nothing is sent", "Telemetry": "drover spark run", "Health": "solo",
}  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def drover(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(local_cluster, tmp_path_factory.mktemp("page"), "page") as made:
        with made.config.open("a", encoding="utf-8") as config:
            config.write(f'\n[web]\nwrites = true\nuser_header = "{USER_HEADER}"\n')
        await made.start_worker("solo")
        await made.start("web", "web", "--listen", "127.0.0.1:0")
        await made.wait_until_owned("solo")
        yield made


async def address(drover: Installation, name: str = "web") -> str:
    """Wait until the page is served and return where."""

    async def is_served() -> bool:
        return ADDRESS.search(drover.processes[name].log_text()) is not None

    await wait_for(is_served, "the page to be served")
    found = ADDRESS.search(drover.processes[name].log_text())
    assert found is not None
    return found.group(1)


async def test_every_view_is_clicked_through_while_replicas_move(drover: Installation, open_page: Open) -> None:
    await drover.create_topic("seen", {0: [1, 2, 3], 1: [2, 3, 1]}, kilobytes=4096)
    first, second = TopicPartition("seen", 0), TopicPartition("seen", 1)
    place = await address(drover)
    sent = await drover.alter("friday", {first: [4, 2, 3], second: [4, 3, 1]}, "--throttle", "200kB")
    assert sent.code == 0, sent.errors
    page = await open_page(place)
    plan = page.get_by_role("region", name="Plan friday")
    await expect(plan.locator("tr[data-key='seen:0']")).to_contain_text("copying")
    await expect(plan.locator("tr[data-key='seen:0'] progress")).to_be_visible()
    await expect(page.get_by_role("link", name="Moves of broker 4")).to_be_visible()
    for view, said in VIEWS.items():
        await page.locator("#views a", has_text=view).click()
        await expect(page.locator("#views a[aria-current]")).to_contain_text(view)
        await expect(page.locator("main")).to_contain_text(said)
    await page.locator("#views a", has_text="Plan").click()
    await expect(page.locator("tr[data-key='seen:0']")).to_contain_text("copying")
    # As a user whom a proxy names: what the page shows of the command is what the worker recorded.
    acting = await open_page(f"{place}/?view=plan&plan=friday", extra_http_headers={USER_HEADER: "ann"})
    await acting.get_by_role("button", name="Act on friday").click()
    await acting.get_by_label("Roll back").check()
    await expect(acting.locator(".meaning")).to_contain_text("seen 0-1")
    await acting.get_by_label("Reason").fill("latency alarm")
    await acting.get_by_role("button", name="Send").click()
    await expect(acting.get_by_role("status").last).to_contain_text("accepted · 2 partitions · recorded at log")
    assert '"by": "ann"' in drover.processes["web"].log_text()
    await page.goto(f"{place}/?view=story&partition=seen:0")
    await drover.wait_until_settled()
    await expect(page.locator("main tbody tr").first).to_contain_text("reassignment rolled back")
    await expect(page.locator("main")).to_contain_text("latency alarm")
    await page.locator("#views a", has_text="Time").click()
    moment = page.get_by_label("Moment")
    await expect(moment).to_be_enabled()
    await moment.focus()
    await page.keyboard.press("Home")
    await expect(page.locator("main")).to_contain_text("begun and ended")
    await page.locator("#views a", has_text="Health").click()
    await expect(page.locator("main tbody tr").first).to_contain_text("solo")


async def test_the_cluster_itself_is_looked_at_for_a_review_and_for_strays(
    drover: Installation, open_page: Open
) -> None:
    await drover.create_topic("looked-at", {0: [1, 2, 3]})
    entries = ThrottledReplicas(("0:1",), ("0:3",))
    await drover.change_throttles(AddThrottledReplicas("looked-at", entries))
    place = await address(drover)
    page = await open_page(f"{place}/?view=throttles")
    await page.get_by_role("button", name="Look at the cluster").click()
    stray = page.get_by_role("table", name="Throttled replicas of others").locator("tr", has_text="looked-at")
    await expect(stray).to_contain_text("left over", timeout=CLUSTER_LOOKED_AT_MS)
    await drover.driver.change_throttles([RemoveThrottledReplicas("looked-at", entries)])
    await page.locator("#views a", has_text="Review").click()
    plan = {"partitions": [{"topic": "looked-at", "partition": 0, "replicas": [4, 2, 3]}]}
    await page.get_by_label("A plan").fill(json.dumps(plan))
    await page.get_by_role("button", name="Judge").click()
    judged = page.locator("tr[data-key='looked-at:0']")
    await expect(judged).to_contain_text("another preferred leader", timeout=CLUSTER_LOOKED_AT_MS)


async def test_what_is_recorded_is_pushed_to_the_page_which_asks_for_nothing(
    drover: Installation, open_page: Open
) -> None:
    page = await open_page(f"{await address(drover)}/?view=now")
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()
    # Each change of the banner that the browser sees.
    await page.evaluate("""() => {
        window.seen = {};
        const look = () => {
            const banner = document.querySelector('main').textContent.match(/reason (\\d+)/);
            if (banner) window.seen[banner[1]] = true;
        };
        new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true});
    }""")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    async with Client(drover.connection) as client:
        for number in range(RECORDED):
            freeze = Freeze(id=f"freeze-{number}", cluster=MANAGED, by="ann", reason=f"reason {number}")
            await client.outcomes([await client.submit(freeze)], 30)
            await page.wait_for_function("number => window.seen[number] !== undefined", arg=str(number))
            unfreeze = Unfreeze(id=f"unfreeze-{number}", cluster=MANAGED, by="ann", reason="on")
            await client.outcomes([await client.submit(unfreeze)], 30)
    # The strip of the progress is drawn by the server, now and then.
    assert [url for url in requests if "/api/strip" not in url] == []


async def test_a_killed_worker_and_a_killed_page_are_told_and_come_back(drover: Installation, open_page: Open) -> None:
    place = await address(drover)
    page = await open_page(place)
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()
    await drover.processes["solo"].kill()
    await expect(page.locator(".banner.bad")).to_contain_text("No worker owns", timeout=30_000)
    await drover.processes["web"].kill()
    await expect(page.locator("body.cut")).to_have_count(1)
    await expect(page.get_by_role("status").first).to_contain_text("The page's server does not answer")
    await drover.start_worker("solo")
    await drover.start("web", "web", "--listen", place.removeprefix("http://"))
    await expect(page.locator("body.cut")).to_have_count(0, timeout=30_000)
    await expect(page.locator(".banner.bad")).to_have_count(0, timeout=30_000)
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()


async def test_the_demo_serves_the_page_until_it_is_told_to_stop(
    drover: Installation, open_page: Open, tmp_path: Path
) -> None:
    told = io.StringIO()
    stage = Stage(Console(file=told, width=200), tmp_path, drover.config)

    async def play() -> None:
        async with page_of_demo(stage, shown=True):
            pass

    playing = asyncio.create_task(play())

    async def is_told() -> bool:
        return "Ctrl-C shuts everything down" in told.getvalue()

    await wait_for(is_told, "the demo to say where its page is")
    found = re.search(r"Watch it in a browser: (http://\S+)/", told.getvalue())
    assert found is not None
    page = await open_page(found.group(1))
    await expect(page.locator("#views a")).to_have_count(9)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing


async def test_a_page_that_is_told_to_stop_ends_cleanly(drover: Installation) -> None:
    await drover.start("second-web", "web", "--listen", "127.0.0.1:0")
    assert await address(drover, "second-web") != await address(drover)
    assert await drover.processes["second-web"].stop() == 0
