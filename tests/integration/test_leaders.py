"""Leaders on a real Kafka: both modes beside Kafka's own rebalance, deaths of workers and brokers, ends of listings."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

from drover.cli.exits import ExitCode
from drover.events.partitions import TopicPartition
from drover.local import LocalCluster
from drover.local.layout import CONTROLLER, CONTROLLER_ID, Layout
from tests.integration.story import read_story
from tests.integration.support import MANAGED, Installation, installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.kills(3, CONTROLLER_ID)]

LAYOUT = {number: ([3, 1, 2], [1, 3, 2], [2, 1, 4], [3, 4, 1])[number % 4] for number in range(40)}
# The same for the story in which broker 3 dies while broker 1 is the one that is to lead nothing.
MIRRORED = {number: [{1: 3, 3: 1}.get(broker, broker) for broker in replicas] for number, replicas in LAYOUT.items()}
ELECTOR = ("-m", "tests.integration.dying_elector")
BALANCES_EVERY_S = 5
# To each partition: without a pause the brokers would do nothing else.
WRITES_EVERY_S = 0.25


def keys(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in LAYOUT]


async def seen(made: Installation, topic: str) -> Mapping[TopicPartition, tuple[int | None, tuple[int, ...]]]:
    """Who leads each partition, and its list."""
    observation = await made.driver.observe(keys(topic))
    return {key: (facts.leader, facts.replicas) for key, facts in observation.partitions.items() if facts is not None}


async def leads_nothing(made: Installation, topic: str, broker: int) -> None:
    async def nothing() -> bool:
        found = await seen(made, topic)
        return len(found) == len(LAYOUT) and all(leader not in {broker, None} for leader, _ in found.values())

    await wait_for(nothing, f"broker {broker} to lead nothing of {topic}")


async def is_restored(made: Installation, topic: str, layout: Mapping[int, list[int]] = LAYOUT) -> None:
    async def restored() -> bool:
        found = await seen(made, topic)
        return {key: list(replicas) for key, (_, replicas) in found.items()} == {
            TopicPartition(topic, number): replicas for number, replicas in layout.items()
        } and not (await made.state()).orders

    await wait_for(restored, f"every canonical order of {topic} to be back")


async def nobody_knows(made: Installation) -> bool:
    """Whether the log says of an election that nobody knows what became of it, and none is open."""
    story = await read_story(made.connection)
    told = [event for events in story.events.values() for event in events]
    outcomes = [event["outcome"] for event in told if event["type"] == "leader-election-ended"]
    return "unknown" in outcomes and not (await made.state()).elections


async def leaders_stay(made: Installation, topic: str) -> bool:
    """Whether Kafka's own rebalance takes nothing back, and nothing flaps; a broker that stands still is excused."""
    before = await seen(made, topic)
    await asyncio.sleep(2 * BALANCES_EVERY_S + 1)
    return await seen(made, topic) == before and 3 not in {leader for leader, _ in before.values()}


async def leaders_command(made: Installation, *arguments: str) -> None:
    done = await made.drover("leaders", *arguments, "--reason", "a slow disk")
    assert done.code == 0, done.errors


@asynccontextmanager
async def traffic(made: Installation, topic: str) -> AsyncIterator[list[int]]:
    """Write to every partition at acks=all again and again; the list holds how many were written."""
    producer = AIOKafkaProducer(bootstrap_servers=made.cluster.bootstrap, acks="all", request_timeout_ms=20_000)
    await producer.start()
    written = [0]

    async def write() -> None:
        while True:
            await asyncio.gather(*(producer.send_and_wait(topic, b"x" * 100, partition=number) for number in LAYOUT))
            written[0] += len(LAYOUT)
            await asyncio.sleep(WRITES_EVERY_S)

    task = asyncio.create_task(write())
    try:
        yield written
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await producer.stop()


