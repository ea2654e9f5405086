"""A client from ZooKeeper's days, which knows nothing of Drover: python -m tests.integration.legacy_client HOSTS PLAN.

It submits the plan, watches it, asks for a cancel when it reads a line, and ends when both nodes are gone. What it sees
it prints, one JSON document a line: {"plan": ...} whenever the plan has changed, null when it is gone.
"""

import json
import sys
import threading
from typing import Any

from kazoo.client import KazooClient

PLAN = "/admin/reassign_partitions"
CANCEL = "/admin/cancel_reassignment_in_progress"
PATIENCE_S = 60


def main(hosts: str, plan: str) -> None:
    """`hosts` ends with the chroot, as legacy tools have it: host:port/chroot."""
    client = KazooClient(hosts)
    client.start()
    gone = threading.Event()
    client.create(PLAN, plan.encode())

    def changed(data: bytes | None, stat: Any) -> bool:
        del stat
        print(json.dumps({"plan": None if data is None else json.loads(data)}), flush=True)
        if data is None:
            gone.set()
        return data is not None

    client.DataWatch(PLAN, changed)
    sys.stdin.readline()
    client.create(CANCEL, b"")
    cancelled = threading.Event()
    client.DataWatch(CANCEL, lambda data, _: cancelled.set() if data is None else None)
    assert gone.wait(PATIENCE_S), "the plan does not go"
    assert cancelled.wait(PATIENCE_S), "the cancel does not go"
    client.stop()
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
