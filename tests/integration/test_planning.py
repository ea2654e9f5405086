"""Plans from the first look to an empty broker, on real replicas: drain, add, replace, more and fewer replicas."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from drover.events.partitions import TopicPartition
from drover.inventory import Inventory
from tests.integration.support import Installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.kills(3)]
TOPIC = "planned"
PARTITIONS = 12
# Two brokers share a rack, so that each of them can take over what the other has.
LAYOUT = {number: [1 + number % 4, 1 + (number + 1) % 4] for number in range(PARTITIONS)}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def planned(drover: Installation) -> AsyncIterator[Installation]:
    """A Drover with a topic of 3 MB; broker 3 is alive again in the end."""
    await drover.create_topic(TOPIC, LAYOUT, kilobytes=256)
    yield drover
    if 3 not in (await drover.driver.identify()).racks:
        await drover.cluster.start(3)


async def apply(drover: Installation, *goal: str) -> Any:
    """Submit what reaches a goal, wait until it is done, and return what was printed."""
    done = await drover.drover("plan", *goal, "--apply", "--reason", "a story", "-o", "json")
    assert done.code == 0, done.output + done.errors
    assert [one["verdict"] for one in done.document["outcomes"]] == ["accepted"]
    await drover.wait_until_settled()
    return done.document["proposal"]


async def lay_out(drover: Installation, plan: str, *lists: list[int]) -> None:
    """Put the topic on these lists by turns: where other tests' topics are decides what a planner does with it."""
    wanted = {TopicPartition(TOPIC, number): lists[number % len(lists)] for number in range(PARTITIONS)}
    assert (await drover.alter(plan, wanted)).code == 0
    await drover.wait_until_settled()


async def replicas_on(drover: Installation, topic: str | None = None) -> Counter[int]:
    """Count the replicas on each broker, of one topic or of all."""
    inventory: Inventory = await drover.driver.inventory()
    found: Counter[int] = Counter()
    for key, facts in inventory.partitions.items():
        if topic in {None, key.topic}:
            found.update(facts.replicas)
    return found


async def test_a_broker_is_described_and_drained_until_it_is_empty(planned: Installation) -> None:
    described = await planned.drover("describe", "--broker", "4", "--load", "1s", "-o", "jsonl")
    rows = [json.loads(line) for line in described.output.splitlines()]
    assert {row["write_bytes_per_s"] for row in rows if row["topic"] == TOPIC} == {0.0}
    assert TOPIC in {row["topic"] for row in rows}
    assert all(4 in row["replicas"] and row["size_bytes"] is not None for row in rows)
    # Drover's own topics move too, while it writes to them.
    proposal = await apply(planned, "drain", "4", "--include-internal", "--throttle", "50MB/s", "--plan", "empty-4")
    assert proposal["totals"]["least_time_s"] > 0
    assert (await replicas_on(planned))[4] == 0
    assert (await planned.plan("empty-4")).completed == len(proposal["moves"])
    after = await planned.drover("describe", "-o", "jsonl")
    (emptied,) = (row for row in map(json.loads, after.output.splitlines()) if row["broker"] == 4)
    assert (emptied["replicas"], emptied["leaders"]) == (0, 0)
    nothing = await planned.drover("plan", "drain", "4", "--include-internal", "--apply", "--reason", "again")
    assert (nothing.code, "nothing has to move" in nothing.output) == (0, True)


