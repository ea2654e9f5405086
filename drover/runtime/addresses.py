"""PURE: addresses as settings write them."""

import re


def check_addresses(name: str, addresses: str) -> None:
    """Refuse anything but `host:port[,host:port...]`. Raises `ValueError` that calls it `name`."""
    for address in addresses.split(","):
        host, colon, port = address.strip().rpartition(":")
        is_plain = re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", host) is not None
        if not (colon and is_plain and port.isascii() and port.isdecimal() and 0 < int(port) <= 65535):
            raise ValueError(f"{name} must be host:port[,host:port...], such as kafka-1:9092, and not {addresses!r}")


def parse_address(listen: str) -> tuple[str, int]:
    """Read host and port to listen on. Raises `ValueError`."""
    host, colon, port = listen.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) <= 65535):
        raise ValueError(f"listen must be host:port, such as 127.0.0.1:8150, and not {listen!r}")
    return host.strip("[]"), int(port)
