"""Workarounds for kafka-python 3.0.12: it leaks sockets, and hides why a connection failed.

A direct connection closes its socket when it fails, instead of leaving it to the garbage collector; registered through
kafka-python's own extension point for proxies: `proxy_url="direct://"` selects it.
"""

import ssl
from collections.abc import Callable
from typing import Any

from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError
from kafka.net.inet import KafkaNetSocket

DIRECT = "direct://"


class ClosingSocket(KafkaNetSocket):  # type: ignore[misc]  # kafka-python ships no types
    """A socket that connects as kafka-python does without a proxy."""

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


def watch_handshakes(manager: Any, on_failure: Callable[[Exception], None]) -> None:
    """Report why connections fail before they are usable; the client itself says only that it could not bootstrap.

    `manager` is a client's connection manager; `on_failure` is called on its I/O thread.
    """
    connect = manager.get_connection

    def watched(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.init_future.add_errback(on_failure)
        made = connection.connection_made
        connection.connection_made = lambda transport: made(_reading_to_the_end(transport))
        return connection

    manager.get_connection = watched


def _reading_to_the_end(transport: Any) -> Any:
    """Deliver a broker's last bytes: kafka-python drops what it reads together with the end of the stream."""
    receive = transport._sock_recv  # noqa: SLF001 - a broker that refuses a password says so and hangs up

    def receive_words_first() -> tuple[bytes, Exception | None]:
        data, error = receive()
        return (data, None) if data else (data, error)

    transport._sock_recv = receive_words_first  # noqa: SLF001 - see above
    return transport


def refusal(problem: Exception) -> str | None:
    """Return what was refused if trying again cannot help: a wrong password or certificate stays wrong."""
    if isinstance(problem, SaslAuthenticationFailedError):
        return "refuses the user or the password"
    if isinstance(problem, UnsupportedSaslMechanismError):
        return "does not take this sasl_mechanism"
    cause = problem.__context__  # kafka-python raises an error of its own while it handles this one
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"has a certificate that is not to be trusted ({cause.verify_message})"
    if isinstance(cause, ssl.SSLError):
        return f"does not speak TLS as asked ({cause.reason})"
    return None
