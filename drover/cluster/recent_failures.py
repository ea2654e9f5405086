"""Addresses that did not let this process in lately: whoever can ask another broker asks that one first.

A broker that hangs costs a second and a half each time. Every client of a process would find that out for itself.
"""

import time

# For so long others are preferred.
REMEMBERED_S = 5.0

Address = tuple[str, int]
_until: dict[Address, float] = {}


def note_failure(address: Address) -> None:
    """Note that a connection to this host and port did not become usable."""
    _until[address] = time.monotonic() + REMEMBERED_S


def has_failed_lately(address: Address) -> bool:
    """Whether that was so within the last `REMEMBERED_S` seconds."""
    return _until.get(address, 0.0) > time.monotonic()


def servers_to_ask(bootstrap: str) -> list[str]:
    """Leave out servers that did not let us in lately, as long as there are others: the client picks one by chance."""
    servers = bootstrap.split(",")
    return [server for server in servers if not has_failed_lately(_address(server))] or servers


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.strip().rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0
