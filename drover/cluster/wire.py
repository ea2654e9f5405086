"""A connection to a cluster: sends Kafka protocol requests through kafka-python and returns their outcomes.

Only this module touches kafka-python's internals. KafkaAdminClient runs all I/O on a thread of its own and accepts work
from other threads, so that this module never blocks: it hands requests to that thread and awaits them as asyncio
futures. It does not interpret the requests.
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

from drover.cluster.login import kafka_python_options
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
from drover.reasons import reason_of
from drover.threads import deliver, in_daemon_thread
from drover.time_limits import time_limit

CONNECT_ATTEMPT_MS = 1500
"""The time for a broker to accept a connection before the next one is tried."""

CONTROLLER_PAUSE_S = 0.1
"""The pause before the controller is looked up again."""

MAX_CLIENTS_CLOSING = 4
"""The most replaced clients that may still be closing; with more, no client is replaced."""

_ITEMS = ("topics", "results", "responses")
"""The names of the item lists of answers without an error code of their own."""

# kafka-python logs every refused connection; without a handler Python would print that to the operator's terminal.
logging.getLogger("kafka").addHandler(logging.NullHandler())

Result = TypeVar("Result")


class NotSentError(KafkaError):  # type: ignore[misc]  # kafka-python ships no types
    """The request had no effect: it was not sent, or it only reads and got no answer."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time on the monotonic clock by which a call must end."""

    ends_at: float

    @classmethod
    def after_ms(cls, duration_ms: int) -> "Deadline":
        """Return the deadline after this duration from now."""
        return cls(time.monotonic() + duration_ms / 1000)

    def left_s(self) -> float:
        """Return the remaining seconds, at least zero."""
        return max(0.0, self.ends_at - time.monotonic())

    def left_ms(self) -> int:
        """Return the remaining milliseconds, at least zero."""
        return int(self.left_s() * 1000)


