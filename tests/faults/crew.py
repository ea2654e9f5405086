"""The workers under test and who looks after them: started with clocks that are wrong, restarted when they end.

Drover leaves restarting to whatever runs it (systemd, Kubernetes); here that is `Crew`.
"""

import asyncio
import contextlib
import math
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from drover.agents.watchdog import EXIT_FAULT, EXIT_STOP_DEADLINE
from tests.integration.support import Installation

NAMES = ("alpha", "bravo")
CLOCK_OFFSETS_S = (600, -600, 0)
# What a worker may end with by itself: a fault of the world, a stop that took too long, no Kafka within reach at start.
EXPECTED_CODES = frozenset({EXIT_FAULT, EXIT_STOP_DEADLINE, 1})
# What no fault of the world may lead to.
BROKEN = re.compile(
    r"\b(?:Assertion|Attribute|CorruptLog|Index|Key|Name|Type|UnboundLocal|UnknownSchema)Error\b[^\n]*", re.MULTILINE
)

OWNED = re.compile(r'"shards are owned", "shards": \[\d')
REGAINED = re.compile(r"a shard is acquired again")


@dataclass
class Crew:
    """Workers of one Drover; `clocks` counts starts by clock offset, `ends` by signal or exit code."""

    installation: Installation
    clocks: Counter[int] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Keep the workers running for the length of a block, then stop them as an operator would."""
        for name in NAMES:
            await self.start(name)
        looking_after = [asyncio.create_task(self._look_after(name)) for name in NAMES]
        try:
            yield
        finally:
            for task in looking_after:
                task.cancel()
            for result in await asyncio.gather(*looking_after, return_exceptions=True):
                if not isinstance(result, asyncio.CancelledError):
                    self.faults.append(f"nobody looked after the workers: {result!r}")
        for name in NAMES:
            self.send(name, signal.SIGTERM)
        for name in NAMES:
            code = await self.installation.processes[name].wait()
            if code != 0:
                self.faults.append(f"{name} ended with {code} when it was told to stop and nothing was wrong any more")

    def broken(self) -> list[str]:
        """What workers have said that no fault of the world may lead to."""
        logs = sorted(self.installation.directory.glob("*.log"))
        return [f"{log.name}: {words}" for log in logs for words in BROKEN.findall(log.read_text(errors="replace"))]

    def owned(self, name: str) -> int:
        """How often a worker has said that shards are its own."""
        return self._said(OWNED, name)

    def regained(self) -> int:
        """How often workers have said that they took a shard back from somebody."""
        return sum(self._said(REGAINED, name) for name in NAMES)

    def _said(self, words: re.Pattern[str], name: str) -> int:
        log = self.installation.directory / f"{name}.log"
        return len(words.findall(log.read_text(errors="replace"))) if log.exists() else 0

    async def all_serve(self) -> bool:
        """Whether each worker has owned shards."""
        return all(self.owned(name) for name in NAMES)

    async def start(self, name: str, *options: str) -> None:
        """Start a worker whose clock is ten minutes ahead, ten minutes behind, or right: each in its turn."""
        offset_s = CLOCK_OFFSETS_S[self.clocks.total() % len(CLOCK_OFFSETS_S)]
        self.clocks[offset_s] += 1
        program = ("-m", "tests.faults.worker_main", str(offset_s))
        await self.installation.start_worker(name, *options, program=program)

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a worker a signal, unless it has just ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            self.installation.processes[name].send_signal(number)

    async def end(self, name: str, number: signal.Signals) -> None:
        """End a worker and wait until it is gone; whoever looks after it starts it again."""
        process = self.installation.processes[name]
        self.send(name, number)
        await process.wait()

    async def _look_after(self, name: str) -> None:
        while True:
            code = await self.installation.processes[name].wait(math.inf)
            self.ends[signal.Signals(-code).name if code < 0 else str(code)] += 1
            if code > 0 and code not in EXPECTED_CODES:
                self.faults.append(f"{name} ended with {code}")
            await asyncio.sleep(0.5)
            await self.start(name)