async def test_the_hash_holds_until_somebody_else_changes_the_cluster(planned: Installation, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    made = await planned.drover("plan", "add", "4", "--out", str(file), "-o", "json")
    held = ("alter", str(file), "--plan-hash", made.document["hash"], "--reason", "as proposed")
    moved = TopicPartition(**{name: made.document["moves"][0][name] for name in ("topic", "partition")})
    before = await planned.replicas(moved)
    tried = await planned.drover(*held, "--throttle", "50MB/s", "--dry-run")
    assert tried.code == 0, tried.errors
    assert "with another preferred leader afterwards" in tried.errors
    assert "It takes at least" in tried.errors
    document = (await planned.drover(*held, "--throttle", "50MB/s", "--dry-run", "-o", "json")).document["estimate"]
    assert document["partitions"] == len(made.document["moves"])
    for figure in ("copies", "bytes", "leaders_moved"):
        assert document[figure] == made.document["totals"][figure]
    assert document["least_time_s"] > 0

    assert (await planned.alter("unmanaged", {moved: before[::-1]})).code == 0
    await planned.wait_until_settled()
    refused = await planned.drover(*held)
    assert refused.code == 4
    assert f"{moved} was on {list(before)}, and now is on {list(before[::-1])}" in refused.errors
    assert (await replicas_on(planned, TOPIC))[4] == 0

    assert (await planned.alter("unmanaged-back", {moved: before})).code == 0
    await planned.wait_until_settled()
    accepted = await planned.drover(*held)
    assert accepted.code == 0, accepted.errors
    await planned.wait_until_settled()
    for row in made.document["moves"]:
        assert await planned.replicas(TopicPartition(row["topic"], row["partition"])) == tuple(row["after"])


async def test_an_added_broker_got_its_share_and_the_balance_is_as_it_was_proposed(planned: Installation) -> None:
    # Of which topics depends on what else is there, and so does whether anything is left to balance.
    assert (await replicas_on(planned))[4] > 0
    await lay_out(planned, "uneven", [1, 2])
    proposal = (await planned.drover("plan", "balance", "--include-internal", "-o", "json")).document
    if proposal["moves"]:
        proposal = await apply(planned, "balance", "--include-internal")
    described = (await planned.drover("describe", "-o", "yaml")).output
    rows = yaml.safe_load(described)["rows"]
    for figure, column in (("replicas", "replicas"), ("leaders", "preferred")):
        loads = [row[column] for row in rows]
        after = proposal["balance"]["after"][figure]
        assert max(loads) / (sum(loads) / len(loads)) == pytest.approx(after["highest"])
        assert after["highest"] <= proposal["balance"]["before"][figure]["highest"]

    async def settled() -> bool:
        # Drover's own log grows with every plan, so that a broker may hold too many bytes again.
        left = (await planned.drover("plan", "balance", "--include-internal", "-o", "json")).document["moves"]
        if left:
            await apply(planned, "balance", "--include-internal")
        return not left

    await wait_for(settled, "a balance from which nothing has to move")


async def test_more_and_fewer_replicas(planned: Installation) -> None:
    await apply(planned, "set-rf", TOPIC, "3")
    raised = await planned.driver.inventory()
    lists = [facts.replicas for key, facts in raised.partitions.items() if key.topic == TOPIC]
    assert [len(replicas) for replicas in lists] == [3] * PARTITIONS
    racks = {broker: found.rack for broker, found in raised.brokers.items()}
    assert all(len({racks[broker] for broker in replicas}) == 3 for replicas in lists)
    await apply(planned, "set-rf", TOPIC, "2")
    lowered = await planned.driver.inventory()
    assert [len(facts.replicas) for key, facts in lowered.partitions.items() if key.topic == TOPIC] == [2] * PARTITIONS


async def test_a_killed_broker_is_replaced_by_a_spare_one(planned: Installation) -> None:
    await lay_out(planned, "known", [4, 2], [2, 3], [3, 1], [4, 3])
    # Broker 4 becomes the spare one; only this topic is moved, so that the others find broker 3 as it was.
    others = sorted({key.topic for key in (await planned.driver.inventory()).partitions} - {TOPIC})
    rest = ("--exclude-topics", ",".join(others))
    await apply(planned, "drain", "4", *rest)
    lost = {key: list(facts.replicas) for key, facts in (await planned.driver.inventory()).partitions.items()
            if key.topic == TOPIC and 3 in facts.replicas}  # fmt: skip
    assert lost
    await planned.cluster.kill(3)

    async def noticed() -> bool:
        return 3 not in (await planned.driver.identify()).racks

    await wait_for(noticed, "the cluster to notice the death of broker 3")
    refused = await planned.drover("plan", "replace", "4", "--with", "3")
    assert (refused.code, "broker 3 is not alive" in refused.output) == (2, True)
    await apply(planned, "replace", "3", "--with", "4", *rest)
    for key, replicas in lost.items():
        # Broker 4 is in the rack of broker 1: what is there already goes to broker 2, into the same place.
        instead = 2 if 1 in replicas else 4
        assert await planned.replicas(key) == tuple(instead if broker == 3 else broker for broker in replicas)
    assert (await replicas_on(planned, TOPIC))[3] == 0
    await planned.cluster.start(3)
