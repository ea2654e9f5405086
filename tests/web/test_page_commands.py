"""Acting from the page in a real browser, as a user whom a proxy names."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from drover.client.answers import Answer, OutcomeMissingError
from drover.events.commands import (
    AnyCommand,
    Cancel,
    ChangeLimits,
    Freeze,
    HoldBroker,
    PausePlan,
    ReleaseBroker,
    ResumePlan,
    Throttle,
)
from tests.web.conftest import Open
from tests.web.scene import Scene, keys
from tests.web.showing import USER_HEADER, Showing, showing

pytestmark = pytest.mark.story

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
ANN = {"extra_http_headers": {USER_HEADER: "ann"}}
HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"


def scene_of(moves: int = 6) -> Scene:
    scene = Scene()
    scene.open_plan("friday", "bob", HOSTILE, 1_000_000, keys("orders", moves))
    scene.start(*keys("orders", 2))
    return scene


async def send(page: Page, reason: str) -> None:
    await expect(page.locator(".meaning")).to_contain_text("As of log 0@")
    await page.get_by_label("Reason").fill(reason)
    await page.get_by_role("button", name="Send").click()


async def test_a_plan_is_taken_back_after_its_partitions_were_shown(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(f"{shown.address}/?view=plan&plan=friday", bypass_csp=True, **ANN)
        await expect(page.locator("header .user")).to_have_text("ann")
        await page.get_by_role("button", name="Act on friday").click()
        dialog = page.get_by_role("dialog", name="Act on plan friday")
        await expect(dialog.get_by_role("button", name="Send")).to_be_disabled()
        await dialog.get_by_label("Roll back").check()
        await expect(dialog).to_contain_text("2 to go back to the original replicas")
        await expect(dialog).to_contain_text("orders 2-5")
        await expect(dialog.get_by_role("button", name="Send")).to_be_disabled()
        await page.add_script_tag(path=str(AXE))
        found = await page.evaluate("axe.run(document.getElementById('act'), {resultTypes: ['violations']})")
        assert [one["id"] for one in found["violations"] if one["impact"] in {"serious", "critical"}] == []
        await send(page, "latency alarm")
        await expect(dialog.get_by_role("status")).to_contain_text("accepted · 6 partitions · recorded at log 0@")
        (sent,) = shown.sent
        assert isinstance(sent, Cancel)
        assert (sent.by, sent.reason, sent.plan, sent.mode) == ("ann", "latency alarm", "friday", "rollback")
        await dialog.get_by_role("link", name="its story").click()
        await expect(page.locator("h2").first).to_contain_text(sent.id)
        await expect(page.locator("main tbody tr.command")).to_contain_text("latency alarm")


async def test_a_cluster_is_frozen_and_everything_needs_the_word(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(shown.address, **ANN)
        await expect(page.get_by_role("button", name="Act on prod")).to_be_visible()
        await page.keyboard.press("a")
        await page.get_by_label("Freeze", exact=True).check()
        await send(page, "incident 7")
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        await expect(page.locator("main .banner")).to_contain_text("incident 7")
        await page.get_by_label("Stop everything").check()
        await page.get_by_label("Reason").fill("enough")
        button = page.get_by_role("button", name="Send")
        await page.get_by_label("Type everything to go on").fill("everythin")
        await expect(button).to_be_disabled()
        await page.get_by_label("Type everything to go on").fill("everything")
        await button.click()
        await expect(page.get_by_role("status").last).to_contain_text("6 partitions")
        assert [type(one) for one in shown.sent] == [Freeze, Cancel]
        assert len({one.id for one in shown.sent}) == 2


async def test_what_came_meanwhile_is_shown_before_it_is_touched(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(f"{shown.address}/?view=story&plan=friday", **ANN)
        await page.get_by_role("button", name="Act on friday").click()
        await page.get_by_label("Stop", exact=True).check()
        await expect(page.locator(".meaning")).to_contain_text("6 partitions")
        shown.scene.open_plan("friday", "bob", "more", None, keys("late", 1))
        shown.refresh()
        await send(page, "enough")
        await expect(page.get_by_role("status").last).to_contain_text("touch more than was shown")
        await expect(page.locator(".meaning")).to_contain_text("7 partitions")
        assert shown.sent == []
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("status").last).to_contain_text("7 partitions")


async def test_what_may_have_been_sent_is_asked_for_again_with_the_reason_that_it_had(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another reason it was refused, since its id was used."""
    send_it = Showing.send
    undecided = [OutcomeMissingError((), (), None)]

    async def sending(shown: Showing, command: AnyCommand) -> Answer:
        answer = await send_it(shown, command)
        if undecided:
            raise undecided.pop()
        return answer

    monkeypatch.setattr(Showing, "send", sending)
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(shown.address, **ANN)
        await page.get_by_role("button", name="Act on prod").click()
        await page.get_by_label("Freeze", exact=True).check()
        await send(page, "incident 7")
        await expect(page.get_by_role("status").last).to_contain_text("Send asks again, under the same id")
        await expect(page.get_by_label("Reason")).not_to_be_editable()
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        await expect(page.get_by_label("Reason")).to_be_editable()
        assert len({(one.id, one.reason) for one in shown.sent}) == 1


