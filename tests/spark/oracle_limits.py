"""The limits in force by a plain fold in Python: those of the settings, and those that commands have set over them."""

from collections import defaultdict
from typing import Any

from tests.spark.comparing import Rows

MOST = "max_partitions_in_flight"
# What an event leaves out; `repairs_by_itself` has an older name on the wire.
DEFAULTS = {
    "max_leader_movements": 1000,
    "stepping": "grow",
    "repairs_by_itself": False,
    "lazy_leadership": False,
    "balances_after_return": False,
    "adapts_to_health": False,
    "windows": None,
}
HEALING = {
    "failure_interval_ms": -1,
    "alarm_ms": 900_000,
    "chunk_partitions": 10,
    "mass_failure_brokers": 3,
    "mass_failure_percent": 20,
    "max_bytes_per_day": None,
    "flapping_returns": 3,
    "flapping_window_ms": 3_600_000,
    "rolls_back_on_return": False,
    "throttle_bytes_per_second": None,
    "disk_limit_percent": 85,
}

BUDGETS = (
    *("max_incoming_per_broker", "max_outgoing_per_broker"),
    *("max_replica_copies_in_flight", "max_bytes_in_flight", "max_moves_per_rack"),
)


class Limits:
    """Feed it every event about limits."""

    def __init__(self) -> None:
        self.settings: dict[str, dict[str, Any]] = {}
        self.commands: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.rows: Rows = {}

    def see(self, event: dict[str, Any], at_ms: int) -> None:
        cluster = event["cluster"]
        if event["type"] == "limits-set":
            self.settings[cluster] = _settings(event)
        commands = self.commands[cluster]
        for change in event.get("changed", ()):
            who = {"requester": event["by"], "reason": event["reason"], "since_ms": at_ms}
            commands[change["name"]] = {"value": change["value"], **who}
        for change in event.get("reset", ()):
            commands.pop(change["name"], None)
        for name, value in self.settings.get(cluster, {}).items():
            self._row(cluster, name, commands.get(name, {"value": value}), at_ms)

    def _row(self, cluster: str, name: str, holds: dict[str, Any], at_ms: int) -> None:
        has_healing = self.settings[cluster]["heal.failure_interval_ms"] is not None
        value = None if name.startswith("heal.") and not has_healing else holds["value"]
        row = {"value": None if value is None else str(value).lower()}
        row |= {who: holds.get(who) for who in ("requester", "reason")}
        known = self.rows.get((cluster, name), {})
        is_same = {one: known.get(one) for one in row} == row and known
        since_ms = holds.get("since_ms", known["since_ms"] if is_same else at_ms)
        self.rows[cluster, name] = {**row, "since_ms": since_ms}

    def most_in_flight(self, cluster: str) -> int:
        own = self.commands[cluster].get(MOST, {"value": self.settings.get(cluster, {}).get(MOST, 1250)})
        return int(own["value"])


def _settings(event: dict[str, Any]) -> dict[str, Any]:
    names = (MOST, "max_moves_per_broker", "max_replicas_per_step")
    found = {name: event[name] for name in names} | {name: event.get(name, value) for name, value in DEFAULTS.items()}
    found["repairs_by_itself"] = event.get("repairs_by_itself", False)
    budgets = event.get("budgets") or {}
    for name in BUDGETS:
        found[name] = budgets.get(name)
    healing = event.get("healing")
    for name, value in HEALING.items():
        found[f"heal.{name}"] = None if healing is None else healing.get(name, value)
    return found
