"""The bytes that replicas copy in a stretch of model time, by broker speeds and throttles; in integers."""

from collections.abc import Sequence
from dataclasses import dataclass

from drover.events.partitions import TopicPartition

Budget = tuple[str, int]


@dataclass(frozen=True, slots=True)
class CopyWork:
    """One replica that lacks bytes; the limits are the throttles that apply to it, in bytes per second, or None."""

    partition: TopicPartition
    leader: int
    follower: int
    missing_bytes: int
    leader_limit: int | None
    follower_limit: int | None


def copied_bytes(
    work: Sequence[CopyWork], copy_bytes_per_second: int | None, started_ms: int, ended_ms: int
) -> list[tuple[CopyWork, int]]:
    """Share each broker's budgets evenly; the share that a replica does not need goes to the others.

    A budget is the bytes that a rate allows up to the end minus those up to the start, so that many short stretches
    copy as much as a long one. A remainder goes to the first of `work`.
    """
    left: dict[Budget, int] = {}
    bound: list[tuple[Budget, ...]] = []
    for item in work:
        limits = (
            (("speed", item.follower), copy_bytes_per_second),
            (("follower throttle", item.follower), item.follower_limit),
            (("leader throttle", item.leader), item.leader_limit),
        )
        for budget, rate in limits:
            if rate is not None and budget not in left:
                left[budget] = rate * ended_ms // 1000 - rate * started_ms // 1000
        bound.append(tuple(budget for budget, rate in limits if rate is not None))
    copied = [0 if budgets else item.missing_bytes for item, budgets in zip(work, bound, strict=True)]
    hungry = [place for place, item in enumerate(work) if bound[place] and item.missing_bytes]
    while hungry := [place for place in hungry if _missing(work, copied, place) and _room(left, bound[place])]:
        sharing: dict[Budget, int] = {}
        for budget in (budget for place in hungry for budget in bound[place]):
            sharing[budget] = sharing.get(budget, 0) + 1
        for place in hungry:
            fair = min(max(1, left[budget] // sharing[budget]) for budget in bound[place])
            taken = min(fair, _missing(work, copied, place), _room(left, bound[place]))
            copied[place] += taken
            for budget in bound[place]:
                left[budget] -= taken
                sharing[budget] -= 1
    return list(zip(work, copied, strict=True))


def _missing(work: Sequence[CopyWork], copied: Sequence[int], place: int) -> int:
    return work[place].missing_bytes - copied[place]


def _room(left: dict[Budget, int], budgets: tuple[Budget, ...]) -> int:
    return min(left[budget] for budget in budgets)
