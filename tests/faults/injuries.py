"""The faults, one function each: it breaks something, waits a while, and mends it before it returns.

All choices come from the random numbers it is given. The three lanes go on side by side, the faults of one lane one
after the other, so that at any moment at most one worker, one or two brokers and the controller are in trouble.
"""

import asyncio
import contextlib
import itertools
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from drover.errors import ClusterError, ClusterUnavailableError
from drover.events.commands import Alter, PartitionTarget
from drover.local import LocalCluster
from drover.local.deadline import wait_until
from drover.local.layout import CONTROLLER
from drover.local.processes import ProcessState
from tests.faults.crew import NAMES, Crew
from tests.faults.disks import Disk
from tests.faults.planning import Planning
from tests.integration.support import MANAGED, Installation
from tests.kill.hostile import steal

SESSION_TIMEOUT_S = 3.0
SERVE_ATTEMPTS = 3
RIVAL = "rival"
FIGHT_BEGINS_WITHIN_S = 20.0
DISK_FAILS_WITHIN_S = 12.0


@dataclass
class Scene:
    """What can be broken, and the words said about it; `log_replicas` hold the shard of the managed cluster."""

    cluster: LocalCluster
    installation: Installation
    crew: Crew
    planning: Planning
    disk: Disk
    log_replicas: tuple[int, ...]
    quorum_gone_s: float
    began_s: float = field(default_factory=time.monotonic)
    story: list[str] = field(default_factory=list)
    # A fight over a log that takes nothing would be none.
    log_in_use: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(broker.id for broker in self.cluster.spec.brokers)

    def say(self, words: str) -> None:
        """Note what happens, with the second in which it does."""
        self.story.append(f"{time.monotonic() - self.began_s:7.1f} s  {words}")
        print(self.story[-1], flush=True)

    async def serve_again(self, node: int | str) -> None:
        """Bring a node back, whatever was done to it."""
        for attempt in range(SERVE_ATTEMPTS):
            try:
                if self.cluster.process_state(node) is ProcessState.PAUSED:
                    await self.cluster.resume(node)
                await self.cluster.start(node)
            except ClusterUnavailableError:
                # A broker that lost its controller while it started gives up: it is started again, as by systemd.
                if attempt == SERVE_ATTEMPTS - 1:
                    raise
            else:
                return

    async def mend(self) -> None:
        """Bring everything back."""
        self.disk.empty()
        await self.serve_again(CONTROLLER)
        await asyncio.gather(*(self.serve_again(broker) for broker in self.brokers))


Injury = Callable[[Scene, Random], Awaitable[None]]


# -- workers


async def kill_worker(scene: Scene, random: Random) -> None:
    await _end_worker(scene, random, signal.SIGKILL)


async def stop_worker(scene: Scene, random: Random) -> None:
    await _end_worker(scene, random, signal.SIGTERM)


async def _end_worker(scene: Scene, random: Random, number: signal.Signals) -> None:
    name = random.choice(NAMES)
    scene.say(f"{number.name} to worker {name}")
    await scene.crew.end(name, number)
    await asyncio.sleep(random.uniform(2, 4))