class Connection:
    """Requests to a cluster over connections of their own, made lazily and replaced when they fail.

    Brokers handle one request per connection at a time, so requests that must not wait for a slow one need another
    connection. A client that hangs or whose brokers are all gone is replaced, so that a `Connection` can be used for
    ever.
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
            **kafka_python_options(client_options),
        }
        self._client: KafkaAdminClient | None = None
        self._opening: asyncio.Future[KafkaAdminClient] | None = None
        self._closing: list[threading.Thread] = []
        self._closed = False
        self._must_be: str | None = None

    def must_be(self, kafka_cluster_id: str) -> None:
        """Refuse to send requests to another cluster from now on.

        Connections look up the bootstrap servers at different times, and a name may by then lead to another cluster,
        while an older connection is still connected to the previous one.
        """
        self._must_be = kafka_cluster_id

    def learn_addresses(self, metadata: Any) -> None:
        """Use the broker addresses of this Metadata response from now on, unless another cluster sent it.

        kafka-python keeps addresses for five minutes, and would mistake two brokers that have swapped theirs for each
        other.
        """
        client = self._client
        if client is None:
            return
        manager = client._manager  # noqa: SLF001  # the only access to its internals
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
        """Ask a broker for all addresses, because another broker was not at its known address."""
        if self._client is not None:
            await self._refresh(self._client, deadline)

    async def send(self, request: Any, deadline: Deadline, *, broker: int | None = None, changes: bool = False) -> Any:
        """Send a protocol request and return the decoded response.

        Args:
            request: a kafka-python protocol object; its version is negotiated.
            deadline: when to give up, connecting included.
            broker: the broker that must answer; by default the controller if it is known, else any broker.
            changes: whether the request changes something, which decides the error.

        Raises:
            ConfigurationError: kafka-python rejects the client options. ClusterAccessError: the cluster refuses the
            password, or its certificate is not trusted. ClusterUnavailableError: it was not sent, it only reads and got
            no answer, no controller accepted it in time,
                or another cluster answers.
            OutcomeUnknownError: it changes something, was sent, and got no answer.
        """
        while True:
            client = await self._open(deadline)
            self._check_identity(client, request)
            answer = await self._exchange(client, request, deadline, broker, changes=changes)
            if broker is not None or not _came_from_another(answer):
                return answer
            # The request had no effect. The client would keep its outdated controller for five minutes.
            if deadline.left_s() < CONTROLLER_PAUSE_S:
                self._replace(client)
                raise self._fault(request, "its controller has moved, and no broker names the new one", changed=False)
            await asyncio.sleep(CONTROLLER_PAUSE_S)
            await self._refresh(client, deadline)

    def _check_identity(self, client: KafkaAdminClient, request: Any) -> None:
        """Refuse a client that is connected to another cluster; the next call looks up the bootstrap servers again."""
        cluster_id = client._manager.cluster.cluster_id  # noqa: SLF001  # the public method would ask a broker again
        if self._must_be is not None and cluster_id not in (None, self._must_be):
            self._replace(client)
            reason = f"Kafka cluster {cluster_id} answers instead of {self._must_be}, which was observed before"
            raise self._fault(request, f"{reason}: check the addresses of the bootstrap servers", changed=False)

    async def _exchange(
        self, client: KafkaAdminClient, request: Any, deadline: Deadline, broker: int | None, *, changes: bool
    ) -> Any:
        exchange = _Exchange(client._manager, request, broker, deadline, changes=changes)  # noqa: SLF001  # the only access to its internals
        try:
            async with time_limit(deadline.left_s()):
                return await _on_io_thread(client, exchange.run)
        except TimeoutError:
            was_sent = exchange.abandon()
            self._replace(client)  # it should have timed out already: do not queue behind it
            raise self._fault(request, "no answer in time", changed=changes and was_sent) from None
        except (KafkaError, OSError) as problem:
            if isinstance(problem, NotSentError) and broker is None:
                self._replace(client)  # all brokers that it knows are gone: start again from the bootstrap servers
            raise self._fault(request, reason_of(problem), changed=changes and exchange.was_sent) from problem

    async def _refresh(self, client: KafkaAdminClient, deadline: Deadline) -> None:
        """Ask a broker for the controller; if that fails, the next request reports the fault."""
        cluster = client._manager.cluster  # noqa: SLF001  # the only access to its internals
        with contextlib.suppress(KafkaError, OSError, TimeoutError):
            async with time_limit(deadline.left_s()):
                await _on_io_thread(client, cluster.refresh_metadata)

    async def close(self) -> None:
        """Close the client and wait briefly for its thread; idempotent."""
        self._closed = True
        client: KafkaAdminClient | None = self._client
        self._client = None
        if client is not None:
            closed, _thread = in_daemon_thread(f"{self._purpose}-close", client.close)
            await asyncio.wait([closed], timeout=CONNECT_ATTEMPT_MS / 1000)

    async def _open(self, deadline: Deadline) -> KafkaAdminClient:
        assert not self._closed, f"the {self._purpose} connection to {self._bootstrap} is closed"
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
                    continue  # another caller with an earlier deadline had started it
                raise ClusterUnavailableError(
                    f"Drover cannot connect to any broker of {self._bootstrap} ({reason_of(problem)}): check that the"
                    " cluster runs and that its bootstrap servers and security options are right"
                ) from problem
        return self._client

    def _may_try_again(self, deadline: Deadline) -> bool:
        return not self._closed and deadline.left_ms() > 0

    def _adopt(self, opening: "asyncio.Future[KafkaAdminClient]") -> None:
        """Keep a client once it has been created, even if the caller has given up."""
        if opening.cancelled() or opening.exception() is not None:
            return
        self._client = opening.result()
        if self._closed:
            self._replace(opening.result())

    def _bootstrapped(self, deadline: Deadline) -> KafkaAdminClient:
        """Create a client in short attempts, so that a hanging bootstrap server does not use up the whole deadline."""
        while True:
            made: list[KafkaNetClient] = []
            failures: list[Exception] = []

            def remember(
                made: list[KafkaNetClient] = made, failures: list[Exception] = failures, **configs: object
            ) -> KafkaNetClient:
                made.append(KafkaNetClient(**configs))
                watch_handshakes(made[-1]._manager, failures.append)  # noqa: SLF001  # the only access to its internals
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
                for half_made in made:  # a constructor that fails leaves its I/O thread running
                    half_made.close()
                mechanism = self._options.get("sasl_mechanism")
                refusals = filter(None, (refusal(failure, mechanism) for failure in failures))
                if (refused := next(refusals, None)) is not None:
                    raise ClusterAccessError(
                        f"a broker of {self._bootstrap} {refused}: check security_protocol, ssl_cafile and the"
                        " settings that begin with sasl_ of this cluster"
                    ) from problem
                if deadline.left_ms() == 0:
                    raise

    def _replace(self, client: KafkaAdminClient) -> None:
        self._closing = [thread for thread in self._closing if thread.is_alive()]
        current = self._client
        if current is None or current is not client or len(self._closing) >= MAX_CLIENTS_CLOSING:
            return  # it was replaced already, or too many clients hang
        self._client = None
        _closed, thread = in_daemon_thread(f"{self._purpose}-close", current.close)
        self._closing.append(thread)

    def _fault(self, request: Any, reason: str, *, changed: bool) -> ClusterError:
        failure = f"{type(request).__name__} to {self._bootstrap}: {reason}"
        if changed:
            return OutcomeUnknownError(
                f"{failure}; it may have taken effect, so observe the cluster before repeating it"
            )
        return ClusterUnavailableError(failure)


class _Exchange:
    """A request under way; `run` runs on the client's I/O thread, `abandon` on any other."""

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
        """Give up, so that the request is not sent any more; return whether it had been sent."""
        with self._lock:
            self._abandoned = True
            return self.was_sent

    async def run(self) -> Any:
        """Send the request to the first broker that accepts a connection; only reads are retried on the next one."""
        problem = "the cluster's metadata lists no broker"
        cluster = self._manager.cluster
        if self._broker is not None and cluster.broker_metadata(self._broker) is None:
            await self._manager.wait_for(self._manager.call_soon(cluster.refresh_metadata), self._deadline.left_ms())
        for broker in self._candidates():
            try:
                connection = await self._connected(broker)
            except KafkaError as error:
                problem = reason_of(error)
                continue
            with self._lock:
                if self._abandoned or self._deadline.left_ms() == 0:
                    raise NotSentError("the deadline passed while connecting")
                self.was_sent = True
            # kafka-python times out a little before the caller, so that only the connection is lost, not the client.
            timeout_ms = max(1, int(self._deadline.left_ms() * (0.5 if self._repeatable else 0.95)))
            try:
                return await connection.send_request(self._request, request_timeout_ms=timeout_ms)
            except (KafkaConnectionError, RequestTimedOutError) as error:
                if not self._repeatable:
                    raise
                problem = reason_of(error)
        raise NotSentError(f"no broker could be reached, last problem: {problem}")

    def _candidates(self) -> list[int]:
        """Return the brokers to try: healthy ones first, the controller first among them."""
        if self._broker is not None:
            return [self._broker]
        cluster = self._manager.cluster
        controller = None if cluster.controller is None else cluster.controller.node_id

        def rank(broker: int) -> tuple[bool, bool, bool, bool, int]:
            connection = self._manager._conns.get(broker)  # noqa: SLF001  # the only access to its internals
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
            # Another broker may listen at the old address by now.
            connection.close(KafkaConnectionError(f"broker {broker} has another address now"))
            with contextlib.suppress(KafkaError):
                await self._manager.wait_for(connection.close_future, timeout_ms)
            connection = self._manager.get_connection(broker, timeout_ms=timeout_ms)
        await self._manager.wait_for(connection.init_future, timeout_ms)
        if not connection.connected or connection.paused:
            raise NotSentError(f"the connection to broker {broker} is not ready")
        return connection


def _came_from_another(answer: Any) -> bool:
    """Whether a broker that is not the controller has answered, so that the request had no effect.

    Some answers say so per item. In ZooKeeper mode, the answer to ElectLeaders says so per partition, while its own
    code is 0.
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
    """Run a coroutine function on the client's I/O thread, and return its result as a future of this loop."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    done = client._manager.call_soon(work)  # noqa: SLF001  # the only access to its internals
    done.add_callback(lambda value: deliver(loop, answer, lambda: answer.set_result(value)))
    done.add_errback(lambda problem: deliver(loop, answer, lambda: answer.set_exception(_as_error(client, problem))))
    return answer


def _as_error(client: KafkaAdminClient, problem: BaseException) -> BaseException:
    """Return the error of a call; for a client that was closed meanwhile, always a connection error.

    Closing a client ends its calls in flight with `GeneratorExit`, which supervisors of our tasks would not see, or
    with a `RuntimeError` of its closed event loop, which would look like a broken invariant.
    """
    is_closed = client._closed  # noqa: SLF001  # no public attribute shows it
    return KafkaConnectionError("the client was closed meanwhile") if is_closed else problem
