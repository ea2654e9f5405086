"""Real brokers: one that lacks the listener of Drover's bootstrap is named and left alone, and healed once it dies."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from drover.cli.exits import ExitCode
from drover.cluster.kafka import KafkaDriver
from drover.events.healing import BrokerOutageAlarmed, BrokerOutageNoted, HealPlanned
from drover.facts import Survey
from drover.local import LocalCluster, local_cluster
from drover.local.layout import HOST, BrokerSpec
from drover.local.ports import HIGHEST_PORT, is_free
from drover.testing.model import ClusterModel
from drover.testing.shared_process import SharedProcess
from drover.testing.simulated import SimulatedDriver
from tests.healing.live import batches, holders, is_whole
from tests.integration.support import LOOK_S, Installation, installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.timeout(900)]

HIDDEN = 3
INTERVAL_MS, ALARM_MS = 12_000, 5000
PATIENCE_S = 360
TOPIC = "watched"
LISTS = {number: [(number + place) % 5 + 1 for place in range(3)] for number in range(10)}
REMEDY = "add that listener, or give Drover a bootstrap that all brokers offer"


def external_ports() -> Mapping[int, int]:
    """Choose a port for a second listener of each broker, where no local cluster and no connection has one."""
    free = (port for port in range(HIGHEST_PORT, HIGHEST_PORT + 700) if is_free(port))
    return {broker: next(free) for broker in (1, 2, 3, 4, 5)}


EXTERNAL = external_ports()


def second_listener(broker: BrokerSpec) -> str:
    """Let every broker but one offer a listener of its own to clients from outside."""
    names = {"PLAINTEXT": broker.port, "EXT": EXTERNAL[broker.id]}
    if broker.id == HIDDEN:
        del names["EXT"]
    listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in names.items())
    return (
        f"listeners={listeners}\nadvertised.listeners={listeners}\ninter.broker.listener.name=PLAINTEXT\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,EXT:PLAINTEXT\n"
    )


BOOTSTRAP = ",".join(f"{HOST}:{port}" for broker, port in EXTERNAL.items() if broker != HIDDEN)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def five(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    place = tmp_path_factory.mktemp("hidden")
    async with local_cluster(place, 5, start_nodes=SharedProcess((HIDDEN,)), more_settings=second_listener) as cluster:
        yield cluster


async def test_a_broker_without_the_listener_is_left_alone_while_it_lives_and_healed_once_it_is_dead(
    five: LocalCluster, tmp_path: Path
) -> None:
    healing = {"failure_interval_ms": INTERVAL_MS, "alarm_ms": ALARM_MS, "chunk_partitions": 200}
    async with installation(five, tmp_path, "hidden", healing=healing, bootstrap=BOOTSTRAP) as drover:
        await drover.create_topic(TOPIC, LISTS, kilobytes=64)
        await the_model_agrees()
        await drover.start_worker("only")
        await drover.wait_until_owned("only")
        before = await holders(drover, HIDDEN)
        await is_named(drover)
        await is_refused(drover)
        await nothing_happens(drover)
        assert await holders(drover, HIDDEN) == before
        died_ms = round(time.time() * 1000)
        await five.kill(HIDDEN)

        async def is_healed() -> bool:
            return not await holders(drover, HIDDEN) and await is_whole(drover, TOPIC, without=(HIDDEN,))

        await wait_for(is_healed, "every replica of the dead broker to be replaced", PATIENCE_S, LOOK_S)
        found = [(batch.at_ms, event) for batch in await batches(drover) for event in batch.events]
        planned_ms = [at_ms for at_ms, event in found if isinstance(event, HealPlanned)]
        noted = [event.broker for _, event in found if isinstance(event, BrokerOutageNoted)]
        alarmed = [event.broker for _, event in found if isinstance(event, BrokerOutageAlarmed)]
        assert (noted, alarmed) == ([HIDDEN], [HIDDEN])
        assert planned_ms[0] - died_ms >= INTERVAL_MS
        assert (await drover.state()).unreachable_brokers == {}


async def the_model_agrees() -> None:
    """What Kafka shows of a hidden broker is what the model cluster shows of one."""
    model = ClusterModel(dict.fromkeys((1, 2, 3, 4, 5)))
    model.create_topic(TOPIC, LISTS)
    model.hide_listener(HIDDEN)
    twin = SimulatedDriver(model)
    driver = KafkaDriver("hidden", BOOTSTRAP, call_timeout_ms=20_000)
    try:
        real = await driver.survey()
        inventory = await driver.inventory()
    finally:
        await driver.close()
    simulated = await twin.survey()
    assert shown(real) == shown(simulated)
    assert (real.live_brokers, real.registered_brokers) == (simulated.live_brokers, simulated.registered_brokers)
    assert inventory.standings == (await twin.inventory()).standings


def shown(survey: Survey) -> dict[int, tuple[int | None, bool, frozenset[int]]]:
    """Return what a survey shows of the topic: the leader, whether that is hidden, and the ISR."""
    return {
        key.partition: (facts.leader, facts.leader_lacks_listener, frozenset(facts.isr))
        for key, facts in survey.partitions.items()
        if key.topic == TOPIC
    }


async def is_named(drover: Installation) -> None:
    async def is_noted() -> bool:
        return HIDDEN in (await drover.state()).unreachable_brokers

    await wait_for(is_noted, "the unreachable broker to be named", PATIENCE_S, LOOK_S)
    for command in (("describe",), ("status",), ("heal", "status"), ("heal", "plan")):
        said = " ".join((await drover.drover(*command)).output.split())
        assert f"roker {HIDDEN} is unreachable" in said, command
        assert REMEDY in said, command
    described = (await drover.drover("describe", "-o", "yaml")).output
    assert "unreachable" in described
    assert " ".join((await drover.drover("describe")).output.split()).count("without a leader") == 0


async def is_refused(drover: Installation) -> None:
    """Nothing is planned from it, and no alter may name it as a new replica."""
    drained = await drover.drover("plan", "drain", str(HIDDEN))
    said = " ".join((drained.output + drained.errors).split())
    assert (drained.code, REMEDY in said) == (ExitCode.USAGE, True), said
    number, present = next((number, list_) for number, list_ in LISTS.items() if HIDDEN not in list_)
    asked = [{"topic": TOPIC, "partition": number, "replicas": [*present[:2], HIDDEN]}]
    plan = json.dumps({"version": 1, "partitions": asked})
    added = await drover.drover("alter", "-", "--reason", "test", stdin=plan)
    assert added.code != ExitCode.DONE
    assert REMEDY in " ".join((added.output + added.errors).split())


async def nothing_happens(drover: Installation) -> None:
    """Three times the interval passes in the log's time, and nothing is missed, alarmed about or planned."""
    noted_ms = (await drover.state()).unreachable_brokers[HIDDEN]

    async def has_passed() -> bool:
        return time.time() * 1000 - noted_ms >= 3 * INTERVAL_MS

    await wait_for(has_passed, "the timer of healing to pass", PATIENCE_S, LOOK_S)
    happened = [event for batch in await batches(drover) for event in batch.events]
    assert not [event for event in happened if isinstance(event, BrokerOutageNoted | BrokerOutageAlarmed | HealPlanned)]
