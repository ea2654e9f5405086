"""PURE: the words about brokers that live and that Drover cannot reach, for every place that names one."""

from collections.abc import Iterable

LISTENER_REMEDY = "add that listener, or give Drover a bootstrap that all brokers offer"


def unreachable_in_words(brokers: Iterable[int]) -> str:
    """Name brokers that are unreachable, say what that means, and what to do about it."""
    names = ", ".join(map(str, sorted(brokers)))
    return (
        f"broker {names} is unreachable: it lives, but does not offer the listener by which Drover connects; "
        f"{LISTENER_REMEDY}"
    )


def unreachable_sentence(brokers: Iterable[int]) -> str:
    """Say the same as a whole sentence."""
    words = unreachable_in_words(brokers)
    return f"{words[0].upper()}{words[1:]}."
