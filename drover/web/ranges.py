"""PURE: many partitions in few words: those of a topic as ranges of numbers."""

from collections import defaultdict
from collections.abc import Iterable

from drover.events.partitions import TopicPartition


def ranges(keys: Iterable[TopicPartition]) -> list[dict[str, str]]:
    """Return `{topic, partitions}` by topic; `partitions` is such as `0-82, 84`, and names every one of them once."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for key in keys:
        numbers[key.topic].add(key.partition)
    return [{"topic": topic, "partitions": _ranges(sorted(found))} for topic, found in sorted(numbers.items())]


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
