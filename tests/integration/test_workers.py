"""Two workers, a running plan and a stream of commands, while the owner is killed, paused and stopped."""

import asyncio
import signal
from random import Random

import pytest
from aiokafka import AIOKafkaProducer

from drover.events.codec import encode_command
from drover.events.commands import AnyCommand, Blacklist, BrokerFailed, BrokerReturned
from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.local import LocalCluster
from tests.integration.story import Story, read_story
from tests.integration.support import MANAGED, Installation, installation, wait_for
from tests.shard.world import alter as alter_command

pytestmark = [pytest.mark.cluster, pytest.mark.story]

COMMANDS = 300
PARTITIONS = 24
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)


async def test_a_plan_survives_kill_pause_and_stop_of_its_owner_with_nothing_lost_doubled_or_sent_again(
    local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("two-workers")
    async with installation(local_cluster, directory, "two", max_moves_per_broker=3) as made:
        layout = {number: [1 + number % 4, 1 + (number + 1) % 4] for number in range(PARTITIONS)}
        await made.create_topic("orders", layout, kilobytes=1536)
        for name in ("first", "second"):
            await made.start_worker(name)
        await made.wait_until_owned("first", "second")
        targets = {
            TopicPartition("orders", number): [1 + (number + 2) % 4, 1 + (number + 1) % 4]
            for number in range(PARTITIONS)
        }
        assert (await made.alter("drain", targets, "--throttle", "2MB")).code == 0
        commands = asyncio.create_task(_feed(made, Random(7)))
        await _torment(made)
        await commands
        await made.wait_until_settled()
        story = await _all_decided(made)
        seen = await made.driver.observe(list(targets))
        for key, target in targets.items():
            facts = seen.partitions[key]
            assert facts is not None
            assert facts.replicas == tuple(target)
        _judge(story, targets)
        replayed = await made.drover("replay", "--verify")
        assert replayed.code == 0, replayed.errors

        async def unthrottled() -> bool:
            rates, lists = await made.throttles("orders")
            return not lists.leader and all(rate.leader_bytes_per_second is None for rate in rates.values())

        await wait_for(unthrottled, "every throttle to be taken back")


async def test_a_worker_stops_in_time_while_its_group_waits_for_another_one_that_hangs(
    local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Seen after brokers had been bounced: a member that waits in a rebalance cannot leave before the others answer."""
    directory = tmp_path_factory.mktemp("hanging-member")
    async with installation(local_cluster, directory, "hanging", session_timeout_ms=30_000) as made:
        for name in ("hangs", "stops"):
            await made.start_worker(name)
        await made.wait_until_owned("hangs", "stops")
        made.processes["hangs"].send_signal(signal.SIGSTOP)
        await made.start_worker("joins")

        async def is_waiting() -> bool:
            return "shards are given up" in made.processes["stops"].log_text().rpartition("shards are owned")[2]

        await wait_for(is_waiting, "the worker to join again")
        assert await made.processes["stops"].stop() == 0, made.processes["stops"].log_text()
        assert "ending without leaving the group" in made.processes["stops"].log_text()


async def _feed(made: Installation, random: Random) -> None:
    """Send 300 commands in as many moments as the torment lasts; some are sent twice."""
    producer = AIOKafkaProducer(**made.connection.client_options, enable_idempotence=True)
    await producer.start()
    for number in range(COMMANDS):
        topic_index, command = _command(number, random)
        for _ in range(2 if number % 25 == 0 else 1):
            payload = encode_command(command, as_json=number % 2 == 0)
            await producer.send_and_wait(made.names.commands[topic_index], payload, key=MANAGED.encode())
        await asyncio.sleep(0.1)
    await producer.stop()


def _command(number: int, random: Random) -> tuple[int, AnyCommand]:
    identity = f"c{number}"
    match random.randrange(4):
        case 0:
            # Brokers that are not there, so that the lists stay as the plan leaves them.
            brokers = (90 + random.randrange(4),)
            return 2, Blacklist(id=identity, cluster=MANAGED, by="feeder", reason="r", brokers=brokers)
        case 1:
            at_ms = 1000 + number
            return 3, BrokerFailed(id=identity, cluster=MANAGED, by="feeder", reason="r", broker=9, at_ms=at_ms)
        case 2:
            at_ms = 2000 + number
            return 3, BrokerReturned(id=identity, cluster=MANAGED, by="feeder", reason="r", broker=9, at_ms=at_ms)
        case _:
            return 0, alter_command({TopicPartition("absent", number): [1]}, id=identity)


async def _torment(made: Installation) -> None:
    """Kill the owner at a random moment, pause it past its session, stop it cleanly; each time somebody takes over."""
    random = Random(11)
    await asyncio.sleep(random.uniform(0.2, 2))
    owner = await _owner(made)
    await made.processes[owner].kill()
    await _until_owned_by_other(made, owner)
    await made.start_worker("third")
    await _until_member(made, "third")
    owner = await _owner(made)
    made.processes[owner].send_signal(signal.SIGSTOP)
    await _until_owned_by_other(made, owner)
    made.processes[owner].send_signal(signal.SIGCONT)
    await asyncio.sleep(random.uniform(0.2, 2))
    owner = await _owner(made)
    assert await made.processes[owner].stop() == 0, made.processes[owner].log_text()
    await _until_owned_by_other(made, owner)


async def _owner(made: Installation) -> str:
    return (await made.owners())[SHARD]


async def _until_owned_by_other(made: Installation, owner: str) -> None:
    async def other() -> bool:
        return await _owner(made) != owner

    await wait_for(other, f"another worker than {owner} to own the shard")


async def _until_member(made: Installation, worker: str) -> None:
    async def member() -> bool:
        return worker in (await made.owners()).values()

    await wait_for(member, f"{worker} to own a shard")


async def _all_decided(made: Installation) -> Story:
    found: list[Story] = []

    async def decided() -> bool:
        found[:] = [await read_story(made.connection)]
        return not found[0].faults

    await wait_for(decided, "every command to be decided exactly once")
    return found[0]


def _judge(story: Story, targets: dict[TopicPartition, list[int]]) -> None:
    assert story.faults == []
    assert len(set(story.owners)) == 3
    for number in range(COMMANDS):
        effective = [outcome for outcome in story.outcomes[f"c{number}"] if outcome["verdict"] != "duplicate"]
        assert len(effective) == 1, f"command c{number} had {len(effective)} effects"
    for key in targets:
        assert story.terminal(key) == ["reassignment-completed"], story.events[key]
        assert story.calls(key, "cancel") == 0
        assert story.calls(key, "step") == 1 + story.lapses(key), story.events[key]
