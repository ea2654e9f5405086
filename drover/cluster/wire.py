"""One connection lane to a cluster: sends Kafka protocol requests through kafka-python and returns their outcomes.

The only place that touches kafka-python's insides. Its KafkaAdminClient already runs all I/O on a thread of its own and
takes work from other threads, so nothing here blocks: requests are handed to that thread and awaited as asyncio
futures. It does not know what the requests mean.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaError, RequestTimedOutError
from kafka.net.compat import KafkaNetClient

from drover.cluster.recent_failures import has_failed_lately, servers_to_ask
from drover.cluster.sockets import DIRECT, address_of, move_brokers, refusal, watch_handshakes
from drover.errors import (
    ClusterAccessError,
    ClusterError,
    ClusterUnavailableError,
    ConfigurationError,
    OutcomeUnknownError,
)
from drover.facts import NONE, NOT_CONTROLLER
from drover.threads import deliver, in_daemon_thread
from drover.time_limits import time_limit

CONNECT_ATTEMPT_MS = 1500
"""How long one broker may take to accept a connection before the next one is tried."""

CONTROLLER_PAUSE_S = 0.1
"""How long to wait before the controller is looked for again."""

MAX_CLIENTS_CLOSING = 4
"""How many replaced clients may still be closing; with more than that, none is replaced."""

_ITEMS = ("topics", "results", "responses")
"""Under which name an answer without a code of its own lists what it answers."""

# Kafka's client logs every refused connection; without a handler Python would print that to the operator's terminal.
logging.getLogger("kafka").addHandler(logging.NullHandler())

Result = TypeVar("Result")


class NotSentError(KafkaError):  # type: ignore[misc]  # kafka-python ships no types
    """No broker took the request: it never left, or it only reads and nobody answered."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment on the monotonic clock by which a call must be over."""

    ends_at: float

    @classmethod
    def after_ms(cls, duration_ms: int) -> "Deadline":
        """Return the deadline that is so far away from now."""
        return cls(time.monotonic() + duration_ms / 1000)

    def left_s(self) -> float:
        """Return the seconds that are left, never below zero."""
        return max(0.0, self.ends_at - time.monotonic())

    def left_ms(self) -> int:
        """Return the milliseconds that are left, never below zero."""
        return int(self.left_s() * 1000)


