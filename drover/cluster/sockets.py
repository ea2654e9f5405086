"""Workarounds for kafka-python 3.0.12, which leaks sockets, waits for ever, and hides why a connection failed.

A direct connection closes its socket when it fails, instead of leaving it to the garbage collector. It is registered
through kafka-python's extension point for proxies; `proxy_url="direct://"` selects it.
"""

import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError
from kafka.net import manager as connecting
from kafka.net.inet import KafkaNetSocket
from kafka.net.transport import KafkaSSLTransport

from drover.cluster.login import NoCredentialsError
from drover.cluster.recent_failures import note_failure

DIRECT = "direct://"
HANDSHAKE_S = 1.5
"""The time for the TLS handshake after a broker has accepted a connection."""


# What a broker is shown, by the SASL mechanism; else it is a user and a password.
_SHOWN: Mapping[object, str] = {"OAUTHBEARER": "the token", "GSSAPI": "the Kerberos ticket"}


class ClosingSocket(KafkaNetSocket):  # type: ignore[misc]  # kafka-python ships no types
    """A socket that connects directly, as kafka-python does without a proxy."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        """Connect, or close the socket if that fails."""
        connected = None
        try:
            connected = await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        finally:
            if connected is None:
                sock.close()
        return connected


class ClosingTransport(KafkaSSLTransport):  # type: ignore[misc]  # untyped base class: kafka-python ships no types
    """kafka-python's TLS, with a timeout for the handshake, which closes the socket if it fails.

    kafka-python has no timeout for this step: with a broker that hangs in it, bootstrapping never reaches the next
    server, and the client never reconnects to the broker after its return.
    """

    async def handshake(self) -> None:
        """Do the TLS handshake, or close the socket."""
        timeout_at = time.monotonic() + HANDSHAKE_S
        is_agreed = False
        try:
            while not is_agreed:
                try:
                    self._sock.do_handshake()
                    is_agreed = True
                except ssl.SSLWantReadError:
                    await self._net.wait_read(self._sock, timeout_at=timeout_at)
                except ssl.SSLWantWriteError:
                    await self._net.wait_write(self._sock, timeout_at=timeout_at)
        finally:
            if not is_agreed:
                self.close()


# Replaced for every client of this process, because kafka-python has no extension point for TLS transports.
connecting.KafkaSSLTransport = ClosingTransport


def watch_handshakes(manager: Any, on_failure: Callable[[Exception], None]) -> None:
    """Report why connections fail before they are usable; the client's own error has no reason.

    `manager` is a client's connection manager; `on_failure` is called on its I/O thread. Each connection gets an
    attribute `made_to` with its host and port.
    """
    connect = manager.get_connection

    def watched(node_id: Any, *arguments: Any, **options: Any) -> Any:
        connection = connect(node_id, *arguments, **options)
        if hasattr(connection, "made_to"):
            return connection
        connection.made_to = address_of(manager.cluster.broker_metadata(node_id))
        connection.init_future.add_errback(on_failure)
        connection.init_future.add_errback(lambda _: note_failure(connection.made_to))
        made = connection.connection_made
        connection.connection_made = lambda transport: made(_reading_to_the_end(transport))
        return connection

    manager.get_connection = watched


def address_of(node: Any) -> tuple[str, int]:
    """Return the host and port of a broker in Metadata."""
    return node.host, node.port


def move_brokers(manager: Any, moved: Mapping[int, Any]) -> None:
    """Let a client use new addresses for these brokers, by id; runs on its I/O thread."""
    manager.cluster._brokers = {**manager.cluster._brokers, **moved}  # noqa: SLF001  # it has no public way
    for broker in moved:
        manager.reset_backoff(broker)


def _reading_to_the_end(transport: Any) -> Any:
    """Deliver a broker's last bytes; kafka-python drops bytes that it reads together with the end of the stream."""
    receive = transport._sock_recv  # noqa: SLF001 - a broker that refuses a password says so and hangs up

    def receive_words_first() -> tuple[bytes, Exception | None]:
        data, error = receive()
        return (data, None) if data else (data, error)

    transport._sock_recv = receive_words_first  # noqa: SLF001 - see above
    return transport


def refusal(problem: Exception, mechanism: object = None) -> str | None:
    """Return the reason of a permanent failure, such as a wrong password or certificate; None if a retry may help.

    `mechanism` is the SASL mechanism of the connection.
    """
    if isinstance(problem, NoCredentialsError):
        return str(problem.args[0])
    if isinstance(problem, SaslAuthenticationFailedError):
        return f"refuses {_SHOWN.get(mechanism, 'the user or the password')}"
    if isinstance(problem, UnsupportedSaslMechanismError):
        return "does not support this sasl_mechanism"
    cause = problem.__context__  # kafka-python raises an error of its own while it handles the original one
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"has a certificate that is not trusted ({cause.verify_message})"
    if isinstance(cause, ssl.SSLError):
        return f"does not speak TLS ({cause.reason})"
    return None
