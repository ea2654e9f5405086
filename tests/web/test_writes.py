"""Who may send commands from the page, what they are shown before, and what is told of them afterwards."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from click.testing import CliRunner

from drover.cli.main import cli
from drover.client.answers import Answer, OutcomeMissingError
from drover.errors import LogUnavailableError
from drover.events.commands import AnyCommand, Cancel, Freeze
from drover.web import writes
from tests.client.log import CLUSTER
from tests.web.scene import Scene, freeze, keys
from tests.web.showing import USER_HEADER, Showing, showing

ANN = {USER_HEADER: "ann"}
FREEZE = {"type": "freeze", "cluster": CLUSTER, "id": "f-1", "reason": "incident 7"}
CANCEL_PLAN = {"type": "cancel", "mode": "rollback", "cluster": CLUSTER, "plan": "p"}


@pytest_asyncio.fixture(loop_scope="session")
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest_asyncio.fixture(loop_scope="session")
async def shown() -> AsyncIterator[Showing]:
    scene = Scene()
    moves = keys("orders", 5)
    scene.open_plan("p", "ann", "why", 1_000_000, moves)
    scene.start(*moves[:2])
    async with showing(scene, writes=True) as running:
        yield running


async def session_of(http: aiohttp.ClientSession, shown: Showing, headers: Mapping[str, str] = ANN) -> Any:
    async with http.get(f"{shown.address}/api/session", headers=headers) as response:
        assert response.status == 200
        return await response.json()


class Browser:
    """Sends what the page would send."""

    def __init__(self, http: aiohttp.ClientSession, shown: Showing, token: str) -> None:
        self.http, self.shown = http, shown
        self.headers = {**ANN, "Origin": shown.address, "Sec-Fetch-Site": "same-origin", "X-Drover-Token": token}

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        sent = {name: value for name, value in {**self.headers, **headers}.items() if value != "-"}
        address = f"{self.shown.address}/api/{path}"
        async with self.http.post(address, data=json.dumps(body), headers=sent | types(headers)) as response:
            return response.status, await response.json()

    async def act(self, command: Mapping[str, Any], **more: str) -> tuple[int, Any]:
        asked = {name: value for name, value in command.items() if name not in {"id", "reason"}}
        status, found = await self.post("trial", {"command": asked})
        assert status == 200, found
        return await self.post("command", {"command": command, "trial": found["trial"], **more})


def types(headers: Mapping[str, str]) -> dict[str, str]:
    return {} if "Content-Type" in headers else {"Content-Type": "application/json"}


@pytest_asyncio.fixture(loop_scope="session")
async def browser(http: aiohttp.ClientSession, shown: Showing) -> Browser:
    return Browser(http, shown, (await session_of(http, shown))["token"])


async def test_a_page_without_writes_has_no_address_to_send_to(http: aiohttp.ClientSession) -> None:
    async with showing(Scene()) as reading:
        assert (await session_of(http, reading))["token"] is None
        for path in ("trial", "command"):
            async with http.post(f"{reading.address}/api/{path}", headers=ANN) as response:
                assert response.status == 404


async def test_a_command_takes_effect_for_the_user_whom_the_proxy_names(browser: Browser) -> None:
    status, found = await browser.act(FREEZE)
    assert (status, found["outcome"]["verdict"]) == (200, "accepted")
    assert browser.shown.sent == [Freeze(id="f-1", cluster=CLUSTER, by="ann", reason="incident 7")]
    (held,) = browser.shown.scene.writer.fold.state.clusters[CLUSTER].freezes
    assert (held.by, held.reason) == ("ann", "incident 7")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "-"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Drover-Token": "-"}, 403),
        ({"X-Drover-Token": "0" * 64}, 403),
        ({"X-Drover-Token": "\u00e9"}, 403),
        ({USER_HEADER: "bob"}, 403),
        ({USER_HEADER: "-"}, 401),
        ({USER_HEADER: " "}, 401),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_without_any_one_of_the_conditions_nothing_is_sent(
    browser: Browser, headers: dict[str, str], status: int
) -> None:
    _, shown = await browser.post("trial", {"command": FREEZE})
    for path in ("trial", "command"):
        found, told = await browser.post(path, {"command": FREEZE, "trial": shown["trial"]}, **headers)
        assert (found, bool(told["error"])) == (status, True)
    assert browser.shown.sent == []


async def test_two_users_in_one_request_are_nobody(http: aiohttp.ClientSession, shown: Showing) -> None:
    twice = [(USER_HEADER, "ann"), (USER_HEADER, "root")]
    async with http.get(f"{shown.address}/api/session", headers=twice) as response:
        found = await response.json()
    assert (found["user"], found["token"]) == (None, None)
    assert "named 2" in found["why"]


@pytest.mark.parametrize("name", [b"ann\xe9", b"ann\xe2\x80\xae"])
async def test_a_name_that_is_no_text_or_cannot_be_seen_is_nobody(shown: Showing, name: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shown.port)
    head = f"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{USER_HEADER}: "
    writer.write(head.encode() + name + b"\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    found = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (found["user"], found["token"]) == (None, None)
    assert "is not UTF-8" in found["why"]


async def test_who_is_not_a_proxy_names_nobody(http: aiohttp.ClientSession) -> None:
    async with showing(Scene(), writes=True, proxies=("10.0.0.0/8", "::1")) as elsewhere:
        found = await session_of(http, elsewhere)
        assert (found["user"], found["token"]) == (None, None)
        status, told = await Browser(http, elsewhere, "x").post("trial", {"command": FREEZE})
        assert (status, "web.proxies" in told["error"]) == (403, True)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"command": 1},
        {"command": {}},
        {"command": {**FREEZE, "by": "root"}},
        {"command": {**FREEZE, "misspelt": 1}},
        {"command": {**FREEZE, "reason": " "}},
        {"command": {**FREEZE, "reason": "x\u001b[31m"}},
        {"command": {**FREEZE, "id": "two words"}},
        {"command": {**FREEZE, "cluster": "elsewhere"}},
        {"command": {**FREEZE, "type": "nonsense"}},
        {"command": {**CANCEL_PLAN, "id": "c", "reason": "r", "all": True}},
        {"command": {"type": "broker-failed", "id": "b", "cluster": CLUSTER, "reason": "r", "broker": 1, "at_ms": 1}},
        {"command": FREEZE, "more": 1},
        {"command": {**FREEZE, "reason": "x" * 70_000}},
    ],
)
async def test_what_is_no_command_of_the_page_is_refused_in_words(browser: Browser, body: Any) -> None:
    for path in ("trial", "command"):
        status, told = await browser.post(path, body)
        assert (status, bool(told["error"])) == (400, True)
    assert browser.shown.sent == []


async def test_the_very_partitions_are_shown_by_what_becomes_of_them(browser: Browser) -> None:
    _, found = await browser.post("trial", {"command": CANCEL_PLAN})
    assert found["groups"] == [
        {
            "what": "to go back to the original replicas, in their order",
            "count": 2,
            "topics": [{"topic": "orders", "partitions": "0-1"}],
        },
        {
            "what": "to end at once: nothing was changed",
            "count": 3,
            "topics": [{"topic": "orders", "partitions": "2-4"}],
        },
    ]
    assert found["offset"] == browser.shown.scene.writer.fold.position - 1
    assert found["remarks"][0] == "afterwards plan p is closed: nothing can be added to it"
    # Nobody but the owner knows what the cluster shows: the dialog says so.
    assert "the worker looks at the cluster first" in found["remarks"][1]
    one = {"type": "cancel", "mode": "stop", "cluster": CLUSTER, "partitions": [{"topic": "orders", "partition": 0}]}
    _, found = await browser.post("trial", {"command": one})
    assert [(group["what"], group["count"]) for group in found["groups"]] == [("to stop, and keep what is in sync", 1)]
    throttle = {"type": "throttle", "cluster": CLUSTER, "plan": "p", "bytes_per_second": 2_000_000}
    _, found = await browser.post("trial", {"command": throttle})
    assert [(group["what"], group["count"]) for group in found["groups"]] == [
        ("to copy under it at once", 2),
        ("to start under it", 3),
    ]
    _, found = await browser.post("trial", {"command": {**throttle, "plan": "q"}})
    assert found["refusals"] == [f"there is no plan q in {CLUSTER}"]


async def test_a_freeze_and_its_end_tell_what_waits_and_what_goes_on(browser: Browser) -> None:
    freeze(browser.shown.scene, "bob", "night")
    browser.shown.refresh()
    _, found = await browser.post("trial", {"command": FREEZE})
    assert [(group["what"], group["count"]) for group in found["groups"]] == [
        ("withheld: no start, and no further step", 3),
        ("going on with the step that copies", 2),
    ]
    unfreeze = {"type": "unfreeze", "cluster": CLUSTER}
    _, found = await browser.post("trial", {"command": unfreeze})
    assert "remains frozen by bob" in found["refusals"][0]
    _, found = await browser.post("trial", {"command": {**unfreeze, "all": True}})
    assert found["word"] == "everything"
    assert found["remarks"] == ["the freeze of bob ends (night)"]
    whats = [group["what"] for group in found["groups"]]
    assert whats == ["free to start, or to take the next step", "copying already"]


async def test_a_hold_tells_which_copies_it_keeps_from_a_broker_and_its_end_which_it_lets_go_on(
    browser: Browser,
) -> None:
    # Partitions 0 and 3 move from 2 to 5, 1 and 4 from 3 to 6, 2 from 1 to 4; the first two copy already.
    hold = {"type": "hold-broker", "cluster": CLUSTER, "broker": 5}
    for role, groups in (
        ("both", [("withheld: a copy into broker 5", "3"), ("withheld if broker 5 leads it", "4")]),
        ("destination", [("withheld: a copy into broker 5", "3")]),
        ("source", [("withheld if broker 5 leads it", "4")]),
    ):
        _, found = await browser.post("trial", {"command": {**hold, "role": role}})
        told = [(group["what"], group["topics"][0]["partitions"]) for group in found["groups"]]
        assert told[: len(groups)] == groups
        assert {what for what, _ in told[len(groups) :]} <= {"copying already, which goes on"}
    status, found = await browser.act({**hold, "id": "h-1", "reason": "slow disk", "role": "destination"})
    assert (status, found["outcome"]["verdict"]) == (200, "accepted")
    release = {"type": "release-broker", "cluster": CLUSTER, "broker": 5}
    _, found = await browser.post("trial", {"command": release})
    assert next(group["what"] for group in found["groups"]) == "free: a copy into broker 5"
    async with browser.http.get(f"{browser.shown.address}/api/document?view=brokers") as response:
        rows = (await response.json())["brokers"]
    assert [(row["broker"], row["held_role"], row["held_by"]) for row in rows if row["held_role"]] == [
        (5, "destination", "ann")
    ]


async def test_a_throttle_of_the_cluster_is_for_plans_that_have_none(browser: Browser) -> None:
    browser.shown.scene.open_plan("free", "ann", "no throttle", None, keys("late", 2))
    browser.shown.refresh()
    _, found = await browser.post(
        "trial", {"command": {"type": "throttle", "cluster": CLUSTER, "bytes_per_second": 2_000_000}}
    )
    assert [(group["what"], group["topics"][0]["topic"]) for group in found["groups"]] == [
        ("to start under it", "late")
    ]


async def test_everything_needs_the_word(browser: Browser) -> None:
    everything = {"type": "cancel", "mode": "stop", "cluster": CLUSTER, "all": True, "id": "all-1", "reason": "enough"}
    for word in ("", "Everything", "all"):
        status, told = await browser.act(everything, word=word)
        assert (status, "everything" in told["error"]) == (400, True)
    assert browser.shown.sent == []
    status, found = await browser.act(everything, word="everything")
    assert (status, len(found["outcome"]["accepted"])) == (200, 5)


async def test_what_was_not_shown_is_not_sent(browser: Browser) -> None:
    command = {**CANCEL_PLAN, "id": "c-1", "reason": "latency alarm"}
    status, told = await browser.post("command", {"command": command, "trial": "0" * 16})
    assert (status, told["shown"]["partitions"]) == (409, 5)
    _, of_another = await browser.post("trial", {"command": {**CANCEL_PLAN, "mode": "stop"}})
    status, _ = await browser.post("command", {"command": command, "trial": of_another["trial"]})
    assert status == 409
    assert browser.shown.sent == []


async def test_what_would_touch_more_than_was_shown_is_shown_again(browser: Browser) -> None:
    command = {**CANCEL_PLAN, "id": "c-1", "reason": "latency alarm"}
    _, before = await browser.post("trial", {"command": CANCEL_PLAN})
    browser.shown.scene.open_plan("p", "ann", "more of it", None, keys("late", 2))
    browser.shown.refresh()
    status, told = await browser.post("command", {"command": command, "trial": before["trial"]})
    assert (status, told["shown"]["partitions"], browser.shown.sent) == (409, 7, [])
    # Fewer than shown are no surprise: some have ended meanwhile.
    browser.shown.scene.complete(keys("orders", 1)[0])
    browser.shown.refresh()
    status, found = await browser.post("command", {"command": command, "trial": told["shown"]["trial"]})
    assert (status, found["outcome"]["verdict"]) == (200, "accepted")
    (sent,) = browser.shown.sent
    assert isinstance(sent, Cancel)


async def test_an_outcome_that_is_not_there_is_never_assumed(
    http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[Exception] = [OutcomeMissingError((), (), None), LogUnavailableError("kafka-1 does not answer")]

    async def failing(_self: Showing, _command: AnyCommand) -> Answer:
        raise faults.pop(0)

    monkeypatch.setattr(Showing, "send", failing)
    async with showing(Scene(), writes=True) as shown:
        browser = Browser(http, shown, (await session_of(http, shown))["token"])
        assert await browser.act(FREEZE) == (202, {"outcome": None})
        status, told = await browser.act(FREEZE)
        assert (status, "with the same id is harmless" in told["error"]) == (503, True)


async def test_while_the_log_is_lost_nobody_is_told_what_a_command_would_mean(browser: Browser) -> None:
    browser.shown.page.cut("log", "kafka-1 does not answer")
    status, told = await browser.post("trial", {"command": FREEZE})
    assert (status, "effect of the command is unknown" in told["error"]) == (503, True)


async def test_what_was_shown_is_forgotten_in_the_end(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "MAX_TRIALS_KEPT", 2)
    _, first = await browser.post("trial", {"command": FREEZE})
    for _ in range(2):
        await browser.post("trial", {"command": FREEZE})
    status, _ = await browser.post("command", {"command": FREEZE, "trial": first["trial"]})
    assert status == 409


async def test_trials_of_one_user_do_not_make_the_page_forget_those_of_another(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "MAX_TRIALS_KEPT", 4)
    _, first = await browser.post("trial", {"command": FREEZE})
    bob = {USER_HEADER: "bob"}
    session = await session_of(browser.http, browser.shown, bob)
    for _ in range(10):
        status, _ = await browser.post("trial", {"command": FREEZE}, **bob, **{"X-Drover-Token": session["token"]})
        assert status == 200
    status, _ = await browser.post("command", {"command": FREEZE, "trial": first["trial"]})
    assert status == 200


async def test_of_large_trials_only_as_many_are_kept_as_there_is_room_for(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds the partitions that were shown: 256 of a plan of 40,000 took a GiB."""
    monkeypatch.setattr(writes, "MAX_PARTITIONS_KEPT", 12, raising=False)
    first, _, third = [(await browser.post("trial", {"command": CANCEL_PLAN}))[1]["trial"] for _ in range(3)]
    # There is room for two of five partitions each; what a freeze would withhold is not kept.
    for _ in range(3):
        await browser.post("trial", {"command": FREEZE})
    sent = {**CANCEL_PLAN, "id": "c-1", "reason": "r"}
    assert (await browser.post("command", {"command": sent, "trial": first}))[0] == 409
    assert (await browser.post("command", {"command": sent, "trial": third}))[0] == 200
    assert len(browser.shown.sent) == 1


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("writes = true", "user_header"),
        ('writes = true\nuser_header = "two words"', "name of a header"),
        ('proxies = ["everywhere"]', "everywhere"),
    ],
)
def test_writes_by_nobody_in_particular_are_refused_by_the_settings(
    tmp_path_factory: pytest.TempPathFactory, section: str, said: str
) -> None:
    config = tmp_path_factory.mktemp("settings") / "drover.toml"
    config.write_text(f'[log]\nbootstrap = "nowhere:1"\n[web]\n{section}\n')
    done = CliRunner().invoke(cli, ["web", "--config", str(config)])
    assert (done.exit_code, said in done.output) == (2, True)
