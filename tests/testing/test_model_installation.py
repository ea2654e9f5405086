"""The model installation: real workers and the client's own methods, in virtual time."""

import asyncio

import msgspec
import pytest

from drover.client.answers import OutcomeMissingError
from drover.client.client import Client
from drover.errors import ConfigurationError
from drover.events.commands import Alter, Cancel, Freeze, PartitionTarget
from drover.events.reassignments import ReassignmentCompleted, ReassignmentRolledBack
from drover.settings.settings import ClusterSettings, WorkerSettings
from drover.testing.in_memory import ModelInstallation, ModelSettings, WorkerEndedError, model_installation

MEGABYTE = 1_000_000


def alter(identity: str, *replicas: int, cluster: str = "local") -> Alter:
    target = PartitionTarget(topic="orders", partition=0, replicas=replicas)
    return Alter(id=identity, cluster=cluster, by="me", reason="test", partitions=(target,))


def freeze(identity: str, cluster: str = "local") -> Freeze:
    return Freeze(id=identity, cluster=cluster, by="me", reason="test")


async def verdict(client: Client, command: Alter | Cancel | Freeze) -> str:
    """What an application gets from the client; it does not know which installation it talks to."""
    async with client:
        sent = await client.submit(command)
        (answer,) = await client.outcomes([sent], timeout_s=30)
        return answer.outcome.verdict


async def test_a_move_is_asked_for_made_and_seen() -> None:
    async with model_installation() as drover:
        drover.cluster.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=200 * MEGABYTE)
        assert await verdict(drover.client, alter("a1", 4, 2, 3)) == "accepted"
        assert drover.replicas("orders", 0) == (4, 2, 3, 1) or drover.replicas("orders", 0) == (1, 2, 3)
        took_s = await drover.until(lambda: drover.replicas("orders", 0) == (4, 2, 3))
        assert took_s > 3, "200 MB take 4 s at 50 MB/s"
        await drover.settle()
        assert [event.key for event in drover.events() if isinstance(event, ReassignmentCompleted)] == [("orders", 0)]


async def test_a_rollback_brings_the_list_back_in_its_order() -> None:
    async with model_installation() as drover:
        drover.cluster.create_topic("orders", {0: [3, 1, 2]}, partition_bytes=500 * MEGABYTE)
        await verdict(drover.client, alter("a1", 4, 1, 2))
        await drover.until(drover.cluster.moves)
        cancel = Cancel(id="c1", cluster="local", by="me", reason="test", mode="rollback", all=True)
        assert await verdict(drover.client, cancel) == "accepted"
        await drover.settle()
        assert drover.replicas("orders", 0) == (3, 1, 2)
        assert any(isinstance(event, ReassignmentRolledBack) for event in drover.events())


async def play() -> tuple[bytes, ...]:
    """The log after some moves and a killed worker."""
    async with model_installation(ModelSettings(workers=2)) as drover:
        drover.cluster.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=100 * MEGABYTE)
        await verdict(drover.client, alter("a1", 4, 2, 3))
        await drover.worker.kill()
        await drover.advance(60)
        await verdict(drover.client, alter("a2", 1, 2, 3))
        await drover.settle()
        topic = drover.group.broker.topics.events
        return tuple(value for shard in drover.owners() for value in drover.group.broker.values(topic, shard))


async def test_every_run_with_the_same_calls_makes_the_same_log() -> None:
    assert await play() == await play()


async def test_another_worker_takes_the_shards_of_a_killed_one_after_its_session() -> None:
    async with model_installation(ModelSettings(workers=2, worker=WorkerSettings(session_timeout_ms=6000))) as drover:
        assert set(drover.owners().values()) == {"worker-1", "worker-2"}
        began_ms = drover.now_ms
        await drover.worker.kill()
        await drover.wait_until_owned("worker-2")
        assert drover.now_ms - began_ms >= 6000
        await drover.worker.restart()
        await drover.wait_until_owned()
        assert set(drover.owners().values()) == {"worker-1", "worker-2"}


async def test_a_worker_that_stops_leaves_its_shards_at_once() -> None:
    async with model_installation() as drover:
        second = await drover.add_worker()
        await drover.wait_until_owned()
        began_ms = drover.now_ms
        await second.stop()
        await drover.wait_until_owned("worker-1")
        assert drover.now_ms - began_ms < 1000
        assert not second.is_running


async def test_a_command_waits_while_no_worker_runs_and_is_decided_when_there_is_one() -> None:
    async with model_installation(ModelSettings(workers=0)) as drover:
        sent = await drover.client.submit(freeze("f1"))
        with pytest.raises(OutcomeMissingError) as missing:
            await drover.client.outcomes([sent], timeout_s=60)
        assert missing.value.sent == (sent,)
        assert drover.now_ms >= 60_000
        await drover.add_worker()
        (answer,) = await drover.client.outcomes([sent])
        assert answer.outcome.verdict == "accepted"
        assert drover.state().freezes


