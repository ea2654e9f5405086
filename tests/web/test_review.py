"""The Review view: a plan that somebody pasted, judged as `drover plan check` judges it."""

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from playwright.async_api import expect

from drover.cli.main import cli
from drover.cli.model import parse_model
from drover.cli.page import judge, others_document
from drover.client.views.found_throttles import FoundEntries, FoundRates, Whose
from drover.errors import ClusterUnavailableError
from drover.planner.goals import DEFAULT_LIMITS
from drover.state.cluster import ClusterState
from drover.web.surveys import Looking, PastedPlan
from tests.cli.models import BROKERS, broker, write_model
from tests.client.log import CLUSTER
from tests.web.conftest import Open
from tests.web.scene import Scene, now_ms
from tests.web.showing import showing

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
GOOD = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}]}
BAD = {
    "version": 1,
    "partitions": [
        {"topic": "orders", "partition": 1, "replicas": [9, 3, 1]},
        {"topic": "orders", "partition": 2, "replicas": [3, 1, 6]},
        {"topic": "orders", "partition": 3, "replicas": [1, 2, 3]},
    ],
}


@pytest.fixture
def looking(tmp_path: Path) -> Looking:
    brokers = (*BROKERS[:3], broker(4, "a", log_dirs=[]), *BROKERS[4:])
    model = parse_model(Path(write_model(tmp_path / "model.json", brokers=brokers)).read_text(encoding="utf-8"), "it")

    async def judging(state: ClusterState, plan: PastedPlan) -> Mapping[str, Any]:
        if plan.name == "away.json":
            raise ClusterUnavailableError("prod-1:9093 does not answer")
        found = judge(model, state.name, plan, DEFAULT_LIMITS)
        return {**found, "moves": [{**move, "marks": []} for move in found["moves"]]}

    async def finding(_cluster: str) -> Mapping[str, Any]:
        raise ClusterUnavailableError("prod-1:9093 does not answer")

    return Looking(judging, finding)


@pytest.mark.story
async def test_a_pasted_plan_is_judged_with_the_command_that_would_send_it(looking: Looking, open_page: Open) -> None:
    async with showing(Scene(), looking=looking) as shown:
        page = await open_page(f"{shown.address}/?view=review", bypass_csp=True)
        await page.get_by_label("A plan").fill(json.dumps(GOOD))
        await page.get_by_label("Throttle").fill("40MB/s")
        await page.get_by_role("button", name="Judge").click()
        await expect(page.locator(".banner")).to_contain_text("Worth a look")
        await expect(page.locator(".problems")).to_contain_text("The free space on the disks of broker 4 is unknown")
        await expect(page.locator("main")).to_contain_text("25 s")
        await expect(page.locator("tr[data-key='orders:0']")).to_contain_text("another preferred leader")
        alter = page.locator("pre code").last
        await expect(alter).to_contain_text("drover --cluster prod alter plan.json --plan-hash")
        await expect(alter).to_contain_text("--throttle 40MB/s --reason WHY")
        await page.add_script_tag(path=str(AXE))
        found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [one["id"] for one in found["violations"] if one["impact"] in {"serious", "critical"}] == []
        # Another view, and back: it is still there.
        await page.get_by_role("link", name="Brokers").click()
        await page.get_by_role("link", name="Review").click()
        await expect(page.get_by_label("A plan")).to_have_value(json.dumps(GOOD))
        await expect(page.locator("tr[data-key='orders:0']")).to_be_visible()


@pytest.mark.story
async def test_an_uploaded_plan_that_breaks_something_says_what(
    looking: Looking, open_page: Open, tmp_path: Path
) -> None:
    file = tmp_path / "of others.json"
    file.write_text(json.dumps(BAD), encoding="utf-8")
    async with showing(Scene(), looking=looking) as shown:
        page = await open_page(f"{shown.address}/?view=review")
        await page.get_by_label("Choose a file").set_input_files(file)
        await expect(page.locator(".banner.bad")).to_contain_text("The plan breaks something")
        await expect(page.locator(".problems")).to_contain_text("orders:1: there is no broker 9")
        await expect(page.locator(".problems")).to_contain_text("fewer racks")
        await expect(page.locator("main")).to_contain_text("1 as asked already")
        await expect(page.locator("pre")).to_contain_text("'of others.json'")
        await page.get_by_label("A plan").fill("<b>no plan</b>")
        await page.get_by_role("button", name="Judge").click()
        await expect(page.locator(".banner.bad")).to_contain_text("plan.json is not JSON")


