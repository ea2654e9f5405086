"""The settings of the page, and how an address to listen on is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


def parse_address(listen: str) -> tuple[str, int]:
    """Read `host:port`. Raises `ValueError`."""
    host, colon, port = listen.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) <= 65535):
        raise ValueError(f"listen must be host:port, such as 127.0.0.1:8150, and not {listen!r}")
    return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The page: `listen` is where it is served (port 0: any free one).

    `hosts` are further names that browsers may ask for it by, such as that of a proxy before it; a request for any
    other host is refused, so that no foreign page can read this one.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    listen: str = "127.0.0.1:8160"
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an address that cannot be listened on."""
        parse_address(self.listen)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return parse_address(self.listen)
