"""The bodies of requests and replies of the page: JSON of a known form and a bounded size."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from drover.events.undecodable import UNDECODABLE
from drover.events.words import said_of

Body = TypeVar("Body", bound=msgspec.Struct)
# An HTTP status and a document.
Reply = tuple[int, Mapping[str, Any]]


async def read_body(request: web.Request, kind: type[Body], most_bytes: int) -> Body:
    """Read and decode a request's body. Raises `ValueError` if it is too large, or not of this kind."""
    # It may come in very many pieces; each is copied only once.
    content = bytearray()
    while more := await request.content.read(most_bytes + 1 - len(content)):
        content += more
        if len(content) > most_bytes:
            raise ValueError(f"a request has at most {most_bytes:,} bytes")
    try:
        return msgspec.json.decode(content, type=kind)
    except UNDECODABLE as error:
        raise ValueError(said_of(error)) from None
