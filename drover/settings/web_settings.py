"""The settings of the page."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from drover.settings.addresses import parse_address


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The page: `listen` is where it is served (port 0: any free one).

    `hosts` are further names that browsers may ask for it by, such as that of a proxy before it; a request for any
    other host is refused, so that no foreign page can read this one.

    The page only reads, unless `writes` is true: then users may act on it whom an authenticating proxy names in the
    header `user_header`, such as X-Forwarded-User. The header is believed from the addresses in `proxies` alone, and
    becomes `by` of the commands.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    listen: str = "127.0.0.1:8160"
    hosts: tuple[str, ...] = ()
    writes: bool = False
    user_header: str = ""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")

    def __post_init__(self) -> None:
        """Refuse an address that cannot be listened on, and writes by nobody in particular."""
        parse_address(self.listen)
        if self.user_header and not re.fullmatch(r"[A-Za-z0-9-]+", self.user_header):
            raise ValueError(f"user_header must be the name of a header, and not {self.user_header!r}")
        if self.writes and not self.user_header:
            raise ValueError("writes needs user_header: the header in which the proxy before the page names the user")
        _ = self.networks

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return parse_address(self.listen)

    @property
    def networks(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        """The addresses of the proxies; one address is a network of one."""
        return tuple(ipaddress.ip_network(proxy) for proxy in self.proxies)
