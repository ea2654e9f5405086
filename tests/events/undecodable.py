"""Bytes for which msgspec raises faults of Python's: text that is not UTF-8, and values that are nested too deeply."""

from collections.abc import Callable

import pytest

# Stands in some text of what is to be spoilt.
TEXT = "AAAA"
# Python 3.14 goes as deep as its stack is.
_DEPTH = 900_000
DEEP_JSON = b'{"x":' + b"[" * _DEPTH + b"]" * _DEPTH + b"}"


def with_wrong_text(packed: bytes) -> bytes:
    """Flip bits of a text."""
    assert TEXT.encode() in packed
    return packed.replace(TEXT.encode(), b"AA\xffA")


def with_deep_field(packed: bytes) -> bytes:
    """Add a field that no reader knows to a small map in msgpack."""
    assert 0x80 <= packed[0] < 0x8F
    return bytes([packed[0] + 1]) + packed[1:] + b"\xa1x" + b"\x91" * _DEPTH + b"\xc0"


Spoil = Callable[[bytes], bytes]
EACH_SPOIL = pytest.mark.parametrize("spoil", [with_wrong_text, with_deep_field], ids=["text", "depth"])
EACH_JSON = pytest.mark.parametrize("data", [b'{"cluster":"\xff"}', DEEP_JSON, b"{"], ids=["text", "depth", "end"])
