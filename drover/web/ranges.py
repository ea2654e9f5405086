"""PURE: many partitions as short text: the numbers of each topic as ranges."""

from collections import defaultdict
from collections.abc import Iterable

from drover.events.partitions import TopicPartition


def ranges(keys: Iterable[TopicPartition]) -> list[dict[str, str]]:
    """Return `{topic, partitions}` by topic; `partitions` are ranges such as `0-82, 84`, without repetitions."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for key in keys:
        numbers[key.topic].add(key.partition)
    return [
        {"topic": topic, "partitions": _ranges(sorted(partitions))} for topic, partitions in sorted(numbers.items())
    ]


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
