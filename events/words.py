"""Faults of a message in plain words, with places as people count them, instead of the decoder's words."""

import json
import re
from typing import Any

_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_PLACE = re.compile(r"^(.*?)(?: - at `(?:key` in `)?\$(.*)`)?$", re.DOTALL)
_KINDS = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "a map", "bytes": "bytes", "null": "null", "None": "null",
}  # fmt: skip
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Object missing required field `(.+)`"), r"the field {0} is missing"),
    (
        re.compile(r"Object contains unknown field `after`"),
        "`after` is no field of it: wait for the outcome of the other command, and send this one then",
    ),
    (re.compile(r"Object contains unknown field `(.+)`"), r"{0} is no field of it"),
    (re.compile(r"Invalid value '?(.+?)'?"), r"{0} is none of the values that are known"),
    (re.compile(r"Expected `str` matching regex '(.+)'"), r"the text must have the form {0}"),
    (re.compile(r"Expected `(?:str|array|bytes)` of length >= 1"), r"it must not be empty"),
    (re.compile(r"Expected `(?:str|array|bytes)` of length <= (\d+)"), r"it is longer than {0}"),
    (re.compile(r"Expected `(?:int|float)` >= (-?\d+)"), r"it must be at least {0}"),
    (re.compile(r"Expected `(?:int|float)` <= (-?\d+)"), r"it must be at most {0}"),
    (re.compile(r"Input data was truncated"), r"it ends too early"),
    (re.compile(r"(?:JSON|MessagePack data) is malformed: (.+)"), r"it is not well formed: {0}"),
)
_EXPECTED = re.compile(r"Expected `(.+?)`, got `(.+?)`")


def said_of(error: Exception) -> str:
    """Turn a decoder's message into a sentence that says what is wrong, and where."""
    match = _PLACE.match(str(error))
    assert match is not None, "the pattern takes every text"
    message, place = match.groups()
    where = _where(place or "")
    return f"{where}: {_in_words(message)}" if where else _in_words(message)


def fault_of_json(payload: bytes) -> str | None:
    """Name a fault of JSON that decoders miss or misname: a byte order mark, a repeated name, half of a character.

    None without such a fault, and for a payload that is no JSON, which the decoder names.
    """
    mark = mark_of(payload)
    if mark is not None:
        return mark
    try:
        value = json.loads(payload.decode(), object_pairs_hook=_once)
    except _TwiceError as error:
        return f"{error} appears twice in one map: which one was meant?"
    except (ValueError, RecursionError):
        return None
    half = _half_of_a_character(value)
    return None if half is None else f"\\u{ord(half):04x} is half of a character: write both halves, or the character"


def mark_of(payload: bytes) -> str | None:
    """Say that a payload begins with a byte order mark; None if it does not."""
    for mark, encoding in _MARKS.items():
        if payload.startswith(mark):
            return f"it begins with the byte order mark of {encoding}: leave that out, and write UTF-8"
    return None


class _TwiceError(Exception):
    """A name appears twice in one map; never leaves this module."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        # One pass, because a map may have a hundred thousand names.
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _TwiceError(name)
            seen.add(name)
    return mapping


def _half_of_a_character(message: object) -> str | None:
    waiting = [message]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            half = re.search("[\ud800-\udfff]", value)
            if half is not None:
                return half[0]
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
    return None


def _in_words(message: str) -> str:
    expected = _EXPECTED.fullmatch(message)
    if expected is not None:
        wanted, got = expected.groups()
        return f"it must be {_kinds(wanted)}, and is {_kinds(got)}"
    for pattern, words in _PHRASES:
        match = pattern.fullmatch(message)
        if match is not None:
            return words.format(*match.groups())
    return message


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name.strip(), name.strip()) for name in names.split("|"))


def _where(place: str) -> str:
    """Write `.partitions[0].replicas[...]` as people say it."""
    words: list[str] = []
    for number, name in re.findall(r"\[(\d+|\.\.\.)\]|\.?([^.\[\]]+)", place):
        if name:
            words.append(name)
        elif number.isdecimal():
            words.append(f"entry {int(number) + 1}")
    return ", ".join(words)
