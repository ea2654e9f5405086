"""The chips of brokers on the page, in a real browser."""

import re

import pytest
from playwright.async_api import expect

from drover.events.brokers import BlacklistSet, BrokerFailureRecorded
from drover.events.clusters import BrokerHeld, UnreachableBrokersChanged
from tests.client.log import CLUSTER
from tests.web.conftest import Open
from tests.web.scene import Scene, keys, now_ms
from tests.web.showing import showing

pytestmark = pytest.mark.story


async def test_the_chip_of_a_broker_says_what_is_against_it(open_page: Open) -> None:
    scene = Scene()
    moves = keys("orders", 3)
    scene.open_plan("p", "ann", "why", None, moves)
    scene.start(*moves)
    gone, unreachable, closed, demoted = (1, 4, 2, 5)
    scene.say(
        BrokerFailureRecorded(cluster=CLUSTER, broker=gone, failed_at_ms=now_ms(), by="ann", reason="no ping"),
        UnreachableBrokersChanged(cluster=CLUSTER, brokers=(unreachable,)),
        BrokerHeld(cluster=CLUSTER, broker=closed, by="ann", reason="slow disk"),
        BlacklistSet(cluster=CLUSTER, brokers=(demoted,), previous_brokers=(), by="bob", reason="old"),
    )
    async with showing(scene) as shown:
        page = await open_page(f"{shown.address}/?view=plan")
        chips = page.locator("main .chips span")
        for broker, mark, why in (
            (gone, "gone", "reported as failed"),
            (unreachable, "unreachable", "does not offer the listener by which Drover connects"),
            (closed, "closed", "closed for copies into it and out of it by ann: slow disk"),
            (demoted, "demoted", "should not lead (by bob: old)"),
        ):
            chip = chips.filter(has_text=re.compile(f"^{broker}$")).first
            await expect(chip).to_have_class(re.compile(rf"\bmarked {mark}\b"))
            await expect(chip).to_have_attribute("title", re.compile(re.escape(why)))
            await expect(page.locator("main .replicas .hidden").filter(has_text=why).first).to_be_attached()
