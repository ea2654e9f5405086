"""The tables of leadership, healing and scheduling by a plain fold in Python, event by event."""

from collections import defaultdict
from typing import Any

from tests.spark.comparing import Rows
from tests.spark.oracle_limits import Limits

_OUTCOMES = {"elected": "elected", "not-needed": "not_needed", "refused": "refused"}


class Capabilities:
    """Feed it every event that counts, and how many partitions of its cluster move and wait after it."""

    def __init__(self) -> None:
        self.leaders: Any = defaultdict(lambda: defaultdict(int))
        self.listed: Rows = {}
        # Those that leave the list once their replicas are in sync, which is in no table.
        self.until_in_sync: set[tuple[str, int]] = set()
        self.chunks: Rows = defaultdict(dict)
        self.heals: dict[tuple[str, Any], list[int]] = {}
        self.budgets: Rows = defaultdict(dict)
        self.limits = Limits()
        self.used: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))

    def see(self, event: dict[str, Any], at_ms: int, used: tuple[int, int]) -> None:
        cluster, minute = event["cluster"], at_ms // 60_000 * 60_000
        self._leadership(event, self.leaders[cluster, minute])
        if event["type"] == "blacklist-set":
            self._list(event, at_ms)
        if event["type"].startswith("heal-"):
            self._heal(event, at_ms)
        if event["type"] in {"limits-set", "limits-changed"}:
            self.limits.see(event, at_ms)
        if used != self.used[cluster]:
            row = self.budgets[cluster, minute]
            row["in_flight_most"] = max(row.get("in_flight_most", 0), self.used[cluster][0], used[0])
            row |= {
                "in_flight_last": used[0],
                "pending_last": used[1],
                "limit_last": self.limits.most_in_flight(cluster),
            }
            self.used[cluster] = used

    @staticmethod
    def _leadership(event: dict[str, Any], row: Any) -> None:
        match event["type"]:
            case "leader-election-intended":
                row["intended"] += 1
            case "leader-election-ended":
                row[_OUTCOMES.get(event["outcome"], "unanswered")] += 1
            case "leader-orders-answered" if event["outcome"] in {"reordered", "electing"}:
                row["orders_changed"] += len(event["partitions"])
                row["orders_restored"] += len(event.get("restored", ()))
                row["intended"] += len(event["partitions"]) if event["outcome"] == "electing" else 0
            case "leader-elections-ended":
                row[_OUTCOMES[event["outcome"]]] += len(event["partitions"])
                row["orders_restored"] += len(event.get("restored", ()))
            case "leader-order-changed":
                row["orders_changed"] += 1
            case "leader-order-ended":
                row["orders_restored"] += event["why"] == "restored"
            case "leader-balance-begun":
                row["balances"] += 1
            case _:
                pass

    def _list(self, event: dict[str, Any], at_ms: int) -> None:
        entries = {entry["broker"]: entry for entry in event.get("entries", ())}
        cluster = event["cluster"]
        for (name, broker), row in self.listed.items():
            if name == cluster and broker not in event["brokers"] and row["ended_ms"] is None:
                row["ended_ms"] = at_ms
        for broker in event["brokers"]:
            entry = entries.get(broker, {})
            topics, until_ms = entry.get("topics"), entry.get("until_ms")
            if until_ms is None and entry.get("for_ms") is not None:
                until_ms = at_ms + entry["for_ms"]
            scope = (None if topics is None else ",".join(topics), until_ms)
            known, place = self.listed.get((cluster, broker)), (cluster, broker)
            is_alike = entry.get("until_in_sync", False) == (place in self.until_in_sync)
            if known and known["ended_ms"] is None and (known["topics"], known["until_ms"]) == scope and is_alike:
                continue
            (self.until_in_sync.add if entry.get("until_in_sync") else self.until_in_sync.discard)(place)
            self.listed[cluster, broker] = {
                "requester": event["by"],
                "reason": entry.get("reason") or event["reason"],
                "listed_ms": at_ms,
                "topics": scope[0],
                "until_ms": scope[1],
                "ended_ms": None,
            }

    def _heal(self, event: dict[str, Any], at_ms: int) -> None:
        cluster, heal = event["cluster"], event.get("heal")
        chunk = self.chunks[cluster, heal, event["chunk"]] if "chunk" in event else {}
        match event["type"]:
            case "heal-planned":
                self.heals[cluster, heal] = event["brokers"]
            case "heal-chunk-planned":
                brokers = ",".join(map(str, self.heals[cluster, heal]))
                chunk |= {"state": "planned", "planned_ms": at_ms, "partitions": len(event["assignments"])}
                chunk["brokers"] = brokers
            case "heal-chunk-begun":
                plan = event.get("plan")
                chunk |= {"state": "begun", "plan": plan, "begun_ms": at_ms, "bytes": event.get("bytes", 0)}
                chunk["skipped"] = len(event.get("skipped", ()))
                if plan is None:
                    chunk |= {"state": "ended", "ended_ms": at_ms}
            case "heal-chunk-taken-back":
                chunk |= {"state": "taken-back", "reason": event["why"]}
            case "heal-chunk-ended":
                chunk |= {"state": "ended", "ended_ms": at_ms}
                chunk |= {name: event.get(name, 0) for name in ("healed", "cancelled", "failed")}
            case "heal-ended":
                for (name, of_heal, _), row in self.chunks.items():
                    if (name, of_heal) == (cluster, heal) and row["state"] == "planned":
                        row |= {"state": "dropped", "ended_ms": at_ms, "reason": event["why"]}
            case _:
                pass

    def tables(self) -> dict[str, Rows]:
        return {
            "leader_movements": {key: dict(row) for key, row in self.leaders.items() if row},
            "listed_brokers": self.listed,
            "heal_chunks": dict(self.chunks),
            "budgets": dict(self.budgets),
            "limits": self.limits.rows,
        }