async def pause_worker(scene: Scene, random: Random) -> None:
    name, seconds = random.choice(NAMES), SESSION_TIMEOUT_S + random.uniform(1, 3)
    scene.say(f"worker {name} is paused for {seconds:.1f} s, its session is over after {SESSION_TIMEOUT_S:.0f}")
    scene.crew.send(name, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        scene.crew.send(name, signal.SIGCONT)


async def fight(scene: Scene, random: Random) -> None:
    """A worker of another group owns every shard as well, and a writer without manners takes and forges at will."""
    async with scene.log_in_use:
        await _fight(scene, random)


async def _fight(scene: Scene, random: Random) -> None:
    seconds = random.uniform(3, 6)
    scene.say("a worker of another group and a forger come to fight for every shard")
    owned, regained = scene.crew.owned(RIVAL), scene.crew.regained()
    await scene.crew.start(RIVAL, "--group", f"{scene.installation.names.prefix}-{RIVAL}")
    over = asyncio.Event()
    forging = asyncio.create_task(_forge(scene, Random(random.random()), over))
    try:
        with contextlib.suppress(ClusterUnavailableError):  # the group's coordinator may be away for a while
            await wait_until(
                lambda: scene.crew.owned(RIVAL) > owned and scene.crew.regained() > regained,
                what="shards change hands",
                timeout_s=FIGHT_BEGINS_WITHIN_S,
            )
        await asyncio.sleep(seconds)
    finally:
        over.set()
        await forging
        await scene.crew.end(RIVAL, signal.SIGKILL)
        scene.installation.processes.pop(RIVAL)
        scene.say(f"the fight is over, shards were taken back {scene.crew.regained() - regained} times")


async def _forge(scene: Scene, random: Random, over: asyncio.Event) -> None:
    """Steal and forge until it is over; never cancelled in the middle, which the client does not survive in order."""
    connection = scene.installation.connection
    for number in itertools.count(1):
        producer = AIOKafkaProducer(**connection.client_options, enable_idempotence=True)
        try:
            await producer.start()
            await steal(connection, producer, (MANAGED,), random, number)
        except KafkaError:
            await asyncio.sleep(0.5)
        finally:
            await producer.stop()
        if over.is_set():
            return


# -- brokers


async def kill_broker(scene: Scene, random: Random) -> None:
    broker, seconds = random.choice(scene.brokers), random.uniform(1, 5)
    scene.say(f"SIGKILL to broker {broker}, started again after {seconds:.1f} s")
    await scene.cluster.kill(broker)
    await asyncio.sleep(seconds)
    await scene.serve_again(broker)


async def stop_broker(scene: Scene, random: Random) -> None:
    broker = random.choice(scene.brokers)
    scene.say(f"SIGTERM to broker {broker}, started again")
    await scene.cluster.stop(broker)
    await scene.serve_again(broker)


async def pause_broker(scene: Scene, random: Random) -> None:
    await _pause(scene, random.choice(scene.brokers), random.uniform(4, 7))


async def hang_coordinator(scene: Scene, random: Random) -> None:
    """Pause the broker that coordinates the workers' group, for longer than their sessions."""
    admin = AIOKafkaAdminClient(bootstrap_servers=scene.cluster.bootstrap)
    try:
        await admin.start()
        broker = await admin.find_coordinator(f"{scene.installation.names.prefix}-worker")
    except KafkaError as error:
        scene.say(f"the group has no coordinator just now: {error!r}")
        return
    finally:
        await admin.close()
    scene.say("the next one coordinates the workers' group:")
    await _pause(scene, broker, SESSION_TIMEOUT_S + random.uniform(1, 3))


async def _pause(scene: Scene, node: int | str, seconds: float) -> None:
    scene.say(f"node {node} is paused for {seconds:.1f} s")
    await scene.cluster.pause(node)
    try:
        await asyncio.sleep(seconds)
    finally:
        await scene.serve_again(node)


async def lose_quorum(scene: Scene, random: Random) -> None:
    """Of the event log's three replicas one is killed and one hangs: nothing can be appended (min ISR 2)."""
    dead, hung = random.sample(scene.log_replicas, 2)
    async with scene.log_in_use:
        await _lose_quorum(scene, dead, hung)


async def _lose_quorum(scene: Scene, dead: int, hung: int) -> None:
    scene.say(f"the log has no quorum for {scene.quorum_gone_s:.0f} s: broker {dead} is killed, broker {hung} hangs")
    await asyncio.gather(scene.cluster.kill(dead), scene.cluster.pause(hung))
    try:
        await asyncio.sleep(scene.quorum_gone_s)
    finally:
        await asyncio.gather(scene.serve_again(dead), scene.serve_again(hung))


async def fill_disk(scene: Scene, random: Random) -> None:
    """The disk of a broker is full while replicas are moved there."""
    broker = scene.disk.broker
    scene.say(f"the disk of broker {broker} is full ({scene.disk.kind}), and a plan wants to go there")
    scene.disk.fill()
    try:
        scene.planning.send(await _plan_to(scene, broker))
        with contextlib.suppress(ClusterUnavailableError):
            await wait_until(
                lambda: scene.cluster.process_state(broker) is ProcessState.DEAD,
                what="the broker to fail",
                timeout_s=DISK_FAILS_WITHIN_S,
            )
        scene.say(f"broker {broker} is {scene.cluster.process_state(broker)} with its full disk")
        await asyncio.sleep(random.uniform(2, 4))
    finally:
        scene.disk.empty()
        await scene.cluster.kill(broker)
        await scene.serve_again(broker)


async def _plan_to(scene: Scene, broker: int) -> Alter:
    """Every partition that has no replica on the broker gets one there, in place of its last."""
    with contextlib.suppress(ClusterError):
        seen = await scene.installation.driver.observe(scene.planning.keys)
        targets = [
            PartitionTarget(topic=key.topic, partition=key.partition, replicas=(*facts.replicas[:-1], broker))
            for key, facts in seen.partitions.items()
            if facts is not None and broker not in facts.replicas
        ]
        if targets:
            return scene.planning.alter_to(tuple(targets))
    return scene.planning.alter()


# -- the controller


async def kill_controller(scene: Scene, random: Random) -> None:
    seconds = random.uniform(1, 4)
    scene.say(f"SIGKILL to the controller, started again after {seconds:.1f} s")
    await scene.cluster.kill(CONTROLLER)
    await asyncio.sleep(seconds)
    await scene.serve_again(CONTROLLER)


async def stop_controller(scene: Scene, random: Random) -> None:
    scene.say("SIGTERM to the controller, started again")
    await scene.cluster.stop(CONTROLLER)
    await scene.serve_again(CONTROLLER)


async def pause_controller(scene: Scene, random: Random) -> None:
    await _pause(scene, CONTROLLER, random.uniform(4, 7))


LANES: dict[str, tuple[Injury, ...]] = {
    "workers": (kill_worker, stop_worker, pause_worker, fight, kill_worker),
    "brokers": (kill_broker, stop_broker, pause_broker, hang_coordinator, lose_quorum, fill_disk),
    "controller": (kill_controller, stop_controller, pause_controller),
}
