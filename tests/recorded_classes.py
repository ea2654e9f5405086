"""Record Kafka's class data archive with a small cluster, before the first test.

`python -m tests.recorded_classes`; does nothing if there is an archive. Without one every broker takes twice as long to
start. The first clusters of the tests would record one too, but only when they end, minutes later.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from drover.local import local_cluster, prepare
from tests.memory import memory_directory


async def record() -> None:
    """Start and stop a cluster of one process, which leaves an archive of the classes that it loaded."""
    with tempfile.TemporaryDirectory(dir=memory_directory(), prefix="drover-classes-") as directory:
        async with local_cluster(Path(directory) / "cluster", brokers=3, killable=()):
            pass


def main() -> int:
    """Record an archive if there is none."""
    archives = prepare().archives
    if archives is not None and not archives.classes.exists():
        asyncio.run(record())
    return 0


if __name__ == "__main__":
    sys.exit(main())
