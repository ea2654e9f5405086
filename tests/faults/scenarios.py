"""What is played: a storm of random faults, and Kafka's own test of reassignments with Drover in its place."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tests.faults.injuries import LANES, Scene

TOPIC_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class Length:
    """How long it goes on: `rounds` of every fault, `quorum_gone_s` for the log without quorum."""

    rounds: int
    quorum_gone_s: float


SHORT = Length(rounds=1, quorum_gone_s=8.0)
LONG = Length(rounds=4, quorum_gone_s=60.0)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The topic that is moved, the traffic on it, and what happens meanwhile."""

    name: str
    partitions: int
    min_isr: int
    records_per_second: float
    filling_kilobytes: int
    act: Callable[[Scene, Random, Length], Awaitable[None]]


async def _storm(scene: Scene, random: Random, length: Length) -> None:
    """Every fault of every lane in random order, again in each round, while plans come and go."""
    seed = random.randrange(2**32)
    async with scene.planning.at_random(pause_s=1.2):
        async with asyncio.TaskGroup() as group:
            for lane in LANES:
                group.create_task(_lane(scene, lane, Random(f"{seed} {lane}"), length.rounds))
        await scene.mend()


async def _lane(scene: Scene, lane: str, random: Random, rounds: int) -> None:
    for _ in range(rounds):
        for injury in random.sample(LANES[lane], len(LANES[lane])):
            await asyncio.sleep(random.uniform(0, 2))
            await injury(scene, random)


async def _matrix(scene: Scene, random: Random, length: Length) -> None:
    """Kafka's reassign_partitions_test: a plan for every partition, brokers bounced while it runs; again each round."""
    for _ in range(length.rounds):
        for broker in random.sample(scene.brokers, 2):
            scene.planning.send(scene.planning.alter(len(scene.planning.keys)))
            scene.say(f"a plan for every partition is sent; broker {broker} is bounced")
            await asyncio.sleep(random.uniform(0.5, 2))
            await scene.cluster.stop(broker)
            await scene.serve_again(broker)
    await scene.planning.finish()


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("storm", 12, 2, 200.0, 1536, _storm),
        Scenario("matrix", 20, 3, 1000.0, 512, _matrix),
    )
}
