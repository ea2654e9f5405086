"""Two operators drain two brokers at the same time, on real replicas: neither fills the broker of the other."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from drover.events.partitions import TopicPartition
from tests.integration.support import Installation, wait_for

pytestmark = pytest.mark.cluster
TOPIC = "together"
# The first three have a replica on broker 3, the next three on broker 2, and the last one has neither.
LAYOUT = {0: [1, 3], 1: [3, 4], 2: [4, 3], 3: [1, 2], 4: [2, 4], 5: [4, 2], 6: [1, 4]}
ON_3 = range(3)
ON_2 = range(3, 6)
# So slow that a copy is still under way when it is cancelled: a fetch takes a megabyte whatever the rate.
KILOBYTES = 4096
SLOW, FAST = "2kB/s", "50MB/s"


def key(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def together(drover: Installation) -> AsyncIterator[Installation]:
    await drover.create_topic(TOPIC, LAYOUT, kilobytes=KILOBYTES)
    yield drover


async def submit(drover: Installation, broker: int, plan: str, *options: str) -> None:
    """Drain a broker as an operator does it; topics of Drover's own stay."""
    arguments = ("plan", "drain", str(broker), "--partial", "--throttle", SLOW, "--plan", plan)
    done = await drover.drover(*arguments, "--apply", "--reason", "new disks", *options)
    assert done.code == 0, done.output + done.errors


async def described(drover: Installation) -> dict[int, Any]:
    shown = await drover.drover("describe", "--topic", TOPIC, "-o", "jsonl")
    return {row["partition"]: row for row in map(json.loads, shown.output.splitlines())}


async def test_two_drains_at_once_send_nothing_to_each_others_broker(together: Installation) -> None:
    # Nothing starts yet, so that both plans are open for as long as this looks at them.
    assert (await together.drover("freeze", "--reason", "look first")).code == 0
    await submit(together, 3, "empty-3")
    # One that was made a moment before the first was decided: the decision refuses it.
    raced = await together.alter("raced", {key(6): [1, 3]})
    assert raced.code == 4, raced.output + raced.errors
    assert "broker-emptied" in raced.output + raced.errors

    made = (await together.drover("plan", "drain", "2", "-o", "json")).document
    assert all(3 not in move["adding"] for move in made["moves"])
    (left_out,) = (one for one in made["unmet"] if one["code"] == "left-out")
    assert (left_out["broker"], "plan empty-3 (" in left_out["text"]) == (3, True)
    await submit(together, 2, "empty-2")

    stock = json.loads((await together.drover("status", "-o", "stock")).output)
    under_way = {(one["topic"], one["partition"]): one["replicas"] for one in stock["partitions"]}
    assert {number for number in LAYOUT if key(number) in under_way} == {*ON_3, *ON_2}
    assert all(3 not in under_way[key(number)] for number in (*ON_3, *ON_2))
    assert all(2 not in under_way[key(number)] for number in ON_2)


async def test_a_cancel_prints_the_lists_that_it_restores(together: Installation) -> None:
    assert (await together.drover("unfreeze", "--reason", "seen")).code == 0

    async def is_copied() -> bool:
        rows = await described(together)
        return any(row["adding"] and row["removing"] and row["target"] for row in rows.values() if 2 in row["removing"])

    await wait_for(is_copied, "a copy of the second drain")
    cancelled = await together.drover("cancel", "--rollback", "--plan", "empty-2", "--reason", "not now", "-o", "json")
    assert cancelled.code == 0, cancelled.errors
    restores = {(one["topic"], one["partition"]): one["replicas"] for one in cancelled.document["restores"]}
    restored = {number: restores[key(number)] for number in ON_2 if key(number) in restores}
    assert restored, "one of it had begun"
    assert restored == {number: LAYOUT[number] for number in restored}
    # Refused where the first drain is over by now.
    await together.drover("throttle", "set", "empty-3", FAST, "--reason", "the night has come")
    await together.wait_until_settled()
    ended = {number: list(await together.replicas(key(number))) for number in LAYOUT}
    assert all(3 not in ended[number] for number in ON_3)
    assert {number: ended[number] for number in restored} == restored


async def test_a_plan_that_is_over_reserves_nothing(together: Installation) -> None:
    assert (await together.alter("refilled", {key(0): [1, 3]})).code == 0
    await together.wait_until_settled()
    assert await together.replicas(key(0)) == (1, 3)
