"""How many bytes replicas copy in a stretch of model time, with broker speeds and throttles; pure integers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from events.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class CopyWork:
    """One replica that lacks bytes; the limits are the throttles that bind it, in bytes per second, or None."""

    partition: TopicPartition
    leader: int
    follower: int
    missing_bytes: int
    leader_limit: int | None
    follower_limit: int | None


def copied_bytes(
    work: Sequence[CopyWork], copy_bytes_per_second: int | None, started_ms: int, ended_ms: int
) -> Iterator[tuple[CopyWork, int]]:
    """Share each broker's budgets out in the order of `work`, one replica after the other.

    A budget is what a rate has let through by the end minus what it had by the start, so that many short stretches
    copy as much as one long one.
    """
    budgets: dict[tuple[str, int], int] = {}

    def budget(kind: str, broker: int, rate: int | None) -> int | None:
        if rate is None:
            return None
        return budgets.setdefault((kind, broker), rate * ended_ms // 1000 - rate * started_ms // 1000)

    for item in work:
        limits = (
            ("speed", item.follower, copy_bytes_per_second),
            ("follower throttle", item.follower, item.follower_limit),
            ("leader throttle", item.leader, item.leader_limit),
        )
        copied = item.missing_bytes
        for kind, broker, rate in limits:
            left = budget(kind, broker, rate)
            copied = copied if left is None else min(copied, left)
        for kind, broker, rate in limits:
            if rate is not None:
                budgets[kind, broker] -= copied
        yield item, copied
