"""A producer whose writes are timed, in a process of its own: what else a benchmark does must not count as waiting."""

import argparse
import asyncio
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer

from bench.results import check, percentile
from bench.rig import REPOSITORY, Rig

TRAFFIC = "traffic"
PAUSE_S, PRODUCED = 0.02, b"x" * 1024


@dataclass(slots=True)
class Waits:
    """The latencies of a producer's writes in ms, reported piece by piece."""

    waited_ms: list[float] = field(default_factory=list)
    reported: int = 0

    def add(self, waited_ms: float) -> None:
        """Add the next write."""
        self.waited_ms.append(waited_ms)

    def p99_ms(self) -> float:
        """Return the 99th percentile of the writes since the last report, and end the piece."""
        first = self.reported
        self.skip()
        return percentile(self.waited_ms[first:], 99)

    def skip(self) -> None:
        """Leave the writes since the last report out of the next one."""
        self.reported = len(self.waited_ms)


@asynccontextmanager
async def producing(rig: Rig) -> AsyncIterator[Waits]:
    """Send a record to `TRAFFIC` every 20 ms, acknowledged by all, as long as the context lasts.

    Raises `BenchmarkError` at its end if a write failed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.producing",
        rig.cluster.bootstrap,
        cwd=REPOSITORY,
        stdin=DEVNULL,
        stdout=PIPE,
    )
    waits = Waits()
    reading = asyncio.create_task(_read(process, waits))
    try:
        yield waits
        check(process.returncode is None, "the producer has ended: a write failed")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


async def _read(process: Process, waits: Waits) -> None:
    assert process.stdout is not None, "it is a pipe"
    async for line in process.stdout:
        waits.add(float(line))


async def _produce(bootstrap: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0)
    await producer.start()

    async def send() -> None:
        began = time.monotonic()
        await producer.send_and_wait(TRAFFIC, PRODUCED)
        print((time.monotonic() - began) * 1000, flush=True)

    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(send())
            await asyncio.sleep(PAUSE_S)


def main() -> None:
    """Produce until killed, and print how long each write has waited."""
    parser = argparse.ArgumentParser(prog="python -m bench.producing")
    parser.add_argument("bootstrap")
    asyncio.run(_produce(parser.parse_args().bootstrap))


if __name__ == "__main__":
    main()
