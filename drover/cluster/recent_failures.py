"""Addresses at which this process has recently failed to connect, so that its clients try other brokers first.

Each attempt at a hanging broker costs a second and a half; without this, every client of the process would repeat it.
"""

import time

# How long other addresses are preferred.
REMEMBERED_S = 5.0

Address = tuple[str, int]
_until: dict[Address, float] = {}


def note_failure(address: Address) -> None:
    """Record that a connection to this host and port did not become usable."""
    _until[address] = time.monotonic() + REMEMBERED_S


def has_failed_lately(address: Address) -> bool:
    """Whether a connection to this address has failed within the last `REMEMBERED_S` seconds."""
    return _until.get(address, 0.0) > time.monotonic()


def servers_to_ask(bootstrap: str) -> list[str]:
    """Return the bootstrap servers without recent failures, or all if each has failed; the client picks at random."""
    servers = bootstrap.split(",")
    return [server for server in servers if not has_failed_lately(_address(server))] or servers


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.strip().rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0
