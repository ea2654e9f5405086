"""Plans from the command line to real replicas and back, with one worker."""

import json

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaProducer

from drover.cluster.port import SetBrokerRates
from drover.cluster.sockets import DIRECT
from drover.events.codec import encode_command
from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.facts import BrokerRates, ThrottledReplicas
from drover.state.plans import PlanStatus
from tests.integration.story import read_story
from tests.integration.support import MANAGED, Installation, wait_for
from tests.shard.world import alter as alter_command

pytestmark = pytest.mark.cluster


async def test_an_alter_completes_and_log_and_command_line_and_cluster_agree(drover: Installation) -> None:
    await drover.create_topic("agree", {0: [1, 2, 3], 1: [2, 3, 4]}, kilobytes=256)
    first, second = TopicPartition("agree", 0), TopicPartition("agree", 1)
    sent = await drover.alter("agree", {first: [4, 2, 1], second: [1, 4, 3]})
    assert sent.code == 0, sent.errors
    await drover.wait_until_settled()
    assert await drover.replicas(first) == (4, 2, 1)
    assert await drover.replicas(second) == (1, 4, 3)
    plan = await drover.plan("agree")
    assert (plan.status, plan.completed, plan.active) == (PlanStatus.FINISHED, 2, 0)
    history = await drover.drover("history", "--partition", "agree:0", "-o", "jsonl")
    events = [json.loads(line)["what"] for line in history.output.splitlines()]
    assert events[-1] == "reassignment-completed"
    story = await read_story(drover.connection)
    assert story.faults == []
    # (2,3,4) to (1,4,3) adds one replica and is one step, as is the other.
    assert [story.calls(("agree", number), "step") for number in (0, 1)] == [1, 1]


async def test_a_target_with_two_new_replicas_grows_step_by_step(drover: Installation) -> None:
    await drover.create_topic("grow", {0: [1, 2]}, kilobytes=128)
    key = TopicPartition("grow", 0)
    assert (await drover.alter("grow", {key: [4, 3]})).code == 0
    await drover.wait_until_settled()
    assert await drover.replicas(key) == (4, 3)
    story = await read_story(drover.connection)
    lists = [event["replicas"] for event in story.events["grow", 0] if event["type"] == "call-intended"]
    assert lists == [[1, 2, 4], [1, 2, 4, 3], [4, 3]]


async def _set_rates(drover: Installation, rates: BrokerRates) -> None:
    """Set broker 3's rates as another operator would, and wait until the broker shows them."""
    await drover.change_throttles(SetBrokerRates(3, rates))

    async def shown() -> bool:
        return (await drover.driver.broker_rates((3,)))[3] == rates

    await wait_for(shown, "broker 3 to show its rates")


async def test_a_rollback_restores_order_and_throttles_of_exactly_what_was_moving(drover: Installation) -> None:
    await drover.create_topic("back", {0: [1, 2, 3], 1: [3, 2, 1]}, kilobytes=4096)
    key, other = TopicPartition("back", 0), TopicPartition("back", 1)
    await _set_rates(drover, BrokerRates(123_456, None))
    before = await drover.throttles("back")
    assert (await drover.alter("back", {key: [4, 2, 1], other: [4, 2, 3]}, "--throttle", "100kB")).code == 0

    async def copying() -> bool:
        return (await drover.facts(key)).move is not None

    await wait_for(copying, "the move to be listed")
    rates, lists = await drover.throttles("back")
    assert rates[4] == BrokerRates(100_000, 100_000)
    assert lists == ThrottledReplicas(("0:1", "0:2", "0:3", "1:1", "1:2", "1:3"), ("0:4", "1:4"))
    cancelled = await drover.drover("cancel", "--rollback", "--plan", "back", "--reason", "enough")
    assert cancelled.code == 0, cancelled.errors
    await drover.wait_until_settled()
    assert await drover.replicas(key) == (1, 2, 3)
    assert await drover.replicas(other) == (3, 2, 1)

    async def restored() -> bool:
        return await drover.throttles("back") == before

    await wait_for(restored, "every throttle to be as before")
    await _set_rates(drover, BrokerRates(None, None))
    closed = await drover.alter("back", {key: [4, 2, 1]})
    assert closed.code == 1
    assert "plan-closed" in closed.output + closed.errors


async def test_two_hundred_partitions_move_in_one_plan(drover: Installation) -> None:
    count = 200
    layout = {number: [1 + number % 4, 1 + (number + 1) % 4] for number in range(count)}
    await drover.create_topic("many", layout)
    targets = {TopicPartition("many", number): [1 + (number + 2) % 4, 1 + (number + 1) % 4] for number in range(count)}
    assert (await drover.alter("many", targets)).code == 0
    await drover.wait_until_settled()
    seen = await drover.driver.observe(list(targets))
    for key, target in targets.items():
        facts = seen.partitions[key]
        assert facts is not None
        assert facts.replicas == tuple(target)
    assert (await drover.plan("many")).completed == count


