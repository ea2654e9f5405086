"""A direct connection that closes its socket when it fails, which kafka-python 3.0.12 leaves to the garbage collector.

Registered through kafka-python's own extension point for proxies: `proxy_url="direct://"` selects it.
"""

from typing import Any

from kafka.net.inet import KafkaNetSocket

DIRECT = "direct://"


class ClosingSocket(KafkaNetSocket):  # type: ignore[misc]  # kafka-python ships no types
    """Connects like kafka-python does without a proxy."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        """Connect, or close the socket however that ends."""
        connected = None
        try:
            connected = await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        finally:
            if connected is None:
                sock.close()
        return connected
