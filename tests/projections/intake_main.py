"""An intake as a process that kills itself at a chosen point: python -m tests.projections.intake_main …

It looks twice and ends. What it sends is appended to a file, durably, in place of the command topic.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from drover.events.codec import encode_command
from drover.events.commands import AnyCommand
from drover.projections.intake import Intake
from drover.projections.store import Operation, nothing
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions
from tests.projections.logs import valid_batches
from tests.projections.notes import Notes
from tests.projections.projector_main import die
from tests.shard.world import CLUSTER


class DeadlyStore(ZooKeeperStore):
    """Ends the process beside a transaction."""

    point = ""

    async def write(self, operations: Sequence[Operation], meanwhile: Callable[[], None] = nothing) -> None:
        if self.point == "before-answering":
            die()
        await super().write(operations, meanwhile)
        if self.point == "after-answering":
            die()


async def main(hosts: str, base: str, log: Sequence[bytes], sent: Path, point: str) -> None:
    store = DeadlyStore(ZooKeeperOptions(hosts))
    store.point = point

    async def submit(command: AnyCommand) -> None:
        if point == "seen":
            die()
        with sent.open("ab") as file:
            payload = encode_command(command)
            file.write(len(payload).to_bytes(4, "big") + payload)
            file.flush()
            os.fsync(file.fileno())
        if point == "sent":
            die()

    intake = Intake(CLUSTER, base, store, submit, Notes())
    for offset, batch in valid_batches(log):
        intake.recorded(offset, batch)
    await intake.look()
    await intake.look()
    await store.close()


if __name__ == "__main__":
    recorded = msgspec.msgpack.decode(Path(sys.argv[3]).read_bytes(), type=list[bytes])
    asyncio.run(main(sys.argv[1], sys.argv[2], recorded, Path(sys.argv[4]), sys.argv[5]))
