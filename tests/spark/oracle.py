"""The tables by a plain fold in Python: another decoder (msgpack), another shape (one pass, dictionaries), no Spark.

Nothing of `spark` is imported: a mistake in the job's decoding, judging or folding is not repeated here.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgpack

from tests.spark.comparing import Rows
from tests.spark.kafka_rows import Stored
from tests.spark.oracle_capabilities import Capabilities
from tests.spark.oracle_validity import UNREADABLE, Validity
from tests.spark.oracle_words import (
    AFTER_ANSWER,
    AFTER_INTENT,
    AFTER_NOTHING,
    ENDS,
    NO_MATTER,
    UNBLOCKING,
    brokers_of,
    held,
    is_apart,
    minute,
    numbers,
    size_before,
    text,
    weight,
)


class Oracle:
    """Feed it every record of both topics, partition by partition, in order."""

    def __init__(self) -> None:
        self.validity = Validity()
        self.capabilities = Capabilities()
        self.moves: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.plans: Rows = defaultdict(dict)
        self.plan_counts = numbers()
        self.durations: Any = defaultdict(list)
        self.requests = numbers()
        self.refusals: Any = defaultdict(int)
        self.takeovers = numbers()
        self.undecodable: Any = defaultdict(list)
        self.ended: Rows = {}
        self.index = 0
        self.weights: dict[tuple[str, int, str], list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)])
        self.queue: dict[tuple[str, str, int], str] = {}
        self.rates: dict[tuple[str, int], list[tuple[int, Any]]] = defaultdict(list)
        self.intended: dict[tuple[str, int], Any] = {}
        self.samples: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)

    def read(self, records: Iterable[Stored], samples_topic: str) -> "Oracle":
        for record in records:
            if record.topic == samples_topic:
                self._sample(record)
            else:
                self._record(record)
        return self

    # -- records of the log

    def _record(self, stored: Stored) -> None:
        verdict, record = self.validity.judge(stored)
        if verdict == UNREADABLE:
            self.undecodable["log", stored.partition].append(stored.offset)
        elif verdict != "genesis":
            counted = self.takeovers[stored.partition, minute(stored.appended_ms)]
            counted[verdict] += 1
            events = record.get("events", ())
            if verdict in {"batches", "fenced_batches"}:
                counted[verdict.replace("batches", "events")] += len(events)
            if verdict == "batches":
                further = {(one["cluster"], one["id"]) for one in events if one["type"] == "command-advanced"}
                for outcome in record.get("outcomes", ()):
                    self._outcome(outcome, record["at_ms"], further)
                for self.index, event in enumerate(events):
                    self._event(event, record["at_ms"], stored)

    def _outcome(self, outcome: dict[str, Any], at_ms: int, further: set[tuple[str, str]]) -> None:
        who = (outcome["cluster"], minute(at_ms), outcome["by"])
        if (outcome["cluster"], outcome["id"]) in further:
            # A further part of an outcome: the first one was counted.
            further.discard((outcome["cluster"], outcome["id"]))
            self._refused(outcome, who)
            return
        column = {"accepted": "accepted", "refused": "refused", "duplicate": "repeated"}.get(outcome["verdict"])
        self.requests[who][f"{column}_commands" if column else "held"] += 1
        self._refused(outcome, who)

    def _refused(self, outcome: dict[str, Any], who: tuple[str, int, str]) -> None:
        for refusal in outcome.get("refusals", ()):
            self.refusals[(*who, refusal["code"])] += 1

    def _event(self, event: dict[str, Any], at_ms: int, stored: Stored) -> None:
        tag, cluster = event["type"], event["cluster"]
        if tag.startswith("plan-"):
            self._plan_event(event, (cluster, event["plan"]), at_ms)
        elif tag.startswith("broker-throttle") and tag != "broker-throttle-adopted":
            self._throttle_event(event, (cluster, event["broker"]), at_ms)
        elif tag.startswith("queue-entry"):
            self._queue_event(event, (cluster, event["topic"], event["partition"]))
        elif "partition" in event and not tag.startswith("leader-"):
            self._partition_event(event, (cluster, event["topic"], event["partition"]), at_ms, stored)
        states = [move["state"] for key, move in self.moves.items() if key[0] == cluster and "ended_ms" not in move]
        pending = states.count("pending")
        self.capabilities.see(event, at_ms, (len(states) - pending, pending))
        for key, plan in self.plans.items():
            # A cancelled plan never says that it has finished.
            counts = self.plan_counts[key]
            left = counts["accepted"] + counts["waiting"] - sum(counts[end.replace("-", "_")] for end in ENDS.values())
            if key[0] == cluster and not left and "cancelled_ms" in plan:
                plan.setdefault("finished_ms", at_ms)

    def _plan_event(self, event: dict[str, Any], key: tuple[str, str], at_ms: int) -> None:
        plan = self.plans[key]
        match event["type"]:
            case "plan-opened":
                plan.clear()  # the name may have been an earlier plan's
                self.plan_counts[key].clear()
                plan |= {"requester": event["by"], "reason": event["reason"], "opened_ms": at_ms}
            case "plan-throttle-set" | "plan-throttle-raised":
                plan["throttle"] = event["bytes_per_second"]
            case "plan-cancelled":
                plan["cancelled_ms"] = at_ms
            case "plan-finished":
                plan["finished_ms"] = at_ms
            case "plan-throttle-cleared":
                plan["throttle"] = None
            case tag:
                assert tag in {"plan-extended", "plan-paused", "plan-resumed"}, event

    def _throttle_event(self, event: dict[str, Any], key: tuple[str, int], at_ms: int) -> None:
        match event["type"]:
            case "broker-throttle-intended":
                self.intended[key] = None if event.get("release") else tuple(event["rates"].values())
            case "broker-throttle-set":
                self.rates[key].append((at_ms, self.intended.pop(key)))
            case tag:
                assert tag in {"broker-throttle-left", "broker-throttle-changed"}, event
                self.intended.pop(key, None)
                self.rates[key].append((at_ms, tuple(event["found"].values()) if tag.endswith("changed") else None))

    def _queue_event(self, event: dict[str, Any], key: tuple[str, str, int]) -> None:
        if event["type"] == "queue-entry-added":
            self.queue[key] = event["plan"]
            self.plan_counts[key[0], event["plan"]]["waiting"] += 1
        else:
            counts = self.plan_counts[key[0], self.queue.pop(key)]
            counts["waiting"] -= 1
            counts["withdrawn"] += event["why"] != "started"

    def _partition_event(self, event: dict[str, Any], key: tuple[str, str, int], at_ms: int, stored: Stored) -> None:
        tag = event["type"]
        if tag in {"reassignment-created", "reassignment-adopted"}:
            adopted = tag == "reassignment-adopted"
            self.moves[key] = {
                "plan": event["plan"],
                "state": "rolling-back" if adopted else "pending",
                "began_ms": at_ms,
                "since_ms": at_ms,
                "original": event["original"],
                "cancelled": adopted,
                "bytes_copied": 0,
                "bytes_unknown": 0,
                "target": event["original"] if adopted else event["target"],
                "step": 1 if adopted else None,
                "current": event["expected"] if adopted else event["original"],
                "lists": (event["expected"], event["replicas"], None) if adopted else None,
            }
            counts = self.plan_counts[key[0], event["plan"]]
            counts["accepted"] += 1
            now = set(event["expected"] if adopted else event.get("current") or event["original"])
            counts["replicas_planned"] += len(set(self.moves[key]["target"]) - now)
        move = self.moves.get(key)
        if move is None or move["state"] in ENDS.values() or tag.startswith("unmanaged-move-"):
            return
        before, weighed = move["state"], weight(move)
        requester = self.plans[key[0], move["plan"]].get("requester", "")
        if tag in ENDS:
            self._end(event, key, move, at_ms, stored)
        else:
            self._step(event, move, key[0])
        if move["state"] != before:
            self.durations[key[0], before].append(at_ms - move["since_ms"])
            move["since_ms"] = at_ms
        for sign, broker_sides in ((-1, weighed), (1, weight(move))):
            for side in broker_sides if weighed != weight(move) else ():
                changes = self.weights[key[0], side[1], side[0]]
                changes.append((at_ms, changes[-1][1] + sign))
        move |= {"shard": stored.partition, "offset": stored.offset, "requester": requester}

    def _step(self, event: dict[str, Any], move: dict[str, Any], cluster: str) -> None:
        tag, call, cancelled = str(event["type"]), str(event.get("call")), move["cancelled"]
        # A cancel that was adopted is no answer to a call: what keeps the move from going on is as it was.
        is_adopted = tag == "call-accepted" and call == "cancel" and event.get("adopted")
        if tag in UNBLOCKING and not is_adopted:
            move["reason"] = move["detail"] = None
        if tag == "step-prepared" or (tag == "call-intended" and call == "step"):
            move["step"] = event.get("step", 0)
            leader = event.get("leader")
            leader = None if leader is None or leader < 0 else leader
            move["lists"] = (event["expected"], event["replicas"], leader)
        match tag:
            case "step-prepared":
                move["state"] = "prepared"
            case "step-postponed" if event["step"] == 1 and not (move.get("returning") or move.get("unresolved")):
                move |= {"state": "pending", "step": None, "lists": None}
            case "step-postponed":
                move |= {"state": "confirmed", "step": event["step"] - 1, "lists": None}
            case "call-intended":
                move["state"] = AFTER_INTENT[call]
            case "call-accepted" if is_adopted:
                pass  # nothing was under way: what comes next is as it was
            case "call-accepted" | "call-outcome-lost":
                move["state"] = "rolling-back" if call == "step" and cancelled else AFTER_ANSWER[call]
                if tag == "call-outcome-lost" and call != "cancel":
                    move["unresolved"] = True
            case "call-rejected" | "call-lapsed":
                move["state"] = "rolling-back" if call == "step" and cancelled else AFTER_NOTHING[call]
            case "step-confirmed":
                move["state"] = "rolling-back" if cancelled else "confirmed"
                move["current"] = event["replicas"]
                move["bytes_copied"] += event.get("bytes_copied", 0)
                self._unknown(event, move, cluster)
                self.plan_counts[cluster, move["plan"]]["bytes_copied"] += event.get("bytes_copied", 0)
            case "rollback-requested" | "stop-requested":
                move |= {"cancelled": True, "returning": False}
                if not move["state"].endswith("intended"):
                    move["state"] = "rolling-back"
            case "rollback-skipped":
                between = move["lists"] is None or move["current"] == move["lists"][1]
                move |= {"cancelled": False, "state": "confirmed" if between else "copying"}
            case "return-begun" | "step-taken-back":
                move |= {"cancelled": False, "state": "confirmed", "current": event["replicas"], "lists": None}
                move["returning"] = move.get("returning") or tag == "return-begun"
            case "late-change-found":
                move["unresolved"] = False
            case "reassignment-blocked":
                move["reason"], move["detail"] = event["why"], event["detail"]
            case "target-replaced" | "replacement-withdrawn":
                self._replacement(event, move, cluster)
            case _:
                assert tag in {"reassignment-created", "reassignment-adopted", "cancel-withdrawn", *NO_MATTER}, event

    def _unknown(self, event: dict[str, Any], move: dict[str, Any], cluster: str) -> None:
        if event.get("bytes_unknown") and not move["bytes_unknown"]:
            move["bytes_unknown"] = 1
            self.plan_counts[cluster, move["plan"]]["bytes_unknown"] += 1

    def _replacement(self, event: dict[str, Any], move: dict[str, Any], cluster: str) -> None:
        if move.get("next") is not None:
            self.plan_counts[cluster, move["next"]]["waiting"] -= 1
            self.plan_counts[cluster, move["next"]]["withdrawn"] += event["type"] == "replacement-withdrawn"
        move["next"] = event["plan"] if event["type"] == "target-replaced" else None
        if move["next"] is not None:
            self.plan_counts[cluster, move["next"]]["waiting"] += 1

    def _end(
        self, event: dict[str, Any], key: tuple[str, str, int], move: dict[str, Any], at_ms: int, stored: Stored
    ) -> None:
        cluster, plan, state = key[0], move["plan"], ENDS[event["type"]]
        requester = self.plans[cluster, plan].get("requester", "")
        counts = self.plan_counts[cluster, plan]
        counts[state.replace("-", "_")] += 1
        copied = max(event.get("bytes_copied", 0), move["bytes_copied"])
        counts["bytes_copied"] += copied - move["bytes_copied"]
        self._unknown(event, move, cluster)
        if move.get("next") is not None:
            self.plan_counts[cluster, move["next"]]["waiting"] -= 1
        self.requests[cluster, minute(at_ms), requester][state.replace("-", "_")] += 1
        self.durations[cluster, state].append(at_ms - move["began_ms"])
        move |= {"state": state, "ended_ms": at_ms, "bytes_copied": copied}
        move |= {"reason": event.get("why"), "detail": event.get("detail")}
        self.ended[(*key, at_ms, stored.offset, self.index)] = {
            **{name: move[name] for name in ("plan", "state", "began_ms", "bytes_copied", "bytes_unknown", "reason")},
            "requester": requester,
            "original": text(move["original"]),
            "target": text(move["target"]),
        }

    # -- samples

    def _sample(self, stored: Stored) -> None:
        try:
            assert stored.value is not None
            sample = msgpack.unpackb(stored.value)
            assert sample["kind"] in {"progress", "projection", "worker"}
        except (AssertionError, ValueError, TypeError, msgpack.UnpackException):
            self.undecodable["samples", stored.partition].append(stored.offset)
            return
        if sample["kind"] != "progress":
            return
        known = self.samples[sample["cluster"], sample["topic"], sample["partition"]]
        sample |= {"appended": stored.appended_ms, "at_ms": min(sample["at_ms"], stored.appended_ms)}
        last = known[-1] if known and not is_apart(known[-1], sample) else None
        if last is None or (sample["epoch"], sample["at_ms"]) > (last["epoch"], last["at_ms"]):
            known.append(sample)

    # -- tables

    def tables(self) -> dict[str, Rows]:
        return {
            "reassignments": {key: self._reassignment(move) for key, move in self.moves.items()},
            "plans": {key: self._plan(key) for key in self.plans.keys() | self.plan_counts.keys()},
            "durations": self._histogram(),
            "requests": {key: {**row, "held": 0} for key, row in self.requests.items()},
            "refusals": {key: {"refusals": count} for key, count in self.refusals.items()},
            "takeovers": {key: dict(row) for key, row in self.takeovers.items() if row},
            "undecodable": {
                key: {"records": len(offsets), "last_offset": max(offsets)} for key, offsets in self.undecodable.items()
            },
            "ended": self.ended,
            "throttles": {key: self._throttle(changes) for key, changes in self.rates.items()},
            "samples": {key: self._transfer(samples) for key, samples in self.samples.items()},
            "brokers": self._brokers(),
            **self.capabilities.tables(),
        }

    def _reassignment(self, move: dict[str, Any]) -> dict[str, Any]:
        names = ("plan", "requester", "state", "since_ms", "began_ms", "ended_ms", "step", "reason", "detail")
        row = {name: move.get(name) for name in (*names, "bytes_copied", "bytes_unknown", "shard", "offset")}
        adding = [broker for side, broker in weight(move) if side == "in"]
        leader = move["lists"][2] if move.get("lists") else None
        return {
            **row,
            "original": text(move["original"]),
            "target": text(move["target"]),
            "adding": text(adding),
            "leader": leader,
        }

    def _plan(self, key: Any) -> dict[str, Any]:
        counts = self.plan_counts[key]
        planned = counts["accepted"] + counts["waiting"] + counts["withdrawn"]
        return {**self.plans[key], **counts, "partitions_planned": planned}

    def _histogram(self) -> Rows:
        found: Any = defaultdict(list)
        for (cluster, state), durations in self.durations.items():
            for duration in durations:
                found[cluster, state, math.floor(math.log2(max(1, duration)) * 8)].append(duration)
        return {
            key: {"durations": len(some), "total_ms": sum(some), "longest_ms": max(some)} for key, some in found.items()
        }

    @staticmethod
    def _throttle(changes: list[tuple[int, Any]]) -> dict[str, Any]:
        (since_ms, rates), lasted = changes[-1], 0
        for (start, there), (end, _) in itertools.pairwise(changes):
            lasted += end - start if there and any(there) else 0
        leader, follower = rates or (None, None)
        return {
            "leader_rate": leader,
            "follower_rate": follower,
            "since_ms": since_ms,
            "throttled_ms": lasted,
            "changes": len(changes),
        }

    @staticmethod
    def _transfer(samples: list[dict[str, Any]]) -> dict[str, Any]:
        last = samples[-1]
        run = [last]
        for one in reversed(samples[:-1]):
            is_same = one["step"] == last["step"] and brokers_of(one) == brokers_of(last)
            if not is_same or is_apart(one, run[-1]) or one["at_ms"] >= run[-1]["at_ms"]:
                break
            run.append(one)
        run.reverse()
        grown = run[0]["at_ms"]
        for one, after in itertools.pairwise(run):
            grown = after["at_ms"] if after["bytes_done"] > one["bytes_done"] else grown
        recent = [one for one in run if one["at_ms"] >= last["at_ms"] - 15_000]
        span = last["at_ms"] - recent[0]["at_ms"]
        rate = closing = None
        if span >= 500:
            left = [one["bytes_total"] - one["bytes_done"] for one in (recent[0], last)]
            rate = (last["bytes_done"] - recent[0]["bytes_done"]) / span * 1000
            closing = (left[0] - left[1]) / span * 1000
        names = ("epoch", "at_ms", "step", "bytes_done", "bytes_total")
        return {**{name: last[name] for name in names}, "rate": rate, "closing_rate": closing, "grown_ms": grown}

    def _brokers(self) -> Rows:
        found: Rows = defaultdict(dict)
        for (cluster, broker, side), changes in self.weights.items():
            for (_, before), (at_ms, now) in itertools.pairwise(changes):
                row = found[cluster, broker, minute(at_ms)]
                row[f"moves_{side}_most"] = max(row.get(f"moves_{side}_most", 0), before, now)
                row[f"moves_{side}_last"] = now
        for (cluster, _, _), samples in self.samples.items():
            for number, after in enumerate(samples):
                for broker, size in held(after).items():
                    gained = max(0, size - size_before(samples, number, broker))
                    sides = [(broker, "bytes_in"), (after.get("leader"), "bytes_out")] if gained else []
                    for one, column in (side for side in sides if side[0] is not None):
                        row = found[cluster, one, minute(after["at_ms"])]
                        row[column] = row.get(column, 0) + gained
        return dict(found)