async def post(http: aiohttp.ClientSession, address: str, body: Any, **headers: str) -> tuple[int, Any]:
    sent = {"Origin": address, "Content-Type": "application/json", **headers}
    async with http.post(f"{address}/api/review", data=io.BytesIO(json.dumps(body).encode()), headers=sent) as response:
        return response.status, await response.json()


async def test_only_the_page_itself_asks_and_only_for_what_is_a_plan(looking: Looking) -> None:
    body = {"cluster": CLUSTER, "text": json.dumps(GOOD)}
    async with showing(Scene(), looking=looking) as shown, aiohttp.ClientSession() as http:
        for headers, status in (
            ({"Origin": "http://evil.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Content-Type": "text/plain"}, 415),
        ):
            assert (await post(http, shown.address, body, **headers))[0] == status
        for wrong, status in (
            ({**body, "cluster": "elsewhere"}, 404),
            ({**body, "text": "{}"}, 400),
            ({**body, "text": '{"partitions": [{"topic": "orders", "partition": 0, "replicas": null}]}'}, 400),
            ({**body, "throttle": "40Mbit"}, 400),
            ({**body, "text": "x" * 9_000_000}, 400),
            ({"text": "x"}, 400),
            ({**body, "name": "away.json"}, 503),
        ):
            found, told = await post(http, shown.address, wrong)
            assert (found, bool(told["error"])) == (status, True)


@pytest.mark.story
async def test_throttles_of_others_and_leftover_throttles_are_looked_for_in_the_cluster(
    looking: Looking, open_page: Open
) -> None:
    rates = [
        FoundRates(1, 9_000_000, 9_000_000, Whose.OURS, "in force"),
        FoundRates(2, 5_000_000, None, Whose.THEIRS, "moves of others use the broker"),
        FoundRates(3, 7_000_000, 7_000_000, Whose.LEFTOVER, "left over: no move needs it"),
    ]
    many = tuple(f"{number}:1" for number in range(40))
    entries = [FoundEntries("<b>clicks</b>", many, ("0:4",), Whose.LEFTOVER, "left over")]
    answers: list[Mapping[str, Any] | Exception] = [
        ClusterUnavailableError("prod-1:9093 does not answer"), others_document(rates, entries, now_ms()),
        others_document(rates[:1], [], now_ms()),
    ]  # fmt: skip

    async def finding(cluster: str) -> Mapping[str, Any]:
        assert cluster == CLUSTER
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with showing(Scene(), looking=Looking(looking.review, finding)) as shown:
        page = await open_page(f"{shown.address}/?view=throttles")
        look = page.get_by_role("button", name="Look at the cluster")
        await look.click()
        await expect(page.locator("main .banner.bad")).to_contain_text("prod-1:9093 does not answer")
        await look.click()
        found = page.get_by_role("table", name="Rates of others")
        await expect(found.locator("tbody tr")).to_have_text(
            [re.compile("3.*7.0.*leftover"), re.compile("2.*5.0.*theirs")]
        )
        topics = page.get_by_role("table", name="Throttled replicas of others")
        await expect(topics).to_contain_text("<b>clicks</b>")
        await expect(topics).to_contain_text("41 entries")
        await expect(page.locator("main .banner")).to_contain_text("2 leftover throttles")
        await look.click()
        await expect(page.locator("main .banner")).to_contain_text("No leftover throttles")
    async with showing(Scene()) as shown:
        page = await open_page(f"{shown.address}/?view=throttles")
        await page.get_by_role("button", name="Look at the cluster").click()
        await expect(page.locator("main .banner")).to_contain_text("without what could answer that")


async def test_the_page_says_what_the_command_line_says(looking: Looking, tmp_path: Path) -> None:
    brokers = (*BROKERS[:3], broker(4, "a", log_dirs=[]), *BROKERS[4:])
    model, file = write_model(tmp_path / "model.json", brokers=brokers), tmp_path / "plan.json"
    file.write_text(json.dumps(BAD), encoding="utf-8")
    done = CliRunner().invoke(cli, ["plan", "check", str(file), "--model", model, "-o", "json"])
    said = json.loads(done.stdout)
    found = await looking.review(ClusterState(CLUSTER), PastedPlan(CLUSTER, json.dumps(BAD)))
    assert json.loads(json.dumps(found["totals"])) == said["totals"]
    assert json.loads(json.dumps(found["unmet"])) == said["unmet"]
    assert (done.exit_code, found["is_blocked"]) == (4, True)
