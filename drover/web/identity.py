"""The user behind a write: named by an authenticating proxy, in a request that only the page itself can make.

All of these must hold: the request comes from a trusted proxy, which names one user; a browser sent it from this
origin; it is JSON; and it carries the token that this process gave to this user.
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
    """The reason why a request may not write: an HTTP status and a text."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Authorizer:
    """Identifies the users of the page, whom one of the trusted `proxies` names in `user_header`."""

    user_header: str
    proxies: Sequence[Network]
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def user_of(self, request: web.Request) -> str | Denied:
        """Return the user of a request."""
        if not is_within(request.remote, self.proxies):
            return Denied(
                403, f"{request.remote} is not a proxy of this page: only those in web.proxies may name users"
            )
        names = request.headers.getall(self.user_header, [])
        if len(names) != 1 or not names[0].strip():
            return Denied(401, f"the proxy must name one user in the header {self.user_header}, and named {len(names)}")
        name = names[0].strip()
        if not name.isprintable():
            # Bytes that are not UTF-8 arrive as lone surrogates.
            return Denied(401, f"the name in the header {self.user_header} is not UTF-8, or has invisible characters")
        return name

    def token(self, user: str) -> str:
        """Return the token that this user must send with each write; it is valid while this process runs."""
        return hmac.new(self._key, user.encode(), hashlib.sha256).hexdigest()

    def writer_of(self, request: web.Request) -> str | Denied:
        """Return the user of a write, or the reason why it is not allowed."""
        user = self.user_of(request)
        if isinstance(user, Denied):
            return user
        stranger = stranger_of(request)
        if stranger is not None:
            return stranger
        token = request.headers.get(TOKEN_HEADER, "").encode(errors="surrogatepass")
        if not hmac.compare_digest(token, self.token(user).encode()):
            return Denied(403, "the token belongs to another user or an earlier process: load the page again")
        return user

    def session(self, request: web.Request) -> dict[str, Any]:
        """Return the user and token that the page needs to offer commands, or the reason why it may not."""
        user = self.user_of(request)
        if isinstance(user, Denied):
            return {"user": None, "token": None, "why": user.why}
        return {"user": user, "token": self.token(user), "why": None}


def stranger_of(request: web.Request) -> Denied | None:
    """Return the reason why a request with a body does not come from this page; None if it does."""
    if urlsplit(request.headers.get("Origin", "")).netloc.lower() != request.host.lower():
        return Denied(
            403,
            "the request does not come from this page: its Origin differs from its Host. A proxy in front of the page "
            "must pass on the browser's Host header, port included",
        )
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return Denied(403, "the request comes from another page")
    if request.content_type != "application/json":
        return Denied(415, "the body must be application/json")
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
        address = ipaddress.ip_address(text or "")
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped
