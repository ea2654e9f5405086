"""Who asks for a write: the user whom an authenticating proxy names, in a request that only the page itself can make.

All of it must hold: the request comes from a proxy that is believed, which names one user; a browser sent it from this
very origin; it is JSON; and it carries the token that this process gave to this user.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

TOKEN_HEADER = "X-Drover-Token"  # noqa: S105 - the name of a header

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK_NETWORKS: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))


@dataclass(frozen=True, slots=True)
class Denied:
    """The reason why a request may not write, as an HTTP status and in words."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """Knows the users of a page whose proxy names them in `user_header`, and is at one of `proxies`."""

    user_header: str
    proxies: Sequence[Network]
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def user_of(self, request: web.Request) -> str | Denied:
        """Name the user of a request."""
        if not is_within(request.remote, self.proxies):
            return Denied(
                403, f"{request.remote} is not a proxy of this page: users are known through web.proxies only"
            )
        names = request.headers.getall(self.user_header, [])
        if len(names) != 1 or not names[0].strip():
            return Denied(401, f"the proxy must name one user in the header {self.user_header}, and named {len(names)}")
        name = names[0].strip()
        if not name.isprintable():
            # Bytes that are no UTF-8 arrive as lone surrogates.
            return Denied(401, f"the name in the header {self.user_header} is not UTF-8, or not all of it can be seen")
        return name

    def token(self, user: str) -> str:
        """Return the token that this user must send along; it is good for as long as this process runs."""
        return hmac.new(self._key, user.encode(), hashlib.sha256).hexdigest()

    def writer_of(self, request: web.Request) -> str | Denied:
        """Name the user of a request that would write, if it may."""
        user = self.user_of(request)
        if isinstance(user, Denied):
            return user
        stranger = stranger_of(request)
        if stranger is not None:
            return stranger
        token = request.headers.get(TOKEN_HEADER, "").encode(errors="surrogatepass")
        if not hmac.compare_digest(token, self.token(user).encode()):
            return Denied(403, "the token is not that of this user and this process: load the page again")
        return user

    def session(self, request: web.Request) -> dict[str, Any]:
        """Return what the page needs to know before it offers to act."""
        user = self.user_of(request)
        if isinstance(user, Denied):
            return {"user": None, "token": None, "why": user.why}
        return {"user": user, "token": self.token(user), "why": None}


def stranger_of(request: web.Request) -> Denied | None:
    """Say why a request with a body cannot come from this very page; None if it can."""
    if urlsplit(request.headers.get("Origin", "")).netloc.lower() != request.host.lower():
        return Denied(
            403,
            "the request does not come from this page: its Origin is not the host that it asks for. A proxy before the "
            "page must pass on Host as the browser sent it, port included",
        )
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return Denied(403, "the request comes from another page")
    if request.content_type != "application/json":
        return Denied(415, "what the page sends is application/json")
    return None


def is_from_other_site(request: web.Request) -> bool:
    """Whether a browser says that a page of another site makes this request; programs say nothing of it."""
    return request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}


def is_within(address: str | None, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of these networks; an IPv4 address may be written as an IPv6 one."""
    peer = _address(address)
    return peer is not None and any(peer in network for network in networks)


def _address(text: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text or "")
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return found if mapped is None else mapped
