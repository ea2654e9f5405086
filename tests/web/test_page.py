"""The page in a real browser, over a log in memory."""

import asyncio
import io
import re
from pathlib import Path
from typing import Literal

import pytest
from PIL import Image, ImageStat
from playwright.async_api import Page, Route, expect

from drover.events.brokers import BlacklistSet, BrokerFailureRecorded
from drover.events.clusters import BrokerHeld
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanFinished
from drover.events.reassignments import Blocker
from drover.web.query import ViewName
from tests.client.log import CLUSTER
from tests.web.conftest import Open
from tests.web.scene import Scene, busy, freeze, keys, now_ms
from tests.web.showing import Showing, showing
from tests.web.wire import wire_to

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
VIEWS = (*(view for view in ViewName if view is not ViewName.FRAME), "time", "telemetry", "review")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"> \u202e\x1b[31m" + "w" * 200


async def drawn(page: Page) -> None:
    await expect(page.locator("header .dot:not(.off)")).to_be_visible()


@pytest.mark.parametrize("view", VIEWS)
async def test_every_view_is_accessible_and_fits_its_screen_in_light_and_dark(
    shown: Showing, open_page: Open, view: str
) -> None:
    page = await open_page(f"{shown.address}/?view={view}", bypass_csp=True)
    await drawn(page)
    if view not in {"telemetry", "review"}:
        await expect(page.locator("main :is(td, .broker, .figures)").first).to_be_visible()
    await page.add_script_tag(path=str(AXE))
    for width, height in ((390, 844), (1440, 900)):
        await page.set_viewport_size({"width": width, "height": height})
        brightness = []
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            looks = Image.open(io.BytesIO(await page.screenshot(animations="disabled"))).convert("L")
            brightness.append(ImageStat.Stat(looks).mean[0])
            # Something is on it, and it is not one sheet of paper.
            assert ImageStat.Stat(looks).stddev[0] > 5
        assert brightness[0] > 200
        assert brightness[1] < 80
        assert await page.evaluate(TOO_WIDE) <= 0
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300])
            for one in found["violations"]
            if one["impact"] in {"serious", "critical"}
        ]
        assert serious == []


async def test_now_shows_every_plan_with_its_bars_and_reasons(shown: Showing, open_page: Open) -> None:
    page = await open_page(shown.address)
    plan = page.get_by_role("region", name="Plan friday-drain")
    await expect(plan).to_contain_text("drain broker 1")
    await expect(plan).to_contain_text("83 completed")
    blocked = plan.locator("tr[data-key='payments:2']")
    await expect(blocked).to_contain_text("dead-destination")
    await expect(blocked).to_contain_text("Broker 4 must return")
    await expect(blocked.get_by_role("progressbar")).to_have_attribute("value", re.compile(r"17\.\d"))
    await expect(page.locator(".banner.bad")).to_contain_text("Brokers reported as failed")


async def test_copies_that_stall_for_no_known_reason_have_a_banner(open_page: Open) -> None:
    scene = Scene()
    moves = keys("orders", 3)
    scene.open_plan("p", "ann", "why", None, moves)
    scene.start(*moves)
    scene.sample(moves[0], done=5_000, rate=0, seconds=61)
    scene.sample(moves[1], done=5_000, rate=10, seconds=61)
    # This one has a reason, which is told anyway.
    scene.sample(moves[2], done=5_000, rate=0, seconds=61)
    scene.block(moves[2], Blocker.NO_LEADER, "it must return")
    async with showing(scene) as shown:
        page = await open_page(shown.address)
        await expect(page.locator(".banner")).to_contain_text("Copies have stalled")
        await expect(page.locator(".banner")).to_contain_text("1 copied no byte for a minute")
        await expect(page.locator("tr[data-key='orders:0']")).to_contain_text("no byte was copied for a minute")


async def test_the_address_holds_the_filter_and_going_back_takes_it_back(shown: Showing, open_page: Open) -> None:
    page = await open_page(f"{shown.address}/?view=plan&plan=friday-drain&show=blocked")
    await expect(page.locator("main tbody tr[data-href]")).to_have_count(5)
    await page.get_by_role("link", name="taken back").click()
    await expect(page).to_have_url(re.compile("show=returning"))
    await expect(page.locator("main tbody tr[data-href]")).to_have_count(1)
    await page.go_back()
    await expect(page.locator("main tbody tr[data-href]")).to_have_count(5)
    await page.get_by_label("Filter moves").fill("payments:4")
    await expect(page.locator("main tbody tr[data-href]")).to_have_count(1)
    await expect(page).to_have_url(re.compile(r"q=payments(%3A|:)4"))
    await page.reload()
    await expect(page.get_by_label("Filter moves")).to_have_value("payments:4")
    await expect(page.locator("main tbody tr[data-href]")).to_have_count(1)


