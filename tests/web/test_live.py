"""`drover web` on a real cluster, in a real browser, while a worker moves replicas."""

import asyncio
import re
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from drover.local import LocalCluster
from events.partitions import TopicPartition
from tests.integration.support import DROVER, Installation, installation, wait_for
from tests.web.conftest import Open
from tests.web.showing import USER_HEADER

pytestmark = pytest.mark.cluster
ADDRESS = re.compile(r"The page is at (http://127\.0\.0\.1:\d+)/")
RECORDED = 12
# A review looks at all of the cluster.
CLUSTER_LOOKED_AT_MS = 30_000
# Every view, while replicas move, and something that it says.
VIEWS = {
    "plan": "seen:0", "brokers": "of 300.0", "throttles": "in force", "story": "friday", "time": "seen:0",
    "review": "nothing is sent", "telemetry": "drover spark run", "health": "solo",
}  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def drover(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(local_cluster, tmp_path_factory.mktemp("page"), "page") as made:
        with made.config.open("a", encoding="utf-8") as config:
            config.write(f'\n[web]\nwrites = true\nuser_header = "{USER_HEADER}"\n')
        await made.start_worker("solo")
        await made.start("web", *DROVER, "web", "--listen", "127.0.0.1:0")
        await made.wait_until_owned("solo")
        yield made


async def address(drover: Installation, name: str = "web") -> str:
    """Wait until the page is served and return where."""

    async def is_served() -> bool:
        return ADDRESS.search(drover.worker_log(name)) is not None

    await wait_for(is_served, "the page to be served")
    found = ADDRESS.search(drover.worker_log(name))
    assert found is not None
    return found.group(1)


async def test_a_real_move_is_seen_from_the_command_to_its_end_and_in_the_past(
    drover: Installation, open_page: Open
) -> None:
    await drover.create_topic("seen", {0: [1, 2, 3], 1: [2, 3, 1]}, kilobytes=4096)
    first, second = TopicPartition("seen", 0), TopicPartition("seen", 1)
    place = await address(drover)
    sent = await drover.alter("friday", {first: [4, 2, 3], second: [4, 3, 1]}, "--throttle", "300kB")
    assert sent.code == 0, sent.errors
    page = await open_page(place)
    plan = page.get_by_role("region", name="Plan friday")
    await expect(plan.locator("tr[data-key='seen:0']")).to_contain_text("copying")
    await expect(plan.locator("tr[data-key='seen:0'] progress")).to_be_visible()
    await expect(page.get_by_role("link", name="Moves of broker 4")).to_be_visible()
    for view, said in VIEWS.items():
        await page.goto(f"{place}/?view={view}")
        await expect(page.locator("main")).to_contain_text(said)
    await page.goto(f"{place}/?view=throttles")
    await expect(page.locator("tr[data-key='4']")).to_contain_text("300.0")
    # As a user whom a proxy names: what the page shows of the command is what the worker recorded.
    acting = await open_page(f"{place}/?view=plan&plan=friday", extra_http_headers={USER_HEADER: "ann"})
    await acting.get_by_role("button", name="Act on friday").click()
    await acting.get_by_label("Roll back").check()
    await expect(acting.locator(".meaning")).to_contain_text("seen 0-1")
    await acting.get_by_label("Reason").fill("latency alarm")
    await acting.get_by_role("button", name="Send").click()
    await expect(acting.get_by_role("status").last).to_contain_text("accepted · 2 partitions · recorded at log")
    assert '"by": "ann"' in drover.worker_log("web")
    await page.goto(f"{place}/?view=story&partition=seen:0")
    await drover.wait_until_settled()
    await expect(page.locator("main tbody tr").first).to_contain_text("reassignment rolled back")
    await expect(page.locator("main")).to_contain_text("latency alarm")
    await page.goto(f"{place}/?view=time")
    await page.get_by_label("Moment").focus()
    await page.keyboard.press("Home")
    await expect(page.locator("main")).to_contain_text("begun and ended")
    await page.goto(f"{place}/?view=review")
    await page.get_by_label("A plan").fill('{"partitions": [{"topic": "seen", "partition": 0, "replicas": [4, 2, 3]}]}')
    await page.get_by_role("button", name="Judge").click()
    judged = page.locator("tr[data-key='seen:0']")
    await expect(judged).to_contain_text("another preferred leader", timeout=CLUSTER_LOOKED_AT_MS)
    await page.goto(f"{place}/?view=health")
    await expect(page.locator("main tbody tr").first).to_contain_text("solo")


async def test_what_is_recorded_is_on_the_page_within_a_second(drover: Installation, open_page: Open) -> None:
    page = await open_page(f"{await address(drover)}/?view=now")
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()
    # When the browser sees each change of the banner, by the browser's own clock.
    await page.evaluate("""() => {
        window.seen = {};
        const look = () => {
            const found = document.querySelector('main').textContent.match(/reason (\\d+)/);
            if (found) window.seen[found[1]] ??= Date.now();
        };
        new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true});
    }""")
    recorded_ms: dict[str, float] = {}
    for number in range(RECORDED):
        verb = "unfreeze" if number % 2 else "freeze"
        done = await drover.drover(verb, "--reason", f"reason {number}", "-o", "json")
        assert done.code == 0, done.errors
        recorded_ms[str(number)] = done.document["outcomes"][0]["at_ms"]
        if verb == "freeze":
            await expect(page.locator("main")).to_contain_text(f"reason {number}")
    seen_ms = await page.evaluate("window.seen")
    took_ms = sorted(seen_ms[number] - recorded_ms[number] for number in seen_ms)
    assert len(took_ms) == RECORDED // 2
    assert took_ms[-1] <= 1_000, took_ms


async def test_a_page_that_is_told_to_stop_ends_at_once(drover: Installation) -> None:
    await drover.start("second-web", *DROVER, "web", "--listen", "127.0.0.1:0")
    assert await address(drover, "second-web") != await address(drover)
    process = drover.workers["second-web"]
    began_s = time.monotonic()
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 10) == 0
    assert time.monotonic() - began_s < 5