class Lane:
    """Requests to one cluster over connections of their own, made lazily and replaced when they fail.

    Brokers handle one request per connection at a time, so what must not wait for a slow one needs another lane.
    A client whose brokers are all gone, or that does not answer at all, is replaced: no new `Lane` is ever needed.
    """

    def __init__(
        self, purpose: str, bootstrap: str, client_options: Mapping[str, object], call_timeout_ms: int
    ) -> None:
        self._purpose = purpose
        self._bootstrap = bootstrap
        self._options: dict[str, object] = {
            "client_id": f"drover-{purpose}",
            "request_timeout_ms": call_timeout_ms,
            "reconnect_backoff_max_ms": 1000,
            "max_in_flight_requests_per_connection": 100,
            "proxy_url": DIRECT,
            **client_options,
        }
        self._client: KafkaAdminClient | None = None
        self._opening: asyncio.Future[KafkaAdminClient] | None = None
        self._closing: list[threading.Thread] = []
        self._closed = False
        self._must_be: str | None = None

    def must_be(self, kafka_cluster_id: str) -> None:
        """Send nothing to another cluster from now on.

        Lanes look the bootstrap servers up at times of their own: a name may lead to another cluster by then, while
        the one that it led to before still serves a lane that has found it.
        """
        self._must_be = kafka_cluster_id

    def learn_addresses(self, metadata: Any) -> None:
        """Ask brokers at the addresses that this Metadata response names from now on.

        Kafka's client keeps for five minutes what it knows: two brokers that have swapped their addresses would be
        taken for each other. What another cluster says is ignored.
        """
        client = self._client
        if client is None:
            return
        manager = client._manager  # noqa: SLF001  # the one door to its insides
        cluster = manager.cluster
        if metadata.cluster_id != cluster.cluster_id:
            return
        named = {broker.node_id: broker for broker in metadata.brokers}
        moved = {
            node.node_id: named[node.node_id]
            for node in cluster.brokers()
            if node.node_id in named and address_of(node) != address_of(named[node.node_id])
        }
        if moved:
            manager.call_soon(lambda: move_brokers(manager, moved))

    async def refresh(self, deadline: Deadline) -> None:
        """Ask a broker for the addresses of all, because one was not found where it should be."""
        if self._client is not None:
            await self._refresh(self._client, deadline)

    async def send(self, request: Any, deadline: Deadline, *, broker: int | None = None, changes: bool = False) -> Any:
        """Send one protocol request and return the decoded response.

        Args:
            request: a kafka-python protocol object; its version is negotiated.
            deadline: when to give up, connecting included.
            broker: the one broker that must answer; else the controller if Kafka names one, else any.
            changes: whether the request changes something, which decides the error.

        Raises:
            ConfigurationError: kafka-python rejects the client options.
            ClusterAccessError: the cluster refuses the password, or its certificate is not trusted.
            ClusterUnavailableError: it was not sent, it only reads and got no answer, no controller took it in time, or
                another cluster is there.
            OutcomeUnknownError: it changes something, was sent, and got no answer.
        """
        while True:
            client = await self._open(deadline)
            self._check_identity(client, request)
            answer = await self._exchange(client, request, deadline, broker, changes=changes)
            if broker is not None or not _came_from_another(answer):
                return answer
            # It was not done. The client would keep the controller that it knows for five minutes.
            if deadline.left_s() < CONTROLLER_PAUSE_S:
                self._replace(client)
                raise self._fault(request, "its controller has moved, and no broker names the new one", changed=False)
            await asyncio.sleep(CONTROLLER_PAUSE_S)
            await self._refresh(client, deadline)

    def _check_identity(self, client: KafkaAdminClient, request: Any) -> None:
        """Refuse a client that has found another cluster; the next call looks the bootstrap servers up again."""
        cluster_id = client._manager.cluster.cluster_id  # noqa: SLF001  # its public call asks a broker again
        if self._must_be is not None and cluster_id not in (None, self._must_be):
            self._replace(client)
            reason = f"the Kafka cluster {cluster_id} is there, and not {self._must_be}, which is being watched"
            raise self._fault(request, f"{reason}: see where the names of the bootstrap servers lead", changed=False)

    async def _exchange(
        self, client: KafkaAdminClient, request: Any, deadline: Deadline, broker: int | None, *, changes: bool
    ) -> Any:
        exchange = _Exchange(client._manager, request, broker, deadline, changes=changes)  # noqa: SLF001  # the one door to its insides
        try:
            async with time_limit(deadline.left_s()):
                return await _on_io_thread(client, exchange.run)
        except TimeoutError:
            was_sent = exchange.abandon()
            self._replace(client)  # it should have given up already: do not queue behind it
            raise self._fault(request, "no answer in time", changed=changes and was_sent) from None
        except (KafkaError, OSError) as problem:
            if isinstance(problem, NotSentError) and broker is None:
                self._replace(client)  # every broker it knows is gone: start again from the bootstrap list
            raise self._fault(request, repr(problem), changed=changes and exchange.was_sent) from problem

    async def _refresh(self, client: KafkaAdminClient, deadline: Deadline) -> None:
        """Ask a broker who the controller is; what goes wrong is found by the next request."""
        cluster = client._manager.cluster  # noqa: SLF001  # the one door to its insides
        with contextlib.suppress(KafkaError, OSError, TimeoutError):
            async with time_limit(deadline.left_s()):
                await _on_io_thread(client, cluster.refresh_metadata)

    async def close(self) -> None:
        """Close the client and wait for its thread for a moment; idempotent."""
        self._closed = True
        client: KafkaAdminClient | None = self._client
        self._client = None
        if client is not None:
            closed, _thread = in_daemon_thread(f"{self._purpose}-close", client.close)
            await asyncio.wait([closed], timeout=CONNECT_ATTEMPT_MS / 1000)

    async def _open(self, deadline: Deadline) -> KafkaAdminClient:
        assert not self._closed, f"the {self._purpose} lane to {self._bootstrap} is closed"
        while self._client is None:
            opening, is_ours = self._opening, False
            if opening is None or opening.done():
                opening, _thread = in_daemon_thread(f"{self._purpose}-open", lambda: self._bootstrapped(deadline))
                opening.add_done_callback(self._adopt)
                self._opening, is_ours = opening, True
            try:
                async with time_limit(deadline.left_s()):
                    return await asyncio.shield(opening)
            except (KafkaError, OSError, TimeoutError) as problem:
                if not is_ours and self._may_try_again(deadline):
                    continue  # it was somebody else's, who had less time
                raise ClusterUnavailableError(
                    f"no broker of {self._bootstrap} let Drover in ({problem!r}): check that the cluster runs and that"
                    " its bootstrap servers and security options are right"
                ) from problem
        return self._client

    def _may_try_again(self, deadline: Deadline) -> bool:
        return not self._closed and deadline.left_ms() > 0

    def _adopt(self, opening: "asyncio.Future[KafkaAdminClient]") -> None:
        """Keep a client that has been made, even if the caller has given up."""
        if opening.cancelled() or opening.exception() is not None:
            return
        self._client = opening.result()
        if self._closed:
            self._replace(opening.result())

    def _bootstrapped(self, deadline: Deadline) -> KafkaAdminClient:
        """Make a client, in short attempts: a bootstrap server that hangs must not use up the whole call."""
        while True:
            made: list[KafkaNetClient] = []
            failures: list[Exception] = []

            def remember(
                made: list[KafkaNetClient] = made, failures: list[Exception] = failures, **configs: object
            ) -> KafkaNetClient:
                made.append(KafkaNetClient(**configs))
                watch_handshakes(made[-1]._manager, failures.append)  # noqa: SLF001  # the one door to its insides
                return made[-1]

            try:
                return KafkaAdminClient(
                    **self._options,
                    bootstrap_servers=servers_to_ask(self._bootstrap),
                    bootstrap_timeout_ms=max(1, min(CONNECT_ATTEMPT_MS, deadline.left_ms())),
                    kafka_client=remember,
                )
            except KafkaConfigurationError as problem:
                raise ConfigurationError(f"client options for {self._bootstrap}: {problem}") from problem
            except KafkaError as problem:
                for half_made in made:  # its constructor leaves its I/O thread running when it fails
                    half_made.close()
                if (refused := next(filter(None, map(refusal, failures)), None)) is not None:
                    raise ClusterAccessError(
                        f"a broker of {self._bootstrap} {refused}: check security_protocol, ssl_cafile,"
                        " sasl_mechanism, sasl_plain_username and the password of this cluster"
                    ) from problem
                if deadline.left_ms() == 0:
                    raise

    def _replace(self, client: KafkaAdminClient) -> None:
        self._closing = [thread for thread in self._closing if thread.is_alive()]
        current = self._client
        if current is None or current is not client or len(self._closing) >= MAX_CLIENTS_CLOSING:
            return  # it was replaced already, or too many hang: keep what we have
        self._client = None
        _closed, thread = in_daemon_thread(f"{self._purpose}-close", current.close)
        self._closing.append(thread)

    def _fault(self, request: Any, reason: str, *, changed: bool) -> ClusterError:
        failure = f"{type(request).__name__} to {self._bootstrap}: {reason}"
        if changed:
            return OutcomeUnknownError(f"{failure}; it may have taken effect, so look before repeating it")
        return ClusterUnavailableError(failure)


