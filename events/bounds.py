"""The bounds of a command's texts and lists, and the characters they may have, wherever the command comes from.

Texts are cut to these lengths before they are kept, logged or counted. docs/security.md lists the numbers.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from drover.events.commands import (
    Alter,
    BalanceLeaders,
    Blacklist,
    Cancel,
    ChangeLimits,
    Command,
    Demote,
    Repair,
    RequestRefused,
    Restore,
    RestoreThrottles,
)

MAX_BY_BYTES = 256
MAX_REASON_BYTES = 1024
MAX_PARTITIONS = 10_000
MAX_REPLICAS = 256
MAX_BROKERS = 10_000
MAX_TOPICS = 1000
MAX_LIMITS = 100
# The author and the prefix of the ids of commands from ZooKeeper's intake, reserved for it.
INTAKE_BY = "zookeeper"
INTAKE_ID_PREFIX = "znode-"
# The description of a fault of a record.
MAX_DETAIL_BYTES = 500

# C0 and C1 controls, line separators, surrogates, and characters that are not shown (Unicode's property
# Default_Ignorable_Code_Point, with the marks that turn the direction of text), so that different texts look different.
# Joiners and variation selectors are left out, since some languages and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
# Names of authors do without them, and without Braille's blank, which is no white space.
_JOINERS = re.compile("[\u200c\u200d\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def fault_of(command: Command) -> str | None:
    """Say which text or list of a command is out of bounds; None if all are within them."""
    return (
        _fault_of_text("by", command.by, MAX_BY_BYTES)
        or _fault_of_by(command.by)
        or _fault_of_text("reason", command.reason, MAX_REASON_BYTES)
        or _fault_of_name(command)
        or _fault_of_lists(command)
    )


def visible(text: str) -> str:
    """Write invisible and misleading characters as escapes, so that a terminal shows the text as it is.

    Line feeds stay. Every text for a person passes through here, since a log may hold texts from before the bounds
    above.
    """
    return _UNSEEN.sub(_escaped, text) if _UNSEEN.search(text) else text


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character == "\n":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shortened(text: str, most_bytes: int = MAX_DETAIL_BYTES) -> str:
    """Cut a text to `most_bytes` of UTF-8, and replace invisible and misleading characters with `?`."""
    # A character has at least one byte, so the rest would be cut off anyway.
    seen = _UNSEEN.sub("?", text[: most_bytes + 1])
    encoded = seen.encode()
    if len(encoded) <= most_bytes:
        return seen
    return encoded[: most_bytes - 3].decode(errors="ignore") + "…"


def shortened_name(name: str) -> str:
    """Bring the name of an author within the bounds of `by`: cut, with `?` for characters that it may not have."""
    return shortened(" ".join(_JOINERS.sub("?", name).split()), MAX_BY_BYTES)


def _fault_of_text(name: str, text: str, most_bytes: int) -> str | None:
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    if size > most_bytes:
        return f"{name} has {size} bytes, at most {most_bytes} are allowed"
    if text.isascii() and text.isprintable() and text.strip():
        return None  # nearly every text
    if _UNSEEN.search(text):
        return f"{name} has a control character, or one that is not shown: leave it out"
    if not any(character.isprintable() and not character.isspace() for character in text):
        return f"{name} is blank"
    return None


def _fault_of_by(by: str) -> str | None:
    if not by.isascii() and _JOINERS.search(by):
        return "by has a character that is not shown: two names must not look alike"
    if " " in by or not by.isascii():
        return (
            None if " ".join(by.split()) == by else "by may have single spaces between its words, and no other blanks"
        )
    return None


def _fault_of_name(command: Command) -> str | None:
    is_intake, is_so_named = command.by == INTAKE_BY, command.id.startswith(INTAKE_ID_PREFIX)
    if is_so_named and not is_intake:
        return f"ids that begin with {INTAKE_ID_PREFIX} are those of requests in ZooKeeper: choose another id"
    if is_intake and not is_so_named:
        return f"{INTAKE_BY} is who asks in ZooKeeper: write your own name as by"
    return None


def _fault_of_count(names: str, noun: str, count: int, most: int) -> str | None:
    return f"{names} {count} {noun}, at most {most} are allowed" if count > most else None


def _fault_of_lists(command: Command) -> str | None:
    # By type: `isinstance` takes ten times as long with structs, and most commands have no lists.
    fault = _FAULT_OF_LISTS.get(type(command))
    return None if fault is None else fault(command)


def _fault_of_request(command: RequestRefused) -> str | None:
    if command.by != INTAKE_BY:
        return f"only the intake of ZooKeeper may send {command.__struct_config__.tag}"
    return _fault_of_text("path", command.path, MAX_REASON_BYTES) or _fault_of_text(
        "detail", command.detail, MAX_DETAIL_BYTES
    )


def _too_many_partitions(count: int) -> str:
    return f"it names {count} partitions, at most {MAX_PARTITIONS} are allowed: split the command"


def _fault_of_targets(command: Alter) -> str | None:
    if len(command.partitions) > MAX_PARTITIONS:
        return _too_many_partitions(len(command.partitions))
    for target in command.partitions:
        longest = max(len(target.replicas or ()), len(target.original_replicas or ()))
        if longest > MAX_REPLICAS:
            return _fault_of_count("a replica list names", "brokers", longest, MAX_REPLICAS)
    return _fault_of_topics(target.topic for target in command.partitions)


def _fault_of_cancel(command: Cancel) -> str | None:
    topics = command.topics or ()
    if command.partitions is not None and len(command.partitions) > MAX_PARTITIONS:
        return _too_many_partitions(len(command.partitions))
    too_many = _fault_of_count("topics names", "topics", len(topics), MAX_TOPICS)
    return too_many or _fault_of_topics((*(partition.topic for partition in command.partitions or ()), *topics))


def _fault_of_repair(command: Repair) -> str | None:
    if command.partitions is not None and len(command.partitions) > MAX_PARTITIONS:
        return _too_many_partitions(len(command.partitions))
    return _fault_of_topics(partition.topic for partition in command.partitions or ())


def _fault_of_leaders(command: Demote | Restore | BalanceLeaders) -> str | None:
    topics = command.topics or ()
    return _fault_of_count("topics names", "topics", len(topics), MAX_TOPICS) or _fault_of_topics(topics)


def _fault_of_limits(command: ChangeLimits) -> str | None:
    return _fault_of_count("it names", "limits", len(command.values) + len(command.reset), MAX_LIMITS)


def _fault_of_throttles(command: RestoreThrottles) -> str | None:
    return (
        _fault_of_count("brokers names", "brokers", len(command.brokers), MAX_BROKERS)
        or _fault_of_count("topics names", "topics", len(command.topics), MAX_TOPICS)
        or _fault_of_topics(leftover.topic for leftover in command.topics)
    )


def _fault_of_list_of_brokers(command: Blacklist) -> str | None:
    for entry in command.entries:
        fault = _fault_of_text("reason", entry.reason, MAX_REASON_BYTES) if entry.reason else None
        if fault is not None:
            return fault
    if fault := _fault_of_topics(topic for entry in command.entries for topic in entry.topics or ()):
        return fault
    topics = max((len(entry.topics or ()) for entry in command.entries), default=0)
    brokers = len(command.brokers) + len(command.entries)
    return _fault_of_count("brokers names", "brokers", brokers, MAX_BROKERS) or _fault_of_count(
        "an entry names", "topics", topics, MAX_TOPICS
    )


def _fault_of_topics(topics: Iterable[str]) -> str | None:
    if any(_UNSEEN.search(topic) for topic in set(topics)):
        return "the name of a topic has a control character"
    return None


_FAULT_OF_LISTS: Mapping[type[Command], Callable[[Any], str | None]] = {
    RequestRefused: _fault_of_request,
    Blacklist: _fault_of_list_of_brokers,
    Alter: _fault_of_targets,
    Cancel: _fault_of_cancel,
    Repair: _fault_of_repair,
    Demote: _fault_of_leaders,
    Restore: _fault_of_leaders,
    BalanceLeaders: _fault_of_leaders,
    ChangeLimits: _fault_of_limits,
    RestoreThrottles: _fault_of_throttles,
}
