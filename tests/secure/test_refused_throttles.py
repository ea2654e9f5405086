"""A worker that has lost an ACL cannot set a throttle: the move is blocked, says why, and goes on once allowed."""

import json
from dataclasses import replace

import pytest

from drover.client.acls import Part, needs
from drover.cluster.acls import Acl, Operation, Resource, create_acls
from drover.events.topics import TopicNames
from drover.local.layout import WORKER
from tests.integration.support import wait_for
from tests.secure.support import Serving

# A command takes seconds on a busy machine, and a refused write is repeated every ten.
pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.timeout(900)]

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


async def asked(serving: Serving, topic: str) -> tuple[tuple[int, ...], list[str]]:
    """Make a topic; return its replicas and the command that moves one of them behind a throttle."""
    secure = serving.secure
    size = ("--partitions", "1", "--replicas", "2", "--megabytes", "1", "--dir", str(secure.local.directory))
    seeded = await secure.drover("local", "seed", topic, *size, config=secure.local.config_file)
    assert seeded.code == 0, seeded.errors
    before = await serving.replicas(topic)
    target = [*({1, 2, 3} - set(before)), before[0]]
    file = secure.directory / f"{topic}.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": target}]}))
    return before, ["alter", str(file), "--plan", topic, "--throttle", "50MB/s", "--reason", "try"]


async def wait_for_block(serving: Serving, topic: str, said: str) -> str:
    """Wait until `status` says so of the topic's move; return all of what it waits for."""
    shown: list[str] = []

    async def is_shown() -> bool:
        document = json.loads((await serving.operator("status", "-o", "json")).output)
        shown[:] = [row["waiting"] or "" for row in document["reassignments"] if row["topic"] == topic]
        return any("throttle-refused" in line and said in line for line in shown)

    await wait_for(is_shown, f"a block: {said}")
    return shown[0]


async def ended(serving: Serving, topic: str) -> None:
    async def is_over() -> bool:
        lines = (await serving.operator("history", "--plan", topic, "-o", "jsonl")).output.splitlines()
        return bool(json.loads(lines[-1])["what"] == "plan-finished")

    await wait_for(is_over, "the move to go on by itself, and the end of its plan")


@pytest.mark.parametrize(("resource", "said", "code", "event"), CASES, ids=["rates", "lists"])
async def test_a_move_is_blocked_while_kafka_refuses_its_throttle_and_goes_on_when_it_does_not(
    serving: Serving, resource: Resource, said: str, code: str, event: str
) -> None:
    secure, topic = serving.secure, f"guarded-{resource.name.lower()}"
    before, command = await asked(serving, topic)
    # Who may alter configs may describe them, too.
    describing = replace(lost(resource), operation=Operation.DESCRIBE_CONFIGS)
    if resource is Resource.TOPIC:
        # Without it the worker could not look at the topic at all.
        await create_acls(secure.local.bootstrap, [describing], secure.local.admin_options)
    await secure.remove_acl(lost(resource))
    try:
        sent = await serving.operator(*command)
        assert sent.code == 0, sent.errors
        if resource is Resource.CLUSTER:
            await wait_for_block(serving, topic, f"Kafka refuses to show {RATES} of broker ")
            await create_acls(secure.local.bootstrap, [describing], secure.local.admin_options)
        assert code in await wait_for_block(serving, topic, said)
        assert await serving.replicas(topic) == before
        status = await serving.operator("status")
        assert said in " ".join(status.output.split())
        throttles = json.loads((await serving.operator("throttle", "show", "-o", "json")).output)
        says = [row["says"] for row in throttles["brokers"]]
        assert resource is Resource.TOPIC or any(said in line and "tried again every 10 s" in line for line in says)
    finally:
        await create_acls(secure.local.bootstrap, [lost(resource)], secure.local.admin_options)
    await ended(serving, topic)
    assert (await serving.replicas(topic))[-1] == before[0]
    log = await serving.operator("history", "-o", "jsonl")
    assert event in [json.loads(line)["what"] for line in log.output.splitlines()]
