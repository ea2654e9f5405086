"""PURE: parse and check addresses and timeouts of settings."""

import re

# The protocols have 32 bits for it.
LONGEST_TIMEOUT_MS = 2**31 - 1


def check_addresses(name: str, addresses: str) -> None:
    """Raise `ValueError`, with the setting's `name`, unless this is `host:port[,host:port...]`."""
    for address in addresses.split(","):
        host, colon, port = address.strip().rpartition(":")
        is_plain = re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", host) is not None
        if not (
            colon and is_plain and _has_labels(host) and port.isascii() and port.isdecimal() and 0 < int(port) <= 65535
        ):
            raise ValueError(f"{name} must be host:port[,host:port...], such as kafka-1:9092, and not {addresses!r}")


def check_session_timeout(milliseconds: int) -> None:
    """Raise `ValueError` for a `session_timeout_ms` that does not fit a request of Kafka or ZooKeeper."""
    if not 1000 <= milliseconds <= LONGEST_TIMEOUT_MS:
        raise ValueError(f"session_timeout_ms must be at least 1000 and at most {LONGEST_TIMEOUT_MS}")


def parse_address(listen: str) -> tuple[str, int]:
    """Parse host and port to listen on. Raises `ValueError`."""
    host, colon, port = listen.rpartition(":")
    if not (_has_labels(host) and host.isprintable() and colon and port.isdecimal() and int(port) <= 65535):
        raise ValueError(f"listen must be host:port, such as 127.0.0.1:8150, and not {listen!r}")
    return host.strip("[]"), int(port)


def _has_labels(host: str) -> bool:
    """Whether every label of a host name has a valid length; Python's resolver raises `UnicodeError` otherwise."""
    return all(0 < len(label) < 64 for label in host.removesuffix(".").split("."))
