"""The words of the plain fold: states after events, and sums by key."""

from collections import defaultdict
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


def minute(at_ms: int) -> int:
    return at_ms // 60_000 * 60_000


def numbers() -> Any:
    return defaultdict(lambda: defaultdict(int))
