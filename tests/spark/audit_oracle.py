"""An audit by a plain fold in Python: msgpack, dictionaries, one pass; nothing of `spark` is imported."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgpack

from tests.spark.kafka_rows import Stored

Row = dict[str, Any]
BEGIN = {"reassignment-created", "reassignment-adopted"}
END = {
    "reassignment-completed": "completed",
    "reassignment-rolled-back": "rolled-back",
    "reassignment-stopped": "stopped",
    "reassignment-failed": "failed",
}
BESIDE = {
    "queue-entry-added",
    "queue-entry-removed",
    "unmanaged-move-seen",
    "unmanaged-move-ended",
    "late-change-found",
}


class Batch:
    """One batch that counts."""

    def __init__(self, shard: int, offset: int, fields: Row) -> None:
        self.shard, self.offset, self.at_ms = shard, offset, int(fields["at_ms"])
        self.outcomes: list[Row] = fields.get("outcomes", [])
        self.events: list[Row] = fields.get("events", [])


def valid(records: Iterable[Stored]) -> Iterator[Batch]:
    """Yield what counts; each shard's records in their order."""
    epochs: dict[int, int] = {}
    tokens: dict[int, bytes] = {}
    for record in records:
        assert record.value is not None
        fields = msgpack.unpackb(record.value)
        shard = record.partition
        if fields["kind"] == "acquire" and fields["epoch"] == epochs.get(shard, 0) + 1:
            epochs[shard], tokens[shard] = fields["epoch"], fields["token"]
        if fields["kind"] == "batch" and fields["token"] == tokens.get(shard):
            yield Batch(shard, record.offset, fields)


class AuditOracle:
    """The rows of an audit of everything decided from `since_ms` up to `until_ms`, or of offsets by shard."""

    def __init__(
        self,
        records: Iterable[Stored],
        since_ms: int | None = None,
        until_ms: int | None = None,
        offsets: dict[int, tuple[int, int]] | None = None,
    ) -> None:
        self.commands: list[Row] = []
        self.refusals: list[Row] = []
        self.plans: dict[tuple[str, str], Row] = {}
        self._moves: dict[tuple[str, str, int], Row] = {}
        self._ended: list[Row] = []
        for batch in valid(records):
            if offsets is not None:
                first, last = offsets.get(batch.shard, (1, -1))
                is_over, is_in = batch.offset > last, first <= batch.offset <= last
            else:
                is_over = until_ms is not None and batch.at_ms > until_ms
                is_in = not is_over and (since_ms is None or batch.at_ms >= since_ms)
            if not is_over:
                self._take(batch, is_in=is_in)
        self.reassignments = [*self._ended, *self._moves.values()]

    def _take(self, batch: Batch, *, is_in: bool) -> None:
        advanced = {(one["cluster"], one["id"]) for one in batch.events if one["type"] == "command-advanced"}
        if is_in:
            for outcome in batch.outcomes:
                name = (outcome["cluster"], outcome["id"])
                self._outcome(batch, outcome, is_further=name in advanced)
                advanced.discard(name)
        for event in batch.events:
            if event["type"] == "plan-opened":
                self.plans[event["cluster"], event["plan"]] = {"by": event["by"], "reason": event["reason"]}
            elif "partition" in event and event["type"] not in BESIDE and not event["type"].startswith("leader-"):
                self._event(batch, event, is_in=is_in)

    def _outcome(self, batch: Batch, outcome: Row, *, is_further: bool) -> None:
        refusals = outcome.get("refusals", [])
        named = {"at_ms": batch.at_ms, "shard": batch.shard, "offset": batch.offset, "id": outcome["id"]}
        counts = {name: len(outcome.get(name, [])) for name in ("accepted", "unchanged")} | {"refused": len(refusals)}
        same = [one for one in self.commands if one["id"] == outcome["id"] and one["verdict"] != "duplicate"]
        if is_further and same:
            for name, count in counts.items():
                same[-1][name] += count
        else:
            verdict = "part" if is_further else outcome["verdict"]
            if verdict != "duplicate" and same and same[-1]["verdict"] == "held":
                self.commands.remove(same[-1])  # now it is decided
            self.commands.append(
                named
                | {"command": outcome["type"], "by": outcome["by"], "verdict": verdict}
                | counts
                | {"plan": outcome.get("plan")}
            )
        self.refusals += [
            named
            | {"command": outcome["type"], "code": refusal["code"], "detail": refusal["detail"]}
            | {"topic": refusal.get("topic"), "partition": refusal.get("partition")}
            for refusal in refusals
        ]

    def _event(self, batch: Batch, event: Row, *, is_in: bool) -> None:
        place = (event["cluster"], event["topic"], event["partition"])
        tag = event["type"]
        if tag in BEGIN:
            self._moves[place] = {
                **dict(zip(("cluster", "topic", "partition"), place, strict=True)),
                "plan": event["plan"],
                "began_ms": batch.at_ms,
                "began_offset": batch.offset,
                "bytes_copied": 0,
                "state": None,
                "ended_ms": None,
                "offset": None,
                "started_ms": None,
                "steps": 0,
                "blocks": 0,
                "rejected_calls": 0,
                "cancel_mode": None,
                "cancelled_by": None,
                "shard": batch.shard,
            }
            return
        move = self._moves[place]
        if tag == "call-intended" and event["call"] == "step":
            move["started_ms"] = move["started_ms"] or batch.at_ms
            move["steps"] = max(move["steps"], event.get("step", 0))
        elif tag in {"rollback-requested", "stop-requested"}:
            # Who asked is said by the command's outcome; a try that is made again does not repeat it.
            by = event.get("by") or next(
                (one["by"] for one in batch.outcomes if one["id"] == event.get("command")), None
            )
            if by is not None:
                move |= {"cancel_mode": tag.removesuffix("-requested"), "cancelled_by": by}
        elif tag in {"call-rejected", "reassignment-blocked"}:
            move["rejected_calls" if tag == "call-rejected" else "blocks"] += 1
        elif tag == "step-confirmed":
            move["bytes_copied"] += event.get("bytes_copied", 0)
        elif tag in END:
            move |= {"state": END[tag], "ended_ms": batch.at_ms, "offset": batch.offset}
            move["bytes_copied"] = max(move["bytes_copied"], event.get("bytes_copied", 0))
            if move["cancelled_by"] is None and move["state"] in {"rolled-back", "stopped"}:
                self._cause(batch, move)
            del self._moves[place]
            if is_in:
                self._ended.append(move)

    @staticmethod
    def _cause(batch: Batch, move: Row) -> None:
        """Who asked is in the same record, if anybody did."""
        for outcome in batch.outcomes:
            named = [(outcome["cluster"], one["topic"], one["partition"]) for one in outcome.get("accepted", [])]
            if outcome["verdict"] == "accepted" and (move["cluster"], move["topic"], move["partition"]) in named:
                mode = "rollback" if move["state"] == "rolled-back" else "stop"
                move |= {"cancel_mode": mode, "cancelled_by": outcome["by"]}
