"""Watches moves from outside: Kafka's list of reassignments, and the bytes on the brokers' disks."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from bench.results import check
from bench.rig import wait_until
from drover.cluster.kafka import KafkaDriver

LIST_S, SAMPLE_S = 0.1, 1.0


@dataclass(slots=True)
class Watched:
    """One topic's moves: when the first and the last were listed, the most added replicas, and the sizes over time."""

    driver: KafkaDriver
    topic: str
    first_s: float | None = None
    last_s: float = 0.0
    peak_extra: int = 0
    listed: set[int] = field(default_factory=set)
    samples: list[tuple[float, Mapping[int, Mapping[int, int]]]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        check(self.first_s is not None, "no move was seen on Kafka's list")
        return self.last_s - (self.first_s or 0.0)

    async def end(self) -> None:
        """Wait until nothing is listed any more, after something was."""

        async def is_over() -> bool:
            return self.first_s is not None and not self.listed

        await wait_until(is_over, f"the moves of {self.topic} to end", 1200)

    def rate(
        self, port: tuple[str, int], after: Mapping[int, tuple[int, ...]], before: Mapping[int, tuple[int, ...]]
    ) -> float:
        """Return the rate of a port in bytes per second, from a fifth to four fifths of all its bytes."""
        way, broker = port
        passed: list[tuple[float, int]] = []
        for at_s, sizes in self.samples:
            total = 0
            for number, replicas in before.items():
                for added in set(after[number]) - set(replicas):
                    if broker == (added if way == "in" else replicas[0]):
                        total += sizes.get(number, {}).get(added, 0)
            passed.append((at_s, total))
        whole = passed[-1][1]
        inner = [one for one in passed if whole / 5 <= one[1] <= whole * 4 / 5]
        check(len(inner) > 1, "too few samples")
        (began_s, first), (ended_s, last) = inner[0], inner[-1]
        return (last - first) / (ended_s - began_s)

    async def list_moves(self) -> None:
        while True:
            moves = {key.partition: move for key, move in (await self.driver.list_moves()).moves.items()
                     if key.topic == self.topic}  # fmt: skip
            if moves:
                self.last_s = time.monotonic()
                self.first_s = self.last_s if self.first_s is None else self.first_s
            self.listed = set(moves)
            self.peak_extra = max(self.peak_extra, sum(len(move.adding) for move in moves.values()))
            await asyncio.sleep(LIST_S)

    async def sample(self) -> None:
        while True:
            await self.take()
            await asyncio.sleep(SAMPLE_S)

    async def take(self) -> None:
        sizes = (await self.driver.log_directories([self.topic])).sizes
        self.samples.append((time.monotonic(), {key.partition: held for key, held in sizes.items()}))


@asynccontextmanager
async def watching(driver: KafkaDriver, topic: str) -> AsyncIterator[Watched]:
    """Watch the moves of a topic until the block ends."""
    watched = Watched(driver, topic)
    tasks = [asyncio.create_task(watched.list_moves()), asyncio.create_task(watched.sample())]
    try:
        yield watched
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    await watched.take()
