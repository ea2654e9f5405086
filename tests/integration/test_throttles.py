"""Throttles on a real cluster: the stock tool wipes them, somebody changes one, and a tool leaves some behind."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from drover.cluster.port import AddThrottledReplicas, SetBrokerRates
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, ThrottledReplicas
from drover.jars import class_path, ensure, find_java
from tests.integration.story import read_story
from tests.integration.support import Installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story]

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
RATE = 50_000
OURS, NONE = BrokerRates(RATE, RATE), BrokerRates(None, None)
# One after the other: those that are copied at full speed before anybody notices are few of them.
COUNT = 80
WHY = ("--reason", "integration test")


async def stock_cancel(drover: Installation, topic: str, directory: Path) -> str:
    """Cancel what is not moving, with the stock tool: it deletes the rates of every broker all the same."""
    file = directory / "cancel.json"
    partitions = [{"topic": topic, "partition": 0, "replicas": [1, 2]}]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    process = await asyncio.create_subprocess_exec(
        *(str(find_java()), "-Xmx128m", "-XX:TieredStopAtLevel=1", TOOL, "--cancel"),
        *("--bootstrap-server", drover.cluster.bootstrap, "--reassignment-json-file", str(file)),
        env={**os.environ, "CLASSPATH": class_path(ensure("kafka"))},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


async def rates(drover: Installation) -> Mapping[int, BrokerRates]:
    return await drover.driver.broker_rates((1, 2, 3, 4))


@pytest_asyncio.fixture
async def clean(drover: Installation) -> AsyncIterator[Installation]:
    """The Drover of the folder; a test that fails leaves no throttle and no limit to the tests after it."""
    yield drover
    for command in (("throttle", "set", "none"), ("limits", "reset", "--all")):
        assert (await drover.drover(*command, *WHY)).code == 0
    await drover.driver.change_throttles([SetBrokerRates(broker, NONE) for broker in (1, 2, 3, 4)])


async def test_wiped_rates_come_back_a_changed_one_is_theirs_and_leftover_throttles_are_deleted(
    clean: Installation, tmp_path: Path
) -> None:
    drover = clean
    await drover.create_topic("bystander", {0: [1, 2]})
    await drover.create_topic("wiped", {number: [1, 2] for number in range(COUNT)}, kilobytes=128)
    before = await drover.throttles("wiped")
    assert set(before[0].values()) == {NONE}
    assert (await drover.drover("limits", "set", "max_partitions_in_flight=1", *WHY)).code == 0
    said = await drover.drover("throttle", "set", "50kB/s", *WHY)
    assert "are throttled to 50,000 bytes per second per broker" in said.output, said.errors
    # The plan has no throttle of its own.
    moves = {TopicPartition("wiped", number): [3, 2] for number in range(COUNT)}
    assert (await drover.alter("wiped", moves)).code == 0
    await wiped_rates_come_back(drover, tmp_path)
    await a_changed_rate_is_theirs(drover)

    assert (await drover.drover("throttle", "set", "none", *WHY)).code == 0
    assert (await drover.drover("limits", "reset", "--all", *WHY)).code == 0
    await drover.wait_until_settled(120)
    assert (await drover.plan("wiped")).completed == COUNT
    assert (await rates(drover))[3] == BrokerRates(None, 3_000_000)
    await strays_are_deleted(drover)

    async def as_before() -> bool:
        return await drover.throttles("wiped") == before

    await wait_for(as_before, "every throttle to be as before")
    await drover.wait_until_settled()
    assert (await read_story(drover.connection)).faults == []


async def wiped_rates_come_back(drover: Installation, directory: Path) -> None:
    async def in_force() -> bool:
        found = await rates(drover)
        return {found[1], found[2], found[3]} == {OURS}

    async def recorded() -> bool:
        known = (await drover.state()).broker_throttles
        return all(it in known and known[it].others is not None for it in (1, 2, 3))

    await wait_for(in_force, "the cluster's throttle to be in force")
    assert "broker-level throttles" in await stock_cancel(drover, "bystander", directory)
    await wait_for(recorded, "the log to say that somebody has deleted the rates")
    await wait_for(in_force, "the rates to be back")
    assert (await drover.state()).reassignments, "the moves have ended: nothing was throttled any more"
    assert "somebody else has deleted the throttle of broker 1, 2, 3" in (await drover.drover("status")).output


async def a_changed_rate_is_theirs(drover: Installation) -> None:
    changed = BrokerRates(RATE, 3_000_000)
    await drover.change_throttles(SetBrokerRates(3, changed))

    async def theirs() -> bool:
        known = (await drover.state()).broker_throttles
        if known[3].theirs.follower != 3_000_000 and (await rates(drover))[3] == OURS:
            # Drover was still writing its own, which nothing can prevent: Kafka has no conditional change of a config.
            await drover.change_throttles(SetBrokerRates(3, changed))
        return known[3].theirs.follower == 3_000_000

    await wait_for(theirs, "the log to say whose the rate is")
    document = (await drover.drover("throttle", "show", "-o", "json")).document
    assert document["throttle"]["bytes_per_second"] == RATE
    row = next(row for row in document["brokers"] if row["broker"] == 3)
    assert (row["leader"], row["follower"]) == (RATE, 3_000_000)
    assert row["says"] == "somebody else has set the rate: theirs until they delete it"


async def strays_are_deleted(drover: Installation) -> None:
    entries = ThrottledReplicas(("0:1",), ("0:3", "5:3"))
    await drover.change_throttles(AddThrottledReplicas("wiped", entries))
    found = (await drover.drover("throttle", "show", "-o", "json")).document
    assert [(row["broker"], row["whose"]) for row in found["brokers"]] == [(3, "leftover")]
    # Topics of tests before this one have leftovers, too: restore deletes them all.
    assert ("wiped", "leftover") in {(row["topic"], row["whose"]) for row in found["topics"]}
    asked = await drover.drover("throttle", "clean", *WHY)
    assert asked.code != 0
    assert "there is no terminal to ask on" in asked.errors
    restored = await drover.drover("throttle", "clean", "--yes", *WHY)
    assert restored.code == 0, restored.errors