class OwnRebalance:
    """Kafka's own elections of preferred leaders; another mode is a restart of the controller."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._file = Layout(cluster.directory).settings_file(CONTROLLER)
        self._before = self._text = self._file.read_text(encoding="utf-8")

    async def every_few_seconds(self) -> None:
        """Let Kafka elect every 5 s, as it does every 300 by default."""
        every = f"leader.imbalance.check.interval.seconds={BALANCES_EVERY_S}\n"
        await self._restart(f"{self._before}auto.leader.rebalance.enable=true\n{every}")

    async def never(self) -> None:
        await self._restart(f"{self._before}auto.leader.rebalance.enable=false\n")

    async def as_before(self) -> None:
        await self._restart(self._before)

    async def _restart(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self._file.write_text(text, encoding="utf-8")
            await self._cluster.kill(CONTROLLER_ID)
            await self._cluster.start(CONTROLLER_ID)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_rebalance(local_cluster: LocalCluster) -> AsyncIterator[OwnRebalance]:
    made = OwnRebalance(local_cluster)
    yield made
    await made.as_before()


async def leads_again(made: Installation, topic: str) -> None:
    async def again() -> bool:
        found = await seen(made, topic)
        return all(leader == replicas[0] for leader, replicas in found.values())

    await wait_for(again, "the preferred leaders to lead again")


async def _all_listed(made: Installation, topic: str) -> None:
    """With all listed the original order counts."""
    for broker in ("1", "2", "4"):
        await leaders_command(made, "demote", broker, "--topic", topic)
    await is_restored(made, topic)
    for broker in ("1", "2", "4"):
        await leaders_command(made, "restore", broker)
    await leads_nothing(made, topic, 3)


async def test_a_listed_broker_gives_up_leadership_and_gets_it_back_whoever_dies(
    local_cluster: LocalCluster, own_rebalance: OwnRebalance, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = "eager"
    async with installation(local_cluster, tmp_path_factory.mktemp("eager"), "eager") as made:
        await made.create_topic(topic, LAYOUT)
        await own_rebalance.every_few_seconds()
        async with traffic(made, topic) as written:
            # Killed with -9 between the reorder and the election; its successor goes on.
            await made.start_worker("first", program=ELECTOR)
            await made.wait_until_owned("first")
            await leaders_command(made, "demote", "3", "--topic", topic)
            assert await made.processes["first"].wait() == -signal.SIGKILL
            await made.start_worker("second")
            await leads_nothing(made, topic, 3)
            await wait_for(lambda: nobody_knows(made), "the dead worker's elections to be recorded as unknown", 90)

            await wait_for(lambda: leaders_stay(made, topic), "leaders to stay through two of Kafka's rebalances")

            # The listed broker dies and returns: still nothing.
            await local_cluster.kill(3)
            await local_cluster.start(3)
            await asyncio.sleep(BALANCES_EVERY_S + 1)
            await leads_nothing(made, topic, 3)

            await _all_listed(made, topic)

            # The time of a listing is over while no worker is alive.
            await leaders_command(made, "demote", "3", "--topic", topic, "--for", "3s")
            await made.processes["second"].kill()
            await asyncio.sleep(4)
            await made.start_worker("third")
            await is_restored(made, topic)

            await leads_again(made, topic)
            assert written[0]
        shown = (await made.drover("leaders", "show", "-o", "json")).document
        assert shown["reordered"] == shown["waiting_count"] == 0
        replayed = await made.drover("replay", "--verify")
        assert replayed.code == 0, replayed.errors


async def test_a_broker_that_returns_leads_nothing_until_all_its_replicas_are_in_sync(
    local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = "stale"
    async with installation(local_cluster, tmp_path_factory.mktemp("stale"), "stale") as made:
        await made.create_topic(topic, LAYOUT)
        await made.start_worker("solo")
        await made.wait_until_owned("solo")
        async with traffic(made, topic) as written:
            async with _dead(local_cluster, 3):
                await leads_nothing(made, topic, 3)
                await leaders_command(made, "demote", "3", "--topic", topic, "--until-in-sync")
                at_death = written[0]

                async def is_behind() -> bool:
                    return written[0] >= at_death + 20 * len(LAYOUT)

                await wait_for(is_behind, "writes that the dead broker misses")
                shown = (await made.drover("leaders", "show", "-o", "json")).document
                (row,) = (row for row in shown["brokers"] if row["broker"] == 3)
                assert (row["listed"], row["until_in_sync"]) == (True, True)

            async def has_left_the_list() -> bool:
                leaders = {leader for leader, _ in (await seen(made, topic)).values()}
                is_listed = 3 in (await made.state()).blacklist
                assert not (is_listed and 3 in leaders), "it leads although it is listed"
                return not is_listed

            await wait_for(has_left_the_list, "broker 3 to leave the list by itself", 300)
            observation = await made.driver.observe(keys(topic))
            assert all(
                facts is not None and 3 in facts.isr
                for key, facts in observation.partitions.items()
                if 3 in LAYOUT[key.partition]
            )
            await is_restored(made, topic)
            await leads_again(made, topic)
        told = await made.drover("history", "--by", "drover", "-o", "json")
        assert "the replicas of broker 3 are in sync" in {row["reason"] for row in told.document["history"]}


async def test_lazily_no_leader_moves_before_an_election_is_asked_for(
    local_cluster: LocalCluster, own_rebalance: OwnRebalance, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = "lazy"
    async with installation(local_cluster, tmp_path_factory.mktemp("lazy"), "lazy", lazy_leadership=True) as made:
        await made.create_topic(topic, LAYOUT)
        await made.start_worker("solo")
        await made.wait_until_owned("solo")
        await own_rebalance.every_few_seconds()
        led = {key: leader for key, (leader, _) in (await seen(made, topic)).items()}
        await leaders_command(made, "demote", "3", "--topic", topic)

        async def reordered() -> bool:
            return (await made.replicas(TopicPartition(topic, 1))) == (1, 2, 3)

        await wait_for(reordered, "the lists under which no leader moves to be in order")
        await asyncio.sleep(2 * BALANCES_EVERY_S + 1)
        assert {key: leader for key, (leader, _) in (await seen(made, topic)).items()} == led
        await leaders_command(made, "balance", "--topic", topic)
        await leads_nothing(made, topic, 3)
        drained = await made.drover("broker", "drain-leaders", "3", "--undo", "--reason", "done")
        assert drained.code == 0, drained.errors
        assert f"of {MANAGED} is back" in drained.output
        await is_restored(made, topic)


async def set_limit(made: Installation, assignment: str) -> None:
    done = await made.drover("limits", "set", assignment, "--reason", "another mode")
    assert done.code == 0, done.errors


@asynccontextmanager
async def _dead(cluster: LocalCluster, broker: int) -> AsyncIterator[None]:
    """Kill a broker, and start it again at the end of the block, however it ends: other tests need it."""
    await cluster.kill(broker)
    try:
        yield
    finally:
        await cluster.start(broker)


async def _of_broker_3(made: Installation, topic: str) -> set[tuple[int | None, tuple[int, ...]]]:
    """Which leaders and lists those partitions have in which broker 3 is to be first."""
    return {found for key, found in (await seen(made, topic)).items() if MIRRORED[key.partition][0] == 3}


async def _drained_and_undone(made: Installation, topic: str) -> None:
    """Let broker 1 give up what it leads, and get it back."""
    drained = await made.drover("broker", "drain-leaders", "1", "--reason", "upgrade", "--timeout", "90s")
    assert drained.code == 0, drained.errors
    await leads_nothing(made, topic, 1)
    before = await seen(made, topic)
    undone = await made.drover("broker", "drain-leaders", "1", "--undo", "--reason", "done", "--timeout", "90s")
    assert undone.code == 0, undone.errors
    await is_restored(made, topic, MIRRORED)
    await leads_again(made, topic)
    assert {key: leader for key, (leader, _) in before.items()} != {
        key: leader for key, (leader, _) in (await seen(made, topic)).items()
    }


async def test_without_kafkas_rebalance_both_modes_do_what_they_say(
    local_cluster: LocalCluster, own_rebalance: OwnRebalance, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Eager first, then lazy: a broker fails, returns and is balanced by itself; a drain of a lazy cluster says so."""
    topic = "modes"
    async with installation(local_cluster, tmp_path_factory.mktemp("modes"), "modes") as made:
        await made.create_topic(topic, MIRRORED)
        await made.start_worker("solo")
        await made.wait_until_owned("solo")
        await own_rebalance.never()
        async with traffic(made, topic) as written:
            await _drained_and_undone(made, topic)
            await set_limit(made, "lazy_leadership=true")
            await set_limit(made, "balances_after_return=true")
            lazily = await made.drover("broker", "drain-leaders", "1", "--reason", "lazy", "--timeout", "90s")
            assert lazily.code == ExitCode.UNFINISHED
            assert "leaders move only when" in lazily.errors
            assert all(leader == MIRRORED[key.partition][0] for key, (leader, _) in (await seen(made, topic)).items())

            # The list counts when a broker fails: what broker 3 led goes to broker 2. For that, (3, 1, 2) becomes
            # (3, 2, 1) while broker 3 still leads, some moments after the command has said that nothing moves.
            async def are_reordered() -> bool:
                return {replicas for _, replicas in await _of_broker_3(made, topic)} == {(3, 2, 1)}

            await wait_for(are_reordered, "the lists that broker 3 leads to have broker 1 last")
            async with _dead(local_cluster, 3):

                async def is_gone() -> bool:
                    counted = (await made.state()).leader_counts
                    return 3 in counted and not counted[3].leaders

                await wait_for(is_gone, "the log to say that broker 3 leads nothing")
                assert {leader for leader, _ in await _of_broker_3(made, topic)} == {2}

            # Its return begins a balance, in which the list counts as well.
            await leads_nothing(made, topic, 1)

            async def leads_where_it_is_first() -> bool:
                return {leader for leader, _ in await _of_broker_3(made, topic)} == {3}

            await wait_for(leads_where_it_is_first, "broker 3 to lead where it is first")
            assert written[0]
        told = await made.drover("history", "--by", "drover", "-o", "json")
        begun = [row["reason"] for row in told.document["history"] if row["what"] == "leader-balance-begun"]
        assert "broker 3 is back" in begun
        ends = {"leader-election-ended", "leader-elections-ended"}
        causes = {row["reason"] for row in told.document["history"] if row["what"] in ends}
        assert causes == {"broker 3 is back"}, "what the list caused is told under who changed it"