async def test_the_same_id_gets_the_first_outcome_again() -> None:
    async with model_installation() as drover:
        first, second = await drover.client.submit_all([freeze("f1"), freeze("f1")])
        before, after = await drover.client.outcomes([first, second])
        assert (before.repeated, after.repeated) == (False, True)
        assert before.outcome == after.outcome
        assert [outcome.verdict for outcome in drover.outcomes()] == ["accepted", "duplicate"]


async def test_a_command_that_no_worker_would_read_is_not_sent() -> None:
    async with model_installation() as drover:
        with pytest.raises(ConfigurationError):
            await drover.client.submit(Freeze(id="f1", cluster="local", by="me", reason="r" * 2_000_000))
        await drover.advance(1)
        assert drover.outcomes() == ()


async def test_outcomes_of_clusters_in_several_shards_are_awaited_one_by_one() -> None:
    clusters = {name: ClusterSettings("model:9092") for name in ("a", "b", "c")}
    async with model_installation(ModelSettings(clusters=clusters)) as drover:
        assert len({drover.shard_of(name) for name in clusters}) > 1
        sent = await drover.client.submit_all([freeze(f"f-{name}", name) for name in clusters])
        with pytest.raises(ValueError, match="several clusters"):
            await drover.client.outcomes(sent)
        for item in sent:
            await drover.client.outcomes([item])
            assert drover.state(item.command.cluster).freezes
        with pytest.raises(AssertionError, match="name one of a, b, c"):
            drover.state()


async def test_a_worker_that_ends_by_itself_fails_the_test_that_waits() -> None:
    async with model_installation() as drover:
        drover.group.broker.lost_acknowledgements = 1
        sent = await drover.client.submit(freeze("f1"))
        with pytest.raises(WorkerEndedError, match="acknowledgement was lost"):
            await drover.client.outcomes([sent])
        assert not drover.worker.is_running
        await drover.worker.restart()
        (answer,) = await drover.client.outcomes([sent])
        assert answer.outcome.verdict == "accepted"


async def test_a_condition_that_never_holds_ends_at_its_time_limit() -> None:
    async with model_installation() as drover:
        with pytest.raises(TimeoutError, match="within 90 s"):
            await drover.until(lambda: False, timeout_s=90)


async def test_a_fault_in_a_condition_is_the_test_s() -> None:
    def fails() -> bool:
        raise KeyError("orders")

    async with model_installation() as drover:
        with pytest.raises(KeyError):
            await drover.until(fails)
        await drover.advance(1)


async def test_a_target_on_a_dead_broker_is_refused_until_it_is_back() -> None:
    async with model_installation() as drover:
        drover.cluster.create_topic("orders", {0: [1, 2, 3]})
        drover.cluster.stop_broker(4)
        assert await verdict(drover.client, alter("a1", 4, 2, 3)) == "refused"
        drover.cluster.start_broker(4)
        await drover.advance(1)
        assert await verdict(drover.client, alter("a2", 4, 2, 3)) == "accepted"
        await drover.until(lambda: drover.replicas("orders", 0) == (4, 2, 3))


async def test_a_throttle_slows_copies_and_is_taken_off_again() -> None:
    async with model_installation() as drover:
        drover.cluster.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=100 * MEGABYTE)
        command = msgspec.structs.replace(alter("a1", 4, 2, 3), throttle_bytes_per_second=5 * MEGABYTE)
        await drover.client.submit(command)
        took_s = await drover.until(lambda: drover.replicas("orders", 0) == (4, 2, 3))
        assert took_s > 19, "100 MB take 20 s at 5 MB/s"
        await drover.settle()
        assert not any("throttled" in key for broker in drover.cluster.brokers.values() for key in broker.configs)


async def test_time_passes_only_where_it_is_awaited() -> None:
    async with model_installation() as drover:
        before_ms = drover.now_ms
        await drover.client.submit(freeze("f1"))
        assert drover.now_ms == before_ms
        await drover.advance(600)
        assert drover.now_ms - before_ms == 600_000


def test_an_installation_is_closed_after_a_test_that_was_cancelled() -> None:
    """Whatever a cancelled test had asked for ends before the installation does."""

    async def main() -> ModelInstallation:
        async with model_installation() as drover:
            waiting = asyncio.create_task(drover.until(lambda: False, timeout_s=600))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return drover

    drover = asyncio.run(main())
    assert not drover.worker.is_running
