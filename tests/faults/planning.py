"""People who change their minds: plans, cancels, freezes and more at random, each command under an id of its own.

Some commands are sent twice, as a client does that got no answer; and one that is not acknowledged is sent again until
it is.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from drover.client.answers import Sent
from drover.client.client import Client
from drover.errors import LogUnavailableError
from drover.events.commands import (
    Alter,
    AnyCommand,
    Blacklist,
    BrokerFailed,
    BrokerReturned,
    Cancel,
    Freeze,
    PartitionName,
    PartitionTarget,
    Unfreeze,
)
from drover.events.partitions import TopicPartition
from drover.journal.connection import LogConnection
from tests.integration.support import MANAGED

SENT_TWICE = 0.2
QUEUED = 0.2
# Shares of a hundred.
MIX: tuple[tuple[str, int], ...] = (("alter", 50), ("rollback", 14), ("stop", 10), ("frost", 16), ("brokers", 10))
THROTTLES = (None, 1_000_000, 1_000_000, 4_000_000)


@dataclass
class Planning:
    """Everything that was asked for; `acknowledged` holds one entry per record that a broker took."""

    connection: LogConnection
    keys: tuple[TopicPartition, ...]
    brokers: tuple[int, ...]
    random: Random
    sent: list[AnyCommand] = field(default_factory=list)
    acknowledged: list[Sent] = field(default_factory=list)
    frozen: bool = False
    _plans: list[str] = field(default_factory=list)
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def kinds(self) -> Counter[str]:
        """How many commands of each type there were, each counted once."""
        return Counter(str(command.__struct_config__.tag) for command in self.sent)

    @asynccontextmanager
    async def at_random(self, pause_s: float) -> AsyncIterator[None]:
        """Send a command every so often for the length of a block; at its end all are sent and nothing is frozen."""
        asking = asyncio.create_task(self._ask(pause_s))
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await self.finish()

    async def finish(self) -> None:
        """Wait until everything was acknowledged, then end whatever freeze is left.

        Commands overtake each other while the log has no quorum: a freeze may come after the command that ends it.
        """
        await asyncio.gather(*self._sending)
        self.frozen = False
        self.send(Unfreeze(**self._common()))
        await asyncio.gather(*self._sending)

    async def _ask(self, pause_s: float) -> None:
        while True:
            self.send(self.next_command())
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * pause_s)

    # -- sending

    def send(self, command: AnyCommand) -> None:
        """Send a command in the background, now and then once more a little later."""
        self.sent.append(command)
        self._start(command, 0.0)
        if self.random.random() < SENT_TWICE:
            self._start(command, self.random.choice((0.0, 3.0)))

    def _start(self, command: AnyCommand, delay_s: float) -> None:
        task = asyncio.create_task(self._until_acknowledged(command, delay_s))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _until_acknowledged(self, command: AnyCommand, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        while True:
            try:
                async with Client(self.connection) as client:
                    self.acknowledged.append(await client.submit(command))
            except LogUnavailableError:
                await asyncio.sleep(0.5)
            else:
                return

    # -- what is asked for

    def next_command(self) -> AnyCommand:
        """Make up the next command."""
        make: dict[str, Callable[[], AnyCommand]] = {
            "alter": self.alter,
            "rollback": lambda: self._cancel("rollback"),
            "stop": lambda: self._cancel("stop"),
            "frost": self._frost,
            "brokers": self._brokers,
        }
        # A frozen cluster shows nothing: it does not stay so for long.
        shares = [weight * (3 if kind == "frost" and self.frozen else 1) for kind, weight in MIX]
        (kind,) = self.random.choices([kind for kind, _ in MIX], shares)
        return make[kind]()

    def alter(self, count: int | None = None) -> Alter:
        """Ask for new replicas of so many partitions, chosen at random."""
        common = self._common()
        chosen = self.random.sample(self.keys, count or self.random.randint(1, max(1, len(self.keys) // 3)))
        targets = tuple(
            PartitionTarget(topic=key.topic, partition=key.partition, replicas=self._replicas()) for key in chosen
        )
        # A plan that was opened a moment ago may be open still: now and then it is added to.
        plan = self.random.choice(self._plans[-2:]) if self._plans and self.random.random() < 0.15 else common["id"]
        self._plans.append(plan)
        return Alter(
            partitions=targets,
            plan=plan,
            throttle_bytes_per_second=self.random.choice(THROTTLES),
            queue=self.random.random() < QUEUED,
            **common,
        )

    def alter_to(self, targets: tuple[PartitionTarget, ...]) -> Alter:
        """Ask for these replicas, as a plan of its own, slowly enough to be seen."""
        return Alter(partitions=targets, throttle_bytes_per_second=THROTTLES[1], **self._common())

    def _replicas(self) -> tuple[int, ...]:
        return tuple(self.random.sample(self.brokers, 3 if self.random.random() < 0.9 else len(self.brokers)))

    def _cancel(self, mode: Any) -> Cancel:
        common = self._common()
        match self.random.randrange(4):
            case 0:
                return Cancel(mode=mode, all=True, **common)
            case 1:
                keys = self.random.sample(self.keys, 2)
                names = tuple(PartitionName(topic=key.topic, partition=key.partition) for key in keys)
                return Cancel(mode=mode, partitions=names, **common)
            case _:
                return Cancel(mode=mode, plan=self._plans[-1] if self._plans else "nowhere", **common)

    def _frost(self) -> Freeze | Unfreeze:
        self.frozen = not self.frozen
        return (Freeze if self.frozen else Unfreeze)(**self._common())

    def _brokers(self) -> Blacklist | BrokerFailed | BrokerReturned:
        common, broker = self._common(), self.random.choice(self.brokers)
        match self.random.randrange(3):
            case 0:
                # One that is not there: what the list does to orders is not what the storm's moves are held to.
                return Blacklist(brokers=(90 + broker,), **common)
            case 1:
                return BrokerFailed(broker=broker, at_ms=len(self.sent), **common)
            case _:
                return BrokerReturned(broker=broker, at_ms=len(self.sent), **common)

    def _common(self) -> dict[str, Any]:
        number = len(self.sent)
        return {"id": f"x{number:04}", "cluster": MANAGED, "by": "somebody", "reason": f"command {number}"}
