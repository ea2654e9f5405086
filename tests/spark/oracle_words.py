"""The words of the plain fold: states after events, and sums by key."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

ENDS = {
    "reassignment-completed": "completed",
    "reassignment-rolled-back": "rolled-back",
    "reassignment-stopped": "stopped",
    "reassignment-failed": "failed",
}
WEIGHTLESS = {"pending", "restoring", "restore-intended"}
AFTER_ANSWER = {"step": "copying", "cancel": "cancelling", "restore": "restoring"}
AFTER_INTENT = {"step": "intended", "cancel": "cancel-intended", "restore": "restore-intended"}
AFTER_NOTHING = {"step": "prepared", "cancel": "rolling-back", "restore": "cancelling"}

NO_MATTER = {"reassignment-unblocked", "late-change-found", "unmanaged-move-seen", "unmanaged-move-ended"}
UNBLOCKING = {
    *("step-prepared", "call-intended", "call-accepted", "step-confirmed", "rollback-requested", "stop-requested"),
    *("rollback-skipped", "return-begun", "step-taken-back", "reassignment-unblocked"),
}


def minute(at_ms: int) -> int:
    return at_ms // 60_000 * 60_000


def numbers() -> Any:
    return defaultdict(lambda: defaultdict(int))


def held(sample: Any) -> dict[int, int]:
    return {one["broker"]: one["bytes"] for one in sample["adding"]}


def is_apart(sample: Any, later: Any) -> bool:
    """Whether two samples are so far apart in Kafka's time that the later one begins anew."""
    return bool(later["appended"] - sample["appended"] > 600_000)


def size_before(samples: list[Any], number: int, broker: int) -> int:
    """Return a replica's size before a sample; samples from while its broker was down do not count."""
    found, step = 0, samples[number]["step"]
    for before in range(number - 1, -1, -1):
        sample, later = samples[before], samples[before + 1]
        is_over = before < number - 1 and {sample["step"], later["step"]} != {step}
        if found or is_over or is_apart(sample, later) or broker not in held(sample):
            break
        found = held(sample)[broker]
    return found


def brokers_of(sample: Any) -> set[int]:
    return {broker for broker, size in held(sample).items() if size}


def weight(move: dict[str, Any]) -> list[tuple[str, int]]:
    """The brokers that a move weighs on, each with its side."""
    lists, state = move.get("lists"), move["state"]
    if lists is None or state in WEIGHTLESS or state in ENDS.values() or move["current"] == lists[1]:
        return []
    adding = [broker for broker in lists[1] if broker not in lists[0]]
    source = [("out", lists[2])] if adding and lists[2] is not None else []
    return [("in", broker) for broker in adding] + source


def text(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
