"""A worker that has lost an ACL cannot set a throttle: the move is blocked, says why, and goes on once allowed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from drover.client.acls import Part, needs
from drover.cluster.acls import Acl, Operation, Resource, create_acls
from drover.local.layout import WORKER
from events.topics import TopicNames
from tests.integration.support import wait_for
from tests.secure.support import Serving

pytestmark = pytest.mark.cluster

RATES = "leader.replication.throttled.rate and follower.replication.throttled.rate"
LISTS = "leader.replication.throttled.replicas and follower.replication.throttled.replicas"
CASES = [
    (Resource.CLUSTER, f"Kafka refuses to set {RATES} of broker ", "code 31 (", "broker-throttle-refused"),
    (Resource.TOPIC, f"Kafka refuses to change {LISTS} of topic ", "code 29 (", "topic-throttle-refused"),
]


def lost(resource: Resource) -> Acl:
    """The one ACL of a worker that lets it change configs of this kind on a managed cluster."""
    (found,) = {
        acl
        for need in needs(TopicNames(), "drover-worker")
        if need.part is Part.WORKER
        for acl in need.acls(WORKER)
        if acl.operation is Operation.ALTER_CONFIGS and acl.resource is resource
    }
    return found


@pytest.mark.parametrize(("resource", "said", "code", "event"), CASES, ids=["rates", "lists"])
async def test_a_move_is_blocked_while_kafka_refuses_its_throttle_and_goes_on_when_it_does_not(
    serving: Serving, resource: Resource, said: str, code: str, event: str
) -> None:
    secure, topic = serving.secure, f"guarded-{resource.name.lower()}"
    size = ("--partitions", "1", "--replicas", "2", "--megabytes", "1", "--dir", str(secure.local.directory))
    seeded = await secure.drover("local", "seed", topic, *size, config=secure.local.config_file)
    assert seeded.errors == ""
    before = await serving.replicas(topic)
    target = [*({1, 2, 3} - set(before)), before[0]]
    file = secure.directory / f"{topic}.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": target}]}))
    # Who may alter configs may describe them, too.
    describing = replace(lost(resource), operation=Operation.DESCRIBE_CONFIGS)
    if resource is Resource.TOPIC:
        # Without it the worker could not look at the topic at all.
        await create_acls(secure.local.bootstrap, [describing], secure.local.admin_options)
    await secure.remove_acl(lost(resource))
    try:
        sent = await serving.operator("alter", str(file), "--plan", topic, "--throttle", "50MB/s", "--reason", "try")
        assert sent.code == 0, sent.errors
        shown: list[dict[str, Any]] = []

        async def blocked() -> bool:
            document = json.loads((await serving.operator("status", "-o", "json")).output)
            shown[:] = [row for row in document["reassignments"] if row["topic"] == topic]
            return bool(shown) and "throttle-refused" in (shown[0]["waiting"] or "")

        await wait_for(blocked, "the block of the move")
        if resource is Resource.CLUSTER:
            assert f"Kafka refuses to show {RATES} of broker " in shown[0]["waiting"]
            await create_acls(secure.local.bootstrap, [describing], secure.local.admin_options)

        async def named() -> bool:
            return await blocked() and said in shown[0]["waiting"]

        await wait_for(named, "the block that names what Kafka refuses")
        assert code in shown[0]["waiting"]
        assert await serving.replicas(topic) == before
        status = await serving.operator("status")
        assert said in " ".join(status.output.split())
        throttles = json.loads((await serving.operator("throttles", "-o", "json")).output)
        says = [row["says"] for row in (*throttles["brokers"], *throttles["topics"])]
        assert resource is Resource.TOPIC or any(said in line and "tried again every 10 s" in line for line in says)
    finally:
        await create_acls(secure.local.bootstrap, [lost(resource)], secure.local.admin_options)

    async def moved() -> bool:
        return await serving.replicas(topic) == tuple(target)

    await wait_for(moved, "the move to go on by itself")

    async def finished() -> bool:
        lines = (await serving.operator("history", "--plan", topic, "-o", "jsonl")).output.splitlines()
        return bool(json.loads(lines[-1])["what"] == "plan-finished")

    await wait_for(finished, "the end of the plan")
    log = await serving.operator("history", "-o", "jsonl")
    kinds = [json.loads(line)["what"] for line in log.output.splitlines()]
    assert event in kinds
