"""Let a small cluster record what Kafka's JVMs load, before the first tests: without it each takes twice as long.

`python -m tests.recorded_classes`; does nothing where that is known. The clusters of the tests that begin first run
for minutes, and what they record is kept only when they end.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from drover.local import local_cluster, prepare
from tests.memory import memory_directory


async def record() -> None:
    """Start and end a cluster of one process, which keeps what it has loaded."""
    with tempfile.TemporaryDirectory(dir=memory_directory(), prefix="drover-classes-") as directory:
        async with local_cluster(Path(directory) / "cluster", brokers=3, killable=()):
            pass


def main() -> int:
    """Record where nothing is recorded."""
    archives = prepare().archives
    if archives is not None and not archives.classes.exists():
        asyncio.run(record())
    return 0


if __name__ == "__main__":
    sys.exit(main())