async def test_a_throttle_says_back_what_it_would_be(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(shown.address, **ANN)
        await page.get_by_role("button", name="Act on friday").click()
        await page.get_by_label("Throttle", exact=True).check()
        rate = page.get_by_label("Bytes per second and broker")
        for nonsense in ("fast", "40", "9TB"):
            await rate.fill(nonsense)
            await expect(page.locator(".meaning")).to_contain_text("Say the rate")
        await rate.fill("40MB/s")
        await expect(page.locator(".meaning")).to_contain_text("40,000,000 bytes per second per broker")
        await page.get_by_label("Reason").fill("at night")
        # What is typed and what was shown are not the same any more: it cannot be sent until it is shown.
        assert await rate.evaluate("""(field) => {
            field.value = "50MB";
            field.dispatchEvent(new Event("input"));
            return document.querySelector("#act button.strong").disabled;
        }""")
        await expect(page.locator(".meaning")).to_contain_text("50,000,000 bytes per second per broker")
        await send(page, "at night")
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        (sent,) = shown.sent
        assert isinstance(sent, Throttle)
        assert sent.bytes_per_second == 50_000_000


async def test_a_plan_is_paused_and_resumed(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(f"{shown.address}/?view=plan&plan=friday", **ANN)
        await page.get_by_role("button", name="Act on friday").click()
        await page.get_by_label("Pause").check()
        await expect(page.locator(".meaning")).to_contain_text("4 withheld: no start, and no further step")
        await expect(page.locator(".meaning")).to_contain_text("2 going on with the step that copies")
        await send(page, "night")
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        await expect(page.locator("main .banner")).to_contain_text("paused by ann")
        await page.get_by_label("Resume").check()
        await expect(page.locator(".meaning")).to_contain_text("4 free to start, or to take the next step")
        await send(page, "morning")
        await expect(page.locator("main .banner")).to_have_count(0)
        assert [type(one) for one in shown.sent] == [PausePlan, ResumePlan]


async def test_a_broker_is_held_and_released_from_its_card(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(f"{shown.address}/?view=brokers", **ANN)
        card = page.locator("li.broker[data-key='5']")
        await card.get_by_role("button", name="Act on broker 5").click()
        await page.get_by_label("Hold as a destination").check()
        await expect(page.locator(".meaning")).to_contain_text("withheld: a copy into broker 5")
        await send(page, "slow disk")
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        await expect(card).to_contain_text("held as a destination")
        await page.get_by_label("Release").check()
        await expect(page.locator(".meaning")).to_contain_text("free: a copy into broker 5")
        await send(page, "new disk")
        await expect(card).not_to_contain_text("held")
        assert [type(one) for one in shown.sent] == [HoldBroker, ReleaseBroker]


async def test_a_limit_is_changed_and_reset_and_the_throttles_view_says_by_whom(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(f"{shown.address}/?view=throttles", **ANN)
        row = page.locator("tr[data-key='max_moves_per_broker']")
        await expect(row).to_contain_text("the settings")
        await page.get_by_role("button", name="Act on prod").click()
        await page.get_by_label("Change a limit").check()
        await page.get_by_label("Limit, and what holds now").select_option("max_moves_per_broker")
        await page.get_by_label("New value").fill("nonsense")
        await expect(page.locator(".meaning")).to_contain_text("It would be refused")
        await page.get_by_label("New value").fill("10")
        await expect(page.locator(".meaning")).to_contain_text("max_moves_per_broker: 5 → 10")
        await expect(page.locator(".meaning")).to_contain_text("4 held to it from the next step on")
        await send(page, "at night")
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        await expect(row).to_contain_text("“at night”")
        await page.get_by_label("Reset a limit").check()
        await page.get_by_label("Limit, and what holds now").select_option("max_moves_per_broker")
        await expect(page.locator(".meaning")).to_contain_text("max_moves_per_broker: 10 → 5")
        await send(page, "morning")
        await expect(page.get_by_role("status").last).to_contain_text("accepted")
        await expect(row).to_contain_text("the settings")
        assert [one.reset for one in shown.sent if isinstance(one, ChangeLimits)] == [(), ("max_moves_per_broker",)]


async def test_who_is_not_named_sees_no_way_to_act(open_page: Open) -> None:
    async with showing(scene_of(), writes=True) as shown:
        page = await open_page(shown.address)
        await expect(page.locator("section.plan")).to_have_count(1)
        await expect(page.get_by_role("button", name="Act on")).to_have_count(0)
        await expect(page.locator("header .user")).to_have_text("read-only")
        assert "named 0" in str(await page.locator("header .user").get_attribute("title"))