async def test_the_keyboard_alone_is_enough(shown: Showing, open_page: Open) -> None:
    page = await open_page(shown.address)
    await drawn(page)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    await page.keyboard.press("/")
    await expect(page.get_by_label("Filter moves")).to_be_focused()
    await page.keyboard.type("payments:1")
    await expect(page.locator("main tbody tr[data-key='payments:1']")).to_be_visible()
    await expect(page.locator("main tbody tr[data-key='audit-log:0']")).to_have_count(0)
    await page.keyboard.press("Escape")
    for key, partition in (("j", "payments:1"), ("j", "payments:10"), ("k", "payments:1")):
        await page.keyboard.press(key)
        await expect(page.locator(f"tr[data-key='{partition}']")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"view=story.*partition=payments(%3A|:)1"))
    await expect(page.locator("main tbody tr").first).to_contain_text("friday-drain")
    await page.keyboard.press("g")
    await page.keyboard.press("b")
    await expect(page.locator("li.broker")).to_have_count(6)


async def test_the_story_of_a_command_says_who_asked_why_and_what_followed(shown: Showing, open_page: Open) -> None:
    page = await open_page(f"{shown.address}/?view=story&id=alter-friday-drain&page=2")
    last = page.locator("main tbody tr")
    await expect(last.first).to_be_visible()
    await page.goto(f"{shown.address}/?view=story")
    await page.get_by_label("Partition, plan or command").fill("alter-friday-drain")
    await page.get_by_role("button", name="Command").click()
    await expect(page).to_have_url(re.compile("id=alter-friday-drain"))
    await expect(page.locator("h2")).to_contain_text("the story of this command")


async def test_the_past_is_shown_and_what_is_different_now(shown: Showing, open_page: Open) -> None:
    page = await open_page(f"{shown.address}/?view=time")
    slider = page.get_by_label("Moment")
    await expect(slider).to_be_enabled()
    await expect(page.locator("main")).to_contain_text("Nothing has changed since")
    await slider.focus()
    await page.keyboard.press("Home")
    await expect(page).to_have_url(re.compile(r"at=\d+"))
    await expect(page.locator("main")).to_contain_text("Nothing moved or waited.")
    await expect(page.locator("main")).to_contain_text("friday-drain")
    # Two moments of the past: this one is kept, and the other one is chosen.
    await page.get_by_role("link", name="Compare with this moment").click()
    await expect(page.locator("main")).to_contain_text("Nothing changed in between.")
    await page.get_by_role("link", name="+ 10 minutes").click()
    await expect(page).to_have_url(re.compile(r"at=\d+.*to=\d+|to=\d+.*at=\d+"))
    changes = page.get_by_role("table", name="Changes since then")
    await expect(changes).to_contain_text("friday-drain")
    await expect(changes).not_to_contain_text("rebalance-eu")
    await page.get_by_role("link", name="Compare with now").click()
    await expect(changes).to_contain_text("rebalance-eu")


async def test_no_moment_can_be_chosen_before_the_page_knows_which_time_the_log_spans(
    shown: Showing, open_page: Open
) -> None:
    page = await open_page(f"{shown.address}/?view=now")
    is_answered = asyncio.Event()

    async def answer_late(route: Route) -> None:
        await is_answered.wait()
        await route.continue_()

    await page.route("**/api/strip*", answer_late)
    await page.locator("#views a", has_text="Time").click()
    slider = page.get_by_label("Moment")
    await expect(slider).to_be_disabled()
    is_answered.set()
    await expect(slider).to_be_enabled()
    await slider.focus()
    await page.keyboard.press("Home")
    await expect(page).to_have_url(re.compile(r"at=\d+"))


async def test_plots_are_drawn_for_brokers(shown: Showing, open_page: Open) -> None:
    page = await open_page(f"{shown.address}/?view=brokers")
    await expect(page.locator("li.broker .plot canvas")).to_have_count(6)
    await expect(page.get_by_role("img", name="Bytes in and out of broker 4 over the last minutes")).to_be_visible()


