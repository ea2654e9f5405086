"""The bodies of requests and replies of the page: JSON of a known form and a bounded size."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from drover.events.undecodable import UNDECODABLE
from drover.events.words import said_of
from drover.time_limits import time_limit

Body = TypeVar("Body", bound=msgspec.Struct)
BODY_TIMEOUT_S = 30.0
# An HTTP status and a document.
Reply = tuple[int, Mapping[str, Any]]


class SlowBodyError(Exception):
    """The body of a request did not come in time."""


async def read_body(request: web.Request, kind: type[Body], most_bytes: int) -> Body:
    """Read and decode a request's body.

    Raises `ValueError` if it is too large, or not of this kind, and `SlowBodyError` after `BODY_TIMEOUT_S`.
    """
    # It may come in very many pieces; each is copied only once.
    content = bytearray()
    try:
        async with time_limit(BODY_TIMEOUT_S):
            while more := await request.content.read(most_bytes + 1 - len(content)):
                content += more
    except ConnectionError:
        # The error keeps this frame until garbage is collected, and the frame would keep what has come so far.
        content.clear()
        raise
    except TimeoutError:
        content.clear()
        raise SlowBodyError(f"the body of the request did not come within {BODY_TIMEOUT_S:g} s") from None
    if len(content) > most_bytes:
        raise ValueError(f"a request has at most {most_bytes:,} bytes")
    try:
        return msgspec.json.decode(content, type=kind)
    except UNDECODABLE as error:
        raise ValueError(said_of(error)) from None
