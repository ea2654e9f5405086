"""The page: what hundreds of browsers cost its server, how soon a browser shows what was recorded, how large it is."""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import psutil
from playwright.async_api import Browser, Page, async_playwright

from bench.results import AtMost, Benchmark, Row, check, percentile, say
from bench.rig import MANAGED, Rig, drover_on, fresh_cluster, wait_until
from drover.client.client import Client
from drover.events.commands import AnyCommand, Freeze, Unfreeze
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentBlocked, ReassignmentUnblocked
from tests.web.browser import find_browser
from tests.web.scene import busy, partitions, place
from tests.web.showing import Showing, showing

EVENTS_PER_BATCH, BATCHES_PER_S = 10, 20
# As often as `drover.web.sources` tells viewers at most.
REFRESH_S = 0.1
PERIOD_S = 15.0
VIEWERS, MOVES, RECORDED = 200, 10_000, 60
ADDRESS = re.compile(r"The page is at (http://127\.0\.0\.1:\d+)/")
# The moments at which a browser sees each freeze, by its own clock.
NOTE_WHAT_IS_SEEN = """() => {
    window.seen = {};
    const look = () => {
        const found = document.querySelector('main').textContent.match(/figure (\\d+)/);
        if (found) window.seen[found[1]] ??= Date.now();
    };
    new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
# From the beginning of the navigation to the first row; by then everything that the page needs has come.
FIRST_ROW = """() => new Promise((done) => {
    const look = () => document.querySelector('main tbody tr') ? done(performance.now()) : requestAnimationFrame(look);
    look();
})"""
TRANSFERRED = """() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
    .reduce((sum, one) => sum + one.transferSize, 0)"""


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Measure, first over a log in memory and then over a real one."""
    moves, viewers = (500, 20) if quick else (MOVES, VIEWERS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**find_browser().options())
        served = await _served(moves, viewers)
        drawn = await _drawn(browser, moves)
        seen = await _seen(browser, RECORDED // 6 if quick else RECORDED)
        await browser.close()
    return (*seen, *drawn, *served)


async def _served(moves: int, viewers: int) -> tuple[Row, ...]:
    """Compare processor time without viewers and with, in one run, so that other work matters little."""
    say(f"{viewers} viewers of {moves:,} moves")
    async with showing(busy(moves)) as shown:
        alone = await _serve(shown)
        address = f"{shown.address}/api/stream?view=now"
        reading = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.page_viewers", address, str(viewers)
        )
        try:
            await wait_until(partial(_are_there, shown, viewers), "every viewer to come")
            watched = await _serve(shown)
        finally:
            reading.terminate()
            await reading.wait()
        mib = psutil.Process().memory_info().rss / 2**20
    rate = f"{EVENTS_PER_BATCH * BATCHES_PER_S} events/s"
    return (
        Row(f"server, {moves:,} moves and {rate}: part of one core without viewers", alone * 100, "%"),
        Row(f"{viewers} viewers: more of one core", (watched - alone) * 100, "%", gate=AtMost(25)),
        Row("memory of the server's process, with the log and its browser's driver", mib, "MiB"),
    )


async def _are_there(shown: Showing, viewers: int) -> bool:
    return shown.page.channels.viewers >= viewers


async def _serve(shown: Showing) -> float:
    """Let the log grow for a while; returns processor time per second."""
    moves = list(partitions(shown.scene))[-400:]
    began_s, spent_s, number = time.monotonic(), time.process_time(), 0
    refreshed_s = began_s
    while time.monotonic() - began_s < PERIOD_S:
        shown.scene.say(*_events(moves, number))
        number += 1
        if time.monotonic() - refreshed_s >= REFRESH_S:
            refreshed_s = time.monotonic()
            shown.refresh()
        await asyncio.sleep(max(0.0, began_s + number / BATCHES_PER_S - time.monotonic()))
    return (time.process_time() - spent_s) / (time.monotonic() - began_s)


def _events(moves: Sequence[TopicPartition], number: int) -> list[ReassignmentBlocked | ReassignmentUnblocked]:
    """Block ten moves, and unblock them with the batch after it."""
    first = number // 2 * EVENTS_PER_BATCH % (len(moves) - EVENTS_PER_BATCH)
    chosen = moves[first : first + EVENTS_PER_BATCH]
    if number % 2:
        return [ReassignmentUnblocked(**place(key)) for key in chosen]
    return [ReassignmentBlocked(**place(key), why=Blocker.NO_LEADER, detail="it must return") for key in chosen]