async def test_hostile_names_are_text_and_nothing_else(open_page: Open) -> None:
    scene = Scene()
    key = TopicPartition("orders", 0)
    scene.open_plan("plan-1", HOSTILE, HOSTILE, None, [key, TopicPartition("x" * 249, 1)])
    scene.start(key)
    scene.block(key, Blocker.NO_LEADER, HOSTILE)
    scene.say(BrokerFailureRecorded(cluster=CLUSTER, broker=1, failed_at_ms=now_ms(), by=HOSTILE, reason=HOSTILE))
    freeze(scene, HOSTILE, HOSTILE)
    async with showing(scene) as shown:
        for view in ("now", "plan", "story", "time", "brokers", "throttles", "health"):
            page = await open_page(f"{shown.address}/?view={view}", viewport={"width": 390, "height": 800})
            await drawn(page)
            await expect(page.locator("#views a[aria-current]")).to_be_in_viewport(ratio=0.95)
            if view in {"now", "story"}:
                await expect(page.locator("main")).to_contain_text("<img src=x onerror=")
                await expect(page.locator("main")).to_contain_text(r"\u202e\u001b[31m")
            await expect(page.locator("img")).to_have_count(0)
            assert "hacked" not in await page.title()
            assert await page.evaluate(TOO_WIDE) <= 0, f"{view} is wider than the screen"


async def test_a_cut_stream_greys_the_page_and_comes_back_without_loss(open_page: Open) -> None:
    scene = Scene()
    moves = keys("orders", 4)
    scene.open_plan("p", "ann", "why", None, moves)
    async with showing(scene) as first:
        page = await open_page(f"{first.address}/?view=plan")
        await expect(page.locator("tr[data-href]")).to_have_count(4)
        port = first.port
    await expect(page.locator("body.cut")).to_have_count(1)
    await expect(page.get_by_role("status")).to_contain_text("What you see is as of")
    scene.start(*moves)
    scene.complete(moves[0])
    async with showing(scene, port=port) as second:
        await expect(page.locator("body.cut")).to_have_count(0)
        await expect(page.locator("tr[data-href]")).to_have_count(3)
        await expect(page.locator("tr[data-href]").first).to_contain_text("copying")
        second.page.cut("ends", "kafka-1 does not answer")
        await expect(page.get_by_role("status")).to_contain_text("kafka-1 does not answer")
        second.page.restore("ends")
        await expect(page.get_by_role("status")).to_be_empty()


async def test_a_stream_that_is_cut_goes_on_where_it_was_and_no_change_comes_twice(open_page: Open) -> None:
    scene = Scene()
    moves = keys("orders", 9)
    scene.open_plan("p", "ann", "why", None, moves)
    async with showing(scene) as shown, wire_to(shown.port) as wire:
        page = await open_page(f"{wire.address}/?view=plan&plan=p")
        rows = page.locator("tr[data-href]")
        await expect(rows).to_have_count(9)
        copying = page.locator("tr[data-href]", has_text="copying")
        for number, key in enumerate(moves):
            if number % 3 == 0:
                wire.cut()
                await expect(page.locator("body.cut")).to_have_count(1)
            scene.start(key)
            shown.refresh()
            if number % 3 == 1:
                # Two changes were made while it was away; the next one is made while it looks.
                wire.mend()
                await expect(page.locator("body.cut")).to_have_count(0)
            if number % 3:
                await expect(copying).to_have_count(number + 1)
        events = wire.events()
        channel = events[0][0].rpartition("-")[0]
        assert events == [(f"{channel}-{number}", "change" if number else "snapshot") for number in range(10)]


async def test_a_tab_that_nobody_sees_keeps_no_connection_and_catches_up_when_it_is_seen(open_page: Open) -> None:
    scene = Scene()
    moves = keys("orders", 2)
    scene.open_plan("p", "ann", "why", None, moves)
    async with showing(scene) as shown, wire_to(shown.port) as wire:
        page = await open_page(f"{wire.address}/?view=plan")
        copying = page.locator("tr[data-href]", has_text="copying")
        await expect(page.locator("tr[data-href]")).to_have_count(2)

        async def show(is_hidden: str) -> None:
            await page.evaluate(
                f"Object.defineProperty(document, 'hidden', {{get: () => {is_hidden}, configurable: true}});"
                "document.dispatchEvent(new Event('visibilitychange'))"
            )

        await show("true")
        async with asyncio.timeout(60):
            while shown.viewers:  # noqa: ASYNC110 - the server tells nobody who has gone
                await asyncio.sleep(0.05)
        scene.start(moves[0])
        shown.refresh()
        await show("false")
        await expect(copying).to_have_count(1)
        assert [name for _, name in wire.events()].count("snapshot") == 1


async def test_a_question_that_means_nothing_is_answered_in_words(shown: Showing, open_page: Open) -> None:
    page = await open_page(f"{shown.address}/?view=plan&page=0")
    await expect(page.get_by_role("status")).to_contain_text("page must be a number from 1 to")
    await page.locator("#views a", has_text="Brokers").click()
    await expect(page.get_by_role("status")).to_be_empty()


