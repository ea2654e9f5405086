"""docs/recovery.md, a log that is not to be trusted: the steps to a new one beside it, done as they are written."""

from dataclasses import replace
from pathlib import Path

import pytest

from drover.cluster.port import SetBrokerRates
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, ThrottledReplicas
from drover.local import LocalCluster
from drover.state.plans import PlanStatus
from tests.integration.support import Installation, installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story]

KEYS = [TopicPartition("rescued", number) for number in range(2)]
MOVED, BACK = [4, 2, 3], [1, 2, 3]
WHY = ("--reason", "a new log")
FAST = BrokerRates(10_000_000, 10_000_000)
FREE = (BrokerRates(None, None), ThrottledReplicas((), ()))


async def test_the_steps_to_a_new_log_lead_there(local_cluster: LocalCluster, tmp_path: Path) -> None:
    async with installation(local_cluster, tmp_path, "distrusted") as drover:
        await drover.create_topic("rescued", {key.partition: BACK for key in KEYS}, kilobytes=4096)
        await drover.start_worker("old")
        await drover.wait_until_owned("old")
        # Eight megabytes at 50 kB/s, of which the first fetch takes two at once: two minutes to leave the log.
        assert (await drover.alter("before", dict.fromkeys(KEYS, MOVED), "--throttle", "50kB")).code == 0

        async def is_moving() -> bool:
            return len((await drover.driver.list_moves()).moves) == len(KEYS)

        await wait_for(is_moving, "Kafka to move both")
        # 1
        assert await drover.processes["old"].stop() == 0
        old = drover.config.rename(tmp_path / "old.toml")
        # 2
        drover.config.write_text(old.read_text().replace('prefix = "distrusted"', 'prefix = "renewed"'))
        renewed = Installation(local_cluster, tmp_path, replace(drover.settings, prefix="renewed"))
        try:
            await _go_on(renewed, old)
        finally:
            # Whatever happens, the tests after this one find no rate.
            await renewed.driver.change_throttles([SetBrokerRates(broker, FREE[0]) for broker in (1, 2, 3, 4)])
            await renewed.close()


async def _go_on(drover: Installation, old: Path) -> None:
    for step in ("init", "check"):
        done = await drover.drover("log", step)
        assert done.code == 0, done.errors
    await drover.start_worker("new")
    await drover.wait_until_owned("new")
    # 3
    await _moves_of_others_are_left_alone(drover)
    # 4
    await _leftover_throttles_are_deleted(drover)
    # 5
    assert (await drover.alter("after", dict.fromkeys(KEYS, BACK))).code == 0
    await drover.wait_until_settled()
    assert [await drover.replicas(key) for key in KEYS] == [tuple(BACK)] * len(KEYS)
    assert (await drover.plan("after")).status is PlanStatus.FINISHED
    history = await drover.drover("history", "--config", str(old), "--plan", "before", "--events")
    assert (history.code, "rescued" in history.output) == (0, True), history.errors


async def _moves_of_others_are_left_alone(drover: Installation) -> None:
    async def are_shown() -> bool:
        return len((await drover.status())["unmanaged"]) == len(KEYS)

    async def have_ended() -> bool:
        return not (await drover.status())["unmanaged"]

    await wait_for(are_shown, "the moves to be shown as moves of others")
    refused = await drover.alter("too-early", {KEYS[0]: BACK})
    assert (refused.code, "is being moved by somebody else" in refused.output + refused.errors) == (1, True), refused
    # As an administrator may, who does not want to wait.
    await drover.change_throttles(*(SetBrokerRates(broker, FAST) for broker in (1, 2, 3, 4)))
    await wait_for(have_ended, "the moves to end by themselves")
    assert [await drover.replicas(key) for key in KEYS] == [tuple(MOVED)] * len(KEYS)


async def _leftover_throttles_are_deleted(drover: Installation) -> None:
    found = (await drover.drover("throttle", "show", "-o", "json")).document
    assert {row["whose"] for row in (*found["brokers"], *found["topics"])} == {"leftover"}
    # Tests before this one have left some, too: restore deletes them all.
    assert "rescued" in {row["topic"] for row in found["topics"]}
    restored = await drover.drover("throttle", "clean", "--yes", *WHY)
    assert restored.code == 0, restored.errors

    async def are_gone() -> bool:
        rates, entries = await drover.throttles("rescued")
        return {*rates.values(), entries} == {*FREE}

    await wait_for(are_gone, "every throttle of the old log to be gone")
