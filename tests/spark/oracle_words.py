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
WEIGHTLESS = {"queued", "restoring", "restore-intended"}
AFTER_ANSWER = {"step": "copying", "cancel": "cancelling", "restore": "restoring"}
AFTER_INTENT = {"step": "intended", "cancel": "cancel-intended", "restore": "restore-intended"}
AFTER_NOTHING = {"step": "prepared", "cancel": "rolling-back", "restore": "cancelling"}

NO_MATTER = {"reassignment-unblocked", "late-change-found", "foreign-move-seen", "foreign-move-ended"}
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


def brokers_of(sample: Any) -> set[int]:
    return set(held(sample))


def text(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
