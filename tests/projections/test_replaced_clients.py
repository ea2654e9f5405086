"""A client that is thrown away, as its answer did not come, while another request waits for its connection."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from drover.projections import zookeeper
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions


class Client:
    """kazoo's client as far as a connection goes."""

    client_state = "CONNECTING"

    def __init__(self, *, connected: bool) -> None:
        self.connected = connected
        self.ended: list[str] = []

    def start_async(self) -> None:
        """Say nothing."""

    def stop(self) -> None:
        self.ended.append("stopped")

    def close(self) -> None:
        self.ended.append("closed")


async def test_who_waits_for_a_connection_goes_on_with_the_client_that_replaces_a_lost_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost, fresh = Client(connected=False), Client(connected=True)
    clients: Iterator[Any] = iter((lost, fresh))
    monkeypatch.setattr(zookeeper, "made", lambda _: next(clients))
    store = ZooKeeperStore(ZooKeeperOptions("nowhere:1", request_timeout_s=600.0))
    waiting = asyncio.create_task(store._connected())
    await asyncio.sleep(0)
    # What a request does whose answer does not come.
    store._discard(lost)
    async with asyncio.timeout(20):
        assert await waiting is fresh
    await store.close()
    assert (lost.ended, fresh.ended) == (["stopped", "closed"], ["stopped", "closed"])
