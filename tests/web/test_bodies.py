"""Reading a request's body takes time in proportion to its size, however many pieces it arrives in."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from drover.web.bodies import read_body
from tests.growth import processor_seconds


class Said(msgspec.Struct):
    """A body."""

    text: str


class Pieces:
    """A body that comes in pieces of a few bytes."""

    def __init__(self, content: bytes, size: int) -> None:
        self._left = memoryview(content)
        self._size = size

    async def read(self, most: int) -> bytes:
        piece, self._left = self._left[: min(most, self._size)], self._left[min(most, self._size) :]
        return bytes(piece)


def request_of(content: bytes, size: int) -> Any:
    return SimpleNamespace(content=Pieces(content, size))


def seconds_for(pieces: int) -> float:
    """Return the processor time of reading a body in so many pieces of a hundred bytes."""
    text = "x" * (100 * pieces)
    content = msgspec.json.encode(Said(text))

    def read() -> None:
        body = asyncio.run(read_body(request_of(content, 100), Said, len(content)))
        assert len(body.text) == len(text)

    return processor_seconds(read)


def test_a_body_in_small_pieces_costs_its_pieces_and_not_the_square_of_them() -> None:
    """The page has one thread, on which everybody else waits meanwhile."""
    assert seconds_for(40_000) < 40 * seconds_for(4_000)


def test_a_body_of_the_bound_is_read_and_a_longer_one_is_not() -> None:
    content = msgspec.json.encode(Said("x"))
    found = asyncio.run(read_body(request_of(content, 1), Said, len(content)))
    assert found.text == "x"
    with pytest.raises(ValueError, match="at most"):
        asyncio.run(read_body(request_of(content, 1), Said, len(content) - 1))