async def test_what_is_recorded_is_pushed_to_the_page_and_only_that_row_is_drawn(open_page: Open) -> None:
    scene = Scene()
    moves = keys("orders", 30)
    scene.open_plan("p", "ann", "why", None, moves)
    async with showing(scene) as shown:
        page = await open_page(f"{shown.address}/?view=plan")
        await expect(page.locator("tr[data-href]")).to_have_count(30)
        await page.evaluate("""() => {
            window.drawn = [];
            const note = ({target}) => target.dataset?.key && window.drawn.push(target.dataset.key);
            new MutationObserver((all) => all.forEach(note))
                .observe(document.querySelector('main tbody'), {childList: true, subtree: true});
        }""")
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        for key in moves[:3]:
            scene.start(key)
            shown.refresh()
            await page.wait_for_function(
                "key => document.querySelector(`tr[data-key='${key}']`).textContent.includes('copying')", arg=str(key)
            )
        # Only so many: later a broker is full, and the others wait for another reason.
        assert set(await page.evaluate("window.drawn")) == {str(key) for key in moves[:3]}
        assert requests == []


async def test_whoever_is_on_a_link_stays_there_while_its_row_is_drawn_anew(open_page: Open) -> None:
    scene = Scene()
    moves = keys("orders", 3)
    scene.open_plan("p", "ann", "why", None, moves)
    async with showing(scene) as shown:
        page = await open_page(f"{shown.address}/?view=plan&plan=p")
        link = page.get_by_role("link", name="orders:1", exact=True)
        story = page.get_by_role("link", name="Story").last
        for focused in (link, story):
            await focused.focus()
            scene.start(moves[1]) if focused is link else scene.complete(moves[1])
            shown.refresh()
            row = page.locator("tr[data-key='orders:1']")
            await (expect(row).to_contain_text("copying") if focused is link else expect(row).to_have_count(0))
            await expect(focused).to_be_focused()


async def test_what_must_be_noticed_first_stands_first(open_page: Open) -> None:
    scene = Scene()
    scene.say(BlacklistSet(cluster=CLUSTER, brokers=(6,), previous_brokers=(), by="ann", reason="slow disks"))
    freeze(scene)
    scene.say(BrokerFailureRecorded(cluster=CLUSTER, broker=1, failed_at_ms=now_ms(), by="ann", reason="no ping"))
    scene.say(BrokerHeld(cluster=CLUSTER, broker=2, by="ann", reason="slow disk"))
    scene.fall_silent()
    async with showing(scene) as shown:
        page = await open_page(shown.address)
        await expect(page.locator(".banner")).to_have_count(5)
        told = await page.locator(".banner").evaluate_all("all => all.map((one) => [one.className, one.innerText])")
    assert [(levels.split()[-1], text.split()[0]) for levels, text in told] == [
        ("bad", "No"), ("bad", "Brokers"), ("warn", "Frozen"), ("warn", "Broker"), ("note", "Brokers"),
    ]  # fmt: skip


async def test_ten_thousand_moves_are_usable(open_page: Open) -> None:
    async with showing(busy(10_000)) as shown:
        page = await open_page(f"{shown.address}/?view=plan")
        await expect(page.locator("tr[data-href]")).to_have_count(100)
        assert await page.evaluate("document.getElementsByTagName('*').length") < 5_000
        await page.get_by_label("Filter moves").fill("inventory:3333")
        await expect(page.locator("tr[data-href]")).to_have_count(1)
        await page.get_by_label("Filter moves").fill("")
        await page.get_by_role("link", name="Next").click()
        await expect(page.locator(".pager")).to_contain_text("page 2 of")


async def test_the_page_is_small(shown: Showing, open_page: Open) -> None:
    page = await open_page(shown.address)
    await drawn(page)
    sizes = await page.evaluate("performance.getEntriesByType('resource').map((one) => one.transferSize)")
    assert 0 < sum(sizes) <= 300_000


async def test_without_a_cluster_the_page_says_what_to_do(open_page: Open) -> None:
    async with showing(Scene()) as shown:
        page = await open_page(f"{shown.address}/?cluster=elsewhere")
        await expect(page.locator("main")).to_contain_text("The log has no entry for cluster elsewhere.")


async def test_a_plan_that_has_ended_shows_what_it_took_instead_of_a_measure(open_page: Open) -> None:
    scene, orders = Scene(), keys("orders", 2)
    scene.open_plan("friday", "ann", "drain broker 1", None, orders)
    scene.start(*orders)
    scene.complete(*orders)
    scene.say(PlanFinished(cluster=CLUSTER, plan="friday", completed=2, rolled_back=0, failed=0))
    async with showing(scene) as shown:
        page = await open_page(f"{shown.address}/?view=plan&plan=friday")
        plan = page.get_by_role("region", name="Plan friday")
        await expect(plan).to_contain_text("24.0 GB copied in")
        await expect(plan).to_contain_text("ended")
        await expect(plan).not_to_contain_text("measured")