async def test_commands_of_any_client_and_poison_between_them_are_each_decided_once(drover: Installation) -> None:
    await drover.create_topic("poison", {0: [1, 2, 3], 1: [2, 3, 4]})
    shard = shard_of(MANAGED, DEFAULT_SHARDS)
    topic = drover.names.commands[0]
    by_kafka_python = {
        "type": "alter",
        "id": "json-1",
        "cluster": MANAGED,
        "by": "curl",
        "reason": "plain JSON",
        "partitions": [{"topic": "poison", "partition": 0, "replicas": [4, 2, 3]}],
    }
    poison = [
        b"",
        b"\x00\xff",
        b"{",
        b'{"type":"alter"}',
        json.dumps({**by_kafka_python, "id": "bad", "x": 1}).encode(),
    ]
    plain = KafkaProducer(bootstrap_servers=drover.cluster.bootstrap, proxy_url=DIRECT)
    for payload in poison:
        plain.send(topic, payload, partition=shard)
    plain.send(topic, json.dumps(by_kafka_python).encode(), key=MANAGED.encode())
    plain.flush()
    plain.close()
    producer = AIOKafkaProducer(**drover.connection.client_options, acks="all")
    await producer.start()
    command = alter_command({TopicPartition("poison", 1): [1, 3, 4]}, id="msgpack-1")
    for _ in range(2):  # the second is a retry and has no effect
        await producer.send_and_wait(topic, encode_command(command), key=MANAGED.encode())
    await producer.stop()

    async def moved() -> bool:
        keys = (TopicPartition("poison", 0), TopicPartition("poison", 1))
        return [await drover.replicas(key) for key in keys] == [(4, 2, 3), (1, 3, 4)]

    await wait_for(moved, "both commands to be carried out")
    story = await read_story(drover.connection)
    assert story.faults == []
    assert [outcome["verdict"] for outcome in story.outcomes["json-1"]] == ["accepted"]
    assert [outcome["verdict"] for outcome in story.outcomes["msgpack-1"]] == ["accepted", "duplicate"]
    assert story.outcomes["bad"][0]["refusals"][0]["code"] == "malformed"
    letters = await drover.drover("dead-letters", "list", "-o", "json")
    assert len(letters.document["dead_letters"]) == len(poison)


async def test_partial_success_names_every_refused_partition_and_exits_with_1(drover: Installation) -> None:
    await drover.create_topic("partial", {0: [1, 2]})
    targets = {
        TopicPartition("partial", 0): [2, 3],
        TopicPartition("partial", 9): [1, 2],
        TopicPartition("absent", 0): [1, 2],
    }
    sent = await drover.alter("partial", targets, "-o", "json")
    assert sent.code == 1
    codes = {(row["topic"], row["partition"]): row["code"] for row in sent.document["outcomes"][0]["refusals"]}
    assert codes == {
        ("partial", 9): "unknown-topic-or-partition",
        ("absent", 0): "unknown-topic-or-partition",
    }
    await drover.wait_until_settled()
    assert await drover.replicas(TopicPartition("partial", 0)) == (2, 3)


@pytest.mark.kills(3)
async def test_a_broker_restart_in_the_middle_of_a_move_only_delays_it(drover: Installation) -> None:
    await drover.create_topic("bounce", {0: [1, 2, 4]}, kilobytes=8192)
    key = TopicPartition("bounce", 0)
    assert (await drover.alter("bounce", {key: [3, 2, 4]}, "--throttle", "1MB")).code == 0

    async def copying() -> bool:
        return (await drover.facts(key)).move is not None

    await wait_for(copying, "the move to be listed")
    await drover.cluster.kill(3)

    async def blocked() -> bool:
        rows = (await drover.status())["reassignments"]
        return any(row["waiting"] for row in rows)

    await wait_for(blocked, "status to say why it waits")
    await drover.cluster.start(3)
    await drover.wait_until_settled()
    assert await drover.replicas(key) == (3, 2, 4)
    story = await read_story(drover.connection)
    assert story.faults == []
    assert story.calls(("bounce", 0), "step") == 1 + story.lapses(("bounce", 0))


async def test_the_successor_of_a_killed_worker_carries_its_move_on(drover: Installation) -> None:
    await drover.create_topic("inherited", {0: [1, 2, 4]}, kilobytes=4096)
    key = TopicPartition("inherited", 0)
    assert (await drover.alter("inherited", {key: [3, 2, 4]}, "--throttle", "500kB")).code == 0

    async def copying() -> bool:
        return (await drover.facts(key)).move is not None

    await wait_for(copying, "the move to be listed")
    await drover.processes["solo"].kill()
    await drover.start_worker("solo")
    await drover.wait_until_settled()
    assert await drover.replicas(key) == (3, 2, 4)
    story = await read_story(drover.connection)
    assert story.faults == []
    assert story.terminal(("inherited", 0)) == ["reassignment-completed"]
    assert story.calls(("inherited", 0), "step") == 1 + story.lapses(("inherited", 0))


async def test_the_log_replays_from_its_first_record_to_the_recorded_state_hash(drover: Installation) -> None:
    await drover.drover("freeze", "--reason", "so that there is something to replay")
    await drover.drover("unfreeze", "--reason", "and back")
    await drover.processes["solo"].stop()
    replayed = await drover.drover("replay", "--verify", "-o", "json")
    assert replayed.code == 0, replayed.errors
    assert replayed.document["state_hashes"] >= 1
    await drover.start_worker("solo")
    await drover.wait_until_owned("solo")