class _Exchange:
    """One request on its way; `run` runs on the client's I/O thread, `abandon` on any other."""

    def __init__(self, manager: Any, request: Any, broker: int | None, deadline: Deadline, *, changes: bool) -> None:
        self._manager = manager
        self._request = request
        self._broker = broker
        self._deadline = deadline
        self._repeatable = broker is None and not changes
        self._lock = threading.Lock()
        self._abandoned = False
        self.was_sent = False

    def abandon(self) -> bool:
        """Give up; return whether the request had been sent. It will not be sent afterwards."""
        with self._lock:
            self._abandoned = True
            return self.was_sent

    async def run(self) -> Any:
        """Ask the first broker that accepts a connection; only a reading request goes on to the next one."""
        problem: object = "the cluster's metadata names no broker"
        cluster = self._manager.cluster
        if self._broker is not None and cluster.broker_metadata(self._broker) is None:
            await self._manager.wait_for(self._manager.call_soon(cluster.refresh_metadata), self._deadline.left_ms())
        for broker in self._candidates():
            try:
                connection = await self._connected(broker)
            except KafkaError as error:
                problem = error
                continue
            with self._lock:
                if self._abandoned or self._deadline.left_ms() == 0:
                    raise NotSentError("the deadline passed while connecting")
                self.was_sent = True
            # Kafka's client gives up a little earlier than the caller, so that only the connection is lost.
            timeout_ms = max(1, int(self._deadline.left_ms() * (0.5 if self._repeatable else 0.95)))
            try:
                return await connection.send_request(self._request, request_timeout_ms=timeout_ms)
            except (KafkaConnectionError, RequestTimedOutError) as error:
                if not self._repeatable:
                    raise
                problem = error
        raise NotSentError(f"no broker could be reached, last problem: {problem!r}")

    def _candidates(self) -> list[int]:
        """Return the brokers to try: healthy ones first, the controller first among them."""
        if self._broker is not None:
            return [self._broker]
        cluster = self._manager.cluster
        controller = None if cluster.controller is None else cluster.controller.node_id

        def rank(broker: int) -> tuple[bool, bool, bool, bool, int]:
            connection = self._manager._conns.get(broker)  # noqa: SLF001  # the one door to its insides
            connected = connection is not None and connection.connected and not connection.paused
            unconfirmed = not connected and (connection is not None or self._manager.connection_delay(broker) > 0)
            return (
                has_failed_lately(address_of(cluster.broker_metadata(broker))),
                unconfirmed,
                broker != controller,
                not connected,
                broker,
            )

        return sorted((node.node_id for node in cluster.brokers()), key=rank)

    async def _connected(self, broker: int) -> Any:
        timeout_ms = min(CONNECT_ATTEMPT_MS, self._deadline.left_ms())
        connection = self._manager.get_connection(broker, timeout_ms=timeout_ms)
        if connection.made_to != address_of(self._manager.cluster.broker_metadata(broker)):
            # Another broker may listen there by now, and answer in its place.
            connection.close(KafkaConnectionError(f"broker {broker} has another address now"))
            with contextlib.suppress(KafkaError):
                await self._manager.wait_for(connection.close_future, timeout_ms)
            connection = self._manager.get_connection(broker, timeout_ms=timeout_ms)
        await self._manager.wait_for(connection.init_future, timeout_ms)
        if not connection.connected or connection.paused:
            raise NotSentError(f"the connection to broker {broker} is not ready")
        return connection