async def _drawn(browser: Browser, moves: int) -> tuple[Row, ...]:
    """Open views in a browser that has nothing of them yet."""
    say("pages that are opened")
    figures = {}
    for name, query, size in (("now", "", 500), ("plan", "?view=plan", moves)):
        async with showing(busy(size)) as shown:
            times = []
            for _ in range(5):
                page = await _open(browser, f"{shown.address}/{query}")
                times.append(await page.evaluate(FIRST_ROW))
                figures["bytes"] = await page.evaluate(TRANSFERRED)
                await page.context.close()
            figures[name] = percentile(times, 50)
    return (
        Row("page load: bytes over the wire", figures["bytes"] / 1000, "kB", gate=AtMost(300)),
        Row("page load on loopback, 500 moves: to the first row, median", figures["now"], "ms", gate=AtMost(1000)),
        Row(f"{moves:,} moves: to the first row of the Plan view, median", figures["plan"], "ms", gate=AtMost(500)),
    )


async def _open(browser: Browser, address: str) -> Page:
    context = await browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
    page = await context.new_page()
    await page.goto(address, wait_until="commit")
    return page


async def _seen(browser: Browser, count: int) -> tuple[Row, ...]:
    """Freeze and unfreeze a real cluster, and note when a browser shows each freeze."""
    say(f"{count} events from a real log to the DOM")
    async with fresh_cluster() as cluster, drover_on(cluster, "page") as (rig, _):
        await rig.start_worker("solo")
        async with _page(rig) as address:
            page = await _open(browser, address)
            await page.locator("header .dot:not(.off)").wait_for(timeout=60_000)
            await page.evaluate(NOTE_WHAT_IS_SEEN)
            recorded_ms = await _record(rig, count, page)
            seen_ms = await page.evaluate("window.seen")
            await page.context.close()
    check(len(seen_ms) == count, f"{len(seen_ms)} of {count} freezes were seen")
    delays = [seen_ms[number] - at_ms for number, at_ms in recorded_ms.items()]
    return (
        Row("event recorded to the DOM of a browser, p50", percentile(delays, 50), "ms"),
        Row("event recorded to the DOM of a browser, p95", percentile(delays, 95), "ms", gate=AtMost(1000)),
    )


async def _record(rig: Rig, count: int, page: Page) -> dict[str, int]:
    recorded: dict[str, int] = {}
    async with Client(rig.connection) as client:

        async def send(command: AnyCommand) -> int:
            (answer,) = await client.outcomes([await client.submit(command)], 60)
            return answer.at_ms

        for number in range(count):
            why, by = f"figure {number}", "bench@example"
            recorded[str(number)] = await send(Freeze(id=f"freeze-{number}", cluster=MANAGED, by=by, reason=why))
            await page.wait_for_function("number => window.seen[number] !== undefined", arg=str(number))
            await send(Unfreeze(id=f"unfreeze-{number}", cluster=MANAGED, by=by, reason=why))
    return recorded


@asynccontextmanager
async def _page(rig: Rig) -> AsyncIterator[str]:
    """Run `drover web`, and yield where it is."""
    process = await asyncio.create_subprocess_exec(
        *rig.start_arguments(), "web", "--listen", "127.0.0.1:0", env=rig.environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None, "it is a pipe"
        found = ADDRESS.search((await asyncio.wait_for(process.stdout.readline(), 60)).decode())
        check(found, "the page did not say where it is")
        assert found is not None, "checked"
        yield found.group(1)
    finally:
        process.terminate()
        await process.wait()


BENCHMARK = Benchmark(
    "page",
    "The page",
    """A real server and a real Chromium. The viewers read streams of the Now view from a process of their own, over a
log in memory that grows by 200 events a second in batches of ten; what they cost is processor time with them less
processor time without, in one run. Page loads are over a log in memory too, in a browser that has nothing of the
page yet. Event to DOM: a worker and `drover web` on four brokers; a freeze is recorded, and the time in its record is
subtracted from the moment at which the browser has its banner.""",
    run,
)
