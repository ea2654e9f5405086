"""`drover doctor` on a secure cluster: each user's rights as the brokers tell them, and what others left there."""

import json

import pytest
import pytest_asyncio

from drover.cluster.kafka import KafkaDriver
from drover.cluster.port import RemoveThrottledReplicas, SetBrokerRates
from drover.facts import BrokerRates
from drover.local.layout import OPERATOR, WORKER
from tests.secure.support import Serving
from tests.secure.test_acls import MOVED_TOPIC

pytestmark = [pytest.mark.cluster, pytest.mark.story]


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nothing_left_over(serving: Serving) -> None:
    """Delete the throttled replicas that the probes of ACLs have left on the same cluster."""
    driver = KafkaDriver("somebody", serving.secure.local.bootstrap, serving.secure.local.admin_options)
    try:
        lists = await driver.throttled_replicas([MOVED_TOPIC])
        await driver.change_throttles([RemoveThrottledReplicas(topic, entries) for topic, entries in lists.items()])
    finally:
        await driver.close()


async def examined(serving: Serving, user: str, *arguments: str) -> tuple[int, list[dict[str, str]]]:
    config = serving.secure.local.config_of(user)
    done = await serving.secure.drover("doctor", "-o", "json", *arguments, config=config)
    assert done.errors == ""
    return done.code, json.loads(done.output)["findings"]


async def test_each_user_has_the_rights_of_its_part_and_not_those_of_the_other(serving: Serving) -> None:
    assert await examined(serving, OPERATOR) == (0, [])
    code, found = await examined(serving, WORKER, "--part", "worker")
    assert (code, [finding for finding in found if finding["check"] == "ACLs"]) == (0, [])
    code, found = await examined(serving, OPERATOR, "--part", "worker")
    assert code == 1
    lacking = {finding["detail"] for finding in found if finding["check"] == "ACLs"}
    assert "our user lacks Write on topic drover.events: follows the log and appends to it" in lacking
    assert "our user lacks Alter on cluster kafka-cluster: reassigns, elects, lists, sees log directories" in lacking
    assert "our user lacks Read on group drover-worker: shares the shards with the other workers" in lacking


async def test_a_throttle_that_somebody_left_is_found_until_it_is_gone(serving: Serving) -> None:
    secure = serving.secure
    driver = KafkaDriver("somebody", secure.local.bootstrap, secure.local.admin_options)
    try:
        await driver.change_throttles([SetBrokerRates(3, BrokerRates(1000, 1000))])
        code, found = await examined(serving, OPERATOR)
        assert code == 0, "a warning stops no CI"
        assert [finding["detail"] for finding in found] == ["no move needs the throttles of broker 3"]
        assert (await examined(serving, OPERATOR, "--strict"))[0] == 1
    finally:
        await driver.change_throttles([SetBrokerRates(3, BrokerRates(None, None))])
        await driver.close()
    assert await examined(serving, OPERATOR, "--strict") == (0, [])