def _came_from_another(answer: Any) -> bool:
    """Whether a broker that is not the controller has answered, and so did nothing; some answers say it per item.

    In ZooKeeper mode the answer to ElectLeaders says it of each partition, and of the whole that all is well.
    """
    elections = getattr(answer, "replica_election_results", None)
    if elections:
        return all(result.error_code == NOT_CONTROLLER for topic in elections for result in topic.partition_result)
    if hasattr(answer, "error_code"):
        return bool(answer.error_code == NOT_CONTROLLER)
    items = next((listed for name in _ITEMS if (listed := getattr(answer, name, None))), ())
    codes = {getattr(item, "error_code", NONE) for item in items}
    return codes == {NOT_CONTROLLER}


def _on_io_thread(client: KafkaAdminClient, work: Callable[[], Any]) -> "asyncio.Future[Any]":
    """Run a coroutine function on the client's I/O thread and hand its result to this loop."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    done = client._manager.call_soon(work)  # noqa: SLF001  # the one door to its insides
    done.add_callback(lambda value: deliver(loop, answer, lambda: answer.set_result(value)))
    done.add_errback(lambda problem: deliver(loop, answer, lambda: answer.set_exception(_as_error(client, problem))))
    return answer


def _as_error(client: KafkaAdminClient, problem: BaseException) -> BaseException:
    """Return the fault that ended a call; for a client that was closed meanwhile, always one of its connection.

    A client that is closed throws `GeneratorExit` into calls in flight, which in a task of ours would pass supervisors
    unseen; or they meet its closed event loop as a `RuntimeError`, which would be taken for a broken invariant.
    """
    is_closed = client._closed  # noqa: SLF001  # kafka-python shows it nowhere else
    return KafkaConnectionError("the client was closed meanwhile") if is_closed else problem
