"""Avoid hanging brokers of the log, which accept connections but do not answer, like a stopped process.

aiokafka waits a whole request timeout for each of them in turn, even if others could answer. Here a broker has two
seconds for its first answer; then others are asked, and later this broker again with more patience. Requests for a
partition that it leads wait until Kafka has elected another leader.
"""

import asyncio
import functools
import logging
import time
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaConnectionError

# The time for a broker's first answer while there are others to ask.
PATIENCE_S = 2.0
# On a slow machine or network, other brokers get this many times the time of the broker that answered first.
TIMES_THE_FIRST = 4
# How long a silent broker is left out while there are others to ask.
LEFT_OUT_S = 5.0
# The time after which a missing answer is logged.
NOTICE_S = 4.0

Address = tuple[str, int]
_log = logging.getLogger(__name__)
# Until when (monotonic) silent brokers are left out; shared by all clients of this process.
_silent: dict[Address, float] = {}


def go_round_silent_brokers(client: Any, request_timeout_ms: int) -> None:
    """Let an aiokafka client, which has not started yet, ask other brokers when one does not answer.

    `request_timeout_ms` applies to brokers that are already connected.
    """
    client._request_timeout_ms = request_timeout_ms  # noqa: SLF001 - aiokafka has no setting for a connection alone
    patience = _Patience(client, request_timeout_ms / 1000)
    client.bootstrap = functools.partial(patience.bootstrap, client.bootstrap)
    client._get_conn = functools.partial(patience.connect, client._get_conn)  # noqa: SLF001 - see above


def silent_leaders(client: Any, topic: str, shards: Iterable[int]) -> dict[int, int]:
    """Return, by partition, the leaders that have recently been silent."""
    leaders = {shard: client.cluster.leader_for_partition(KafkaPartition(topic, shard)) for shard in shards}
    return {
        shard: leader
        for shard, leader in leaders.items()
        if (broker := client.cluster.broker_metadata(leader)) is not None and _is_silent((broker.host, broker.port))
    }


@asynccontextmanager
async def saying_who_is_silent(client: Any, topic: str, shards: Collection[int]) -> AsyncIterator[None]:
    """Log a warning that names the silent leaders of these partitions once the block has taken `NOTICE_S` seconds."""
    notice = asyncio.get_running_loop().call_later(NOTICE_S, _say_who_is_silent, client, topic, shards)
    try:
        yield
    finally:
        notice.cancel()


def _say_who_is_silent(client: Any, topic: str, shards: Collection[int]) -> None:
    silent = silent_leaders(client, topic, shards)
    if not silent:
        _log.warning("the log's Kafka has not answered about %s for %g s: waiting", topic, NOTICE_S)
    for broker in sorted(set(silent.values())):
        led = ", ".join(str(shard) for shard, leader in sorted(silent.items()) if leader == broker)
        _log.warning(
            "broker %s, which leads partition %s of %s, has not answered for %g s: waiting until Kafka has elected "
            "another leader",
            *(broker, led, topic, NOTICE_S),
        )


def _is_silent(address: Address) -> bool:
    return _silent.get(address, 0.0) > time.monotonic()


class _Patience:
    """The patience of a client with brokers to which it is not connected yet."""

    def __init__(self, client: Any, request_timeout_s: float) -> None:
        self._client = client
        self._request_timeout_s = request_timeout_s
        self._patience_s = min(PATIENCE_S, request_timeout_s)

    async def bootstrap(self, bootstrap: Any) -> None:
        """Try each bootstrap server for a short time, silent ones last; then the silent ones with the full timeout."""
        client, given = self._client, self._client._bootstrap_servers  # noqa: SLF001 - see `go_round_silent_brokers`
        servers = sorted(client.hosts, key=lambda server: _is_silent(server[:2]))
        waits = [(server, self._patience_s) for server in servers] if len(servers) > 1 else []
        waits += [(server, self._request_timeout_s) for server in servers]
        refused: set[Address] = set()
        problem: KafkaConnectionError | None = None
        try:
            for (host, port, _), patience_s in waits:
                if (host, port) in refused:
                    continue
                client._bootstrap_servers = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"  # noqa: SLF001 - see above
                began_s = time.monotonic()
                try:
                    await self._within(patience_s, bootstrap())
                except KafkaConnectionError as error:
                    problem = error
                    if not self._note(f"{host}:{port}", (host, port), began_s, patience_s, has_others=len(servers) > 1):
                        refused.add((host, port))
                else:
                    took_s = time.monotonic() - began_s
                    self._patience_s = min(max(self._patience_s, TIMES_THE_FIRST * took_s), self._request_timeout_s)
                    return
        finally:
            client._bootstrap_servers = given  # noqa: SLF001 - see above
        assert problem is not None, "there is at least one server"
        raise problem

    async def connect(self, connect: Any, node_id: Any, **options: Any) -> Any:
        """Connect to a broker; None if it is silent."""
        cluster = self._client.cluster
        broker = cluster.broker_metadata(node_id)
        if broker is None:
            return await connect(node_id, **options)
        address = broker.host, broker.port
        has_others = any(not _is_silent((other.host, other.port)) for other in cluster.brokers() if other != broker)
        if _is_silent(address) and has_others:
            self._client.force_metadata_update()
            return None
        patience_s, began_s = self._patience_s if has_others else self._request_timeout_s, time.monotonic()
        connection = await self._within(patience_s, connect(node_id, **options))
        if connection is None:
            name = f"broker {node_id} ({broker.host}:{broker.port})"
            self._note(name, address, began_s, patience_s, has_others=has_others)
        else:
            connection._request_timeout = self._request_timeout_s  # noqa: SLF001 - see `go_round_silent_brokers`
        return connection

    async def _within(self, patience_s: float, connecting: Any) -> Any:
        """Await `connecting`, with this timeout for the answers on its connections."""
        client = self._client
        client._request_timeout_ms = int(patience_s * 1000)  # noqa: SLF001 - see `go_round_silent_brokers`
        try:
            return await connecting
        finally:
            client._request_timeout_ms = int(self._request_timeout_s * 1000)  # noqa: SLF001 - see above

    def _note(self, name: str, address: Address, began_s: float, patience_s: float, *, has_others: bool) -> bool:
        """Record a broker that has not answered; return whether it was silent, as opposed to refusing."""
        took_s = time.monotonic() - began_s
        if took_s < 0.9 * patience_s:
            return False
        if not _is_silent(address) and has_others:
            _log.warning("%s of the log's Kafka has not answered within %.0f s: asking others", name, took_s)
        _silent[address] = time.monotonic() + LEFT_OUT_S
        return True
