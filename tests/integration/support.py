"""The local installation of `drover.testing`, as these tests use it: forked commands, and plans as files."""

import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from drover.cluster.port import ThrottleChange
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, ThrottledReplicas
from drover.jars import KAFKA_VERSION
from drover.local import LocalCluster, local_cluster
from drover.state.plans import Plan
from drover.testing.commands import DROVER, Finished
from drover.testing.local import (
    CREATED_WITHIN_MS,
    DEADLINE_S,
    MANAGED,
    LocalInstallation,
    LocalSettings,
    holds_within,
    observer,
    running,
    wait_for,
)
from tests.commands import ForkedCommands
from tests.topics import delete_topics

__all__ = [
    "CREATED_WITHIN_MS",
    "DEADLINE_S",
    "DROVER",
    "LOOK_S",
    "MANAGED",
    "Installation",
    "holds_within",
    "installation",
    "observer",
    "own_installation",
    "wait_for",
]

# Between two looks that each start a process: it is what all others wait for meanwhile.
LOOK_S = 0.5


class Installation(LocalInstallation):
    """One Drover with topics of its own, so that tests on the shared cluster do not meet."""

    async def start_projector(self, name: str, *, program: Sequence[str] = DROVER) -> None:
        """Start `drover zookeeper run`, by another program if wanted; it is ended as a worker is."""
        await self.start(name, "zookeeper", "run", "--listen", "127.0.0.1:0", program=program)

    def delete_topics(self) -> None:
        """Delete every topic that it made: they make the shared cluster slow, and get into the plans of other tests."""
        prefix = f"{self.names.prefix}."
        delete_topics(self.cluster.bootstrap, lambda name: name in self.topics or name.startswith(prefix))

    async def plan(self, name: str) -> Plan:
        """A plan as the log says it is."""
        return (await self.state()).plans[name]

    async def throttles(self, topic: str) -> tuple[Mapping[int, BrokerRates], ThrottledReplicas]:
        rates = await self.driver.broker_rates((1, 2, 3, 4))
        return rates, (await self.driver.throttled_replicas([topic]))[topic]

    async def change_throttles(self, *changes: ThrottleChange) -> None:
        """Change throttles as another operator would; a broker that has not heard of a new topic is asked again."""

        async def accepted() -> bool:
            return all(result.accepted for result in (await self.driver.change_throttles(changes)).values())

        await wait_for(accepted, f"{changes} to be accepted")

    # -- plans

    async def alter(self, plan: str, targets: Mapping[TopicPartition, Sequence[int]], *options: str) -> Finished:
        """Write a plan file in the stock tool's format and submit it."""
        file = self.directory / f"{plan}.json"
        partitions = [
            {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
            for key, replicas in targets.items()
        ]
        file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return await self.drover("alter", str(file), "--plan", plan, "--reason", "integration test", *options)

    async def status(self) -> Any:
        return (await self.drover("status", "-o", "json")).document

    async def wait_until_settled(self, timeout_s: float = DEADLINE_S) -> float:
        """Wait until nothing is under way, by the log and by `drover status`, and no throttle is left in the ledger."""
        waited_s = await super().wait_until_settled(timeout_s)

        async def is_shown() -> bool:
            return not (await self.status())["reassignments"]

        return waited_s + await wait_for(is_shown, "the status to show no reassignment", timeout_s)


@asynccontextmanager
async def installation(
    cluster: LocalCluster,
    directory: Path,
    prefix: str,
    *,
    session_timeout_ms: int = 3000,
    healing: Mapping[str, int] | None = None,
    bootstrap: str | None = None,
    **limits: bool | float | str,
) -> AsyncIterator[Installation]:
    """Make topics and a settings file of its own; workers are ended with it.

    `bootstrap` is where the managed cluster is reached, if not as its log is.
    """
    settings = LocalSettings(
        prefix=prefix,
        workers=0,
        session_timeout_ms=session_timeout_ms,
        limits=limits,
        healing=healing,
        bootstrap=bootstrap,
        commands=ForkedCommands(),
    )
    made = Installation(cluster, directory, settings)
    async with running(made):
        yield made
    made.delete_topics()


@asynccontextmanager
async def own_installation(
    name: str, *, kafka: str = KAFKA_VERSION, zookeeper_mode: bool = False, brokers: int = 4
) -> AsyncIterator[Installation]:
    """Run a cluster of its own of some version, with one worker on it that owns every shard."""
    with tempfile.TemporaryDirectory(prefix=f"drover-{name}-") as directory:
        place = Path(directory)
        controllers = 0 if zookeeper_mode else 1
        async with local_cluster(place / "cluster", brokers, 3, kafka=kafka, controllers=controllers) as cluster:
            (place / "drover").mkdir()
            async with installation(cluster, place / "drover", name, max_moves_per_broker=50) as made:
                await made.start_worker("solo")
                await made.wait_until_owned("solo")
                yield made
