"""The fold of one cluster's events: reassignments, plans, loads of brokers, throttles, durations."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import msgpack

from spark.folding.carry import ClusterCarry, Move, OpenPlan
from spark.folding.phases import BEGINNINGS, ENDS, added, begun, change, load_of
from spark.folding.rows import CARRY, Carried, Contribution, FoldRow, carry_key, contribution
from spark.folding.tally import Tally, bucket, window
from spark.folding.throttling import Throttling

_ENCODE = msgpack.encode
_CLUSTER = msgpack.Decoder(ClusterCarry)
_MOVE = msgpack.Decoder(Move)

Place = tuple[str, int]


class ClusterFold:
    """One cluster, fed its valid events in their order; `carry` is what earlier batches carried, by key.

    Events about reassignments that are not known are passed over: their beginning could not be read.
    """

    def __init__(self, cluster: str, carry: Mapping[str, bytes], tally: Tally) -> None:
        self._cluster = cluster
        self._carry = carry
        self._tally = tally
        self._key = carry_key("cluster", cluster)
        known = carry.get(self._key)
        self._head = ClusterCarry() if known is None else _CLUSTER.decode(known)
        self._moves: dict[Place, Move | None] = {}
        self._throttling = Throttling(cluster, self._head.throttles, tally)

    def see(self, row: FoldRow) -> None:
        """Fold one event."""
        tag = row.tag or ""
        if row.topic is not None and row.partition is not None:
            place = (row.topic, row.partition)
            self._see_partition(tag, place, row)
        elif row.plan is not None:
            self._see_plan(tag, row.plan, row)
        elif row.broker is not None:
            self._throttling.see(tag, row)

    def contributions(self) -> Iterator[Contribution]:
        """Yield what is carried on."""
        yield contribution(CARRY, Carried(self._key, _ENCODE(self._head)))
        for (topic, partition), move in self._moves.items():
            value = None if move is None else _ENCODE(move)
            yield contribution(CARRY, Carried(carry_key("move", self._cluster, topic, partition), value))

    # -- partitions

    def _see_partition(self, tag: str, place: Place, row: FoldRow) -> None:
        if tag in BEGINNINGS:
            move = self._moves[place] = begun(row)
            self._plan(move.plan, accepted=1)
            self._count_open(move.plan, row.at_ms, active=1)
            self._show(place, move, row)
            return
        if tag.startswith("queue-entry-"):
            self._see_queue(tag, place, row)
            return
        known = self._move(place)
        if known is None:
            return
        before = load_of(known)
        phase, since_ms, copied, is_unknown = known.phase, known.since_ms, known.bytes_copied, known.bytes_unknown
        if tag in ENDS:
            self._weigh(before, (None, ()), row.at_ms)
            self._last(phase, row.at_ms - since_ms)
            self._end(place, known, ENDS[tag], row)
            return
        self._replace(tag, known, row)
        change(known, row)
        if known.phase != phase:
            self._last(phase, row.at_ms - since_ms)
        self._weigh(before, load_of(known), row.at_ms)
        if known.bytes_copied != copied:
            self._plan(known.plan, bytes_copied=known.bytes_copied - copied)
        if known.bytes_unknown != is_unknown:
            self._plan(known.plan, bytes_unknown=1)
        self._show(place, known, row)

    def _move(self, place: Place) -> Move | None:
        """Find the move under way; what is looked at is carried on."""
        if place in self._moves:
            return self._moves[place]
        known = self._carry.get(carry_key("move", self._cluster, *place))
        if known is None:
            return None
        move = self._moves[place] = _MOVE.decode(known)
        return move

    def _end(self, place: Place, move: Move, state: str, row: FoldRow) -> None:
        self._moves[place] = None
        copied = max(row.bytes_done or 0, move.bytes_copied)
        column = state.replace("-", "_")
        is_unknown = move.bytes_unknown or bool(row.bytes_unknown)
        more = {"bytes_copied": copied - move.bytes_copied, "bytes_unknown": int(is_unknown) - int(move.bytes_unknown)}
        self._plan(move.plan, **{column: 1}, **more)
        self._tally.put("requests", (self._cluster, window(row.at_ms), self._requester(move.plan)), **{column: 1})
        self._last(state, row.at_ms - move.began_ms)
        move.bytes_copied, move.bytes_unknown, move.reason, move.detail = copied, is_unknown, row.why, row.detail
        ended: dict[str, Any] = {
            "plan": move.plan,
            "requester": self._requester(move.plan),
            "state": state,
            "began_ms": move.began_ms,
            "original": listed(move.original),
            "target": listed(move.target),
            "reason": row.why,
            "bytes_copied": copied,
            "bytes_unknown": int(is_unknown),
        }
        self._tally.put("ended", (self._cluster, *place, row.at_ms, row.offset, row.index), **ended)
        move.phase, move.since_ms = state, row.at_ms
        self._show(place, move, row, ended_ms=row.at_ms)
        if move.replacement is not None:
            self._wait(move.replacement, row.at_ms, -1)
        self._count_open(move.plan, row.at_ms, active=-1)

    def _show(self, place: Place, move: Move, row: FoldRow, ended_ms: int | None = None) -> None:
        is_moving = ended_ms is None and bool(load_of(move)[1])
        self._tally.put(
            "reassignments",
            (self._cluster, *place),
            plan=move.plan,
            requester=self._requester(move.plan),
            state=move.phase,
            since_ms=move.since_ms,
            began_ms=move.began_ms,
            ended_ms=ended_ms,
            step=move.step,
            reason=move.reason,
            detail=move.detail,
            original=listed(move.original),
            target=listed(move.target),
            adding=listed(added(move)) if is_moving else "",
            leader=move.leader,
            bytes_copied=move.bytes_copied,
            bytes_unknown=int(move.bytes_unknown),
            shard=row.shard,
            offset=row.offset,
        )

    def _last(self, state: str, duration_ms: int) -> None:
        """Note that a state has lasted so long."""
        key = (self._cluster, state, bucket(duration_ms))
        self._tally.put("durations", key, durations=1, total_ms=duration_ms, longest_ms=duration_ms)

    # -- brokers

    def _weigh(self, before: tuple[int | None, tuple[int, ...]], after: Any, at_ms: int) -> None:
        if before == after:
            return
        for (source, targets), number in ((before, -1), (after, 1)):
            for broker in targets:
                self._count(self._head.moves_in, "moves_in", broker, number, at_ms)
            if source is not None:
                self._count(self._head.moves_out, "moves_out", source, number, at_ms)

    def _count(self, moves: dict[int, int], name: str, broker: int, number: int, at_ms: int) -> None:
        earlier = moves.get(broker, 0)
        now = moves[broker] = earlier + number
        if not now:
            del moves[broker]
        most = {f"{name}_most": max(earlier, now), f"{name}_last": now}
        self._tally.put("brokers", (self._cluster, broker, window(at_ms)), **most)

    # -- plans and what waits

    def _requester(self, plan: str) -> str:
        known = self._head.plans.get(plan)
        return "" if known is None else known.requester

    def _plan(self, plan: str, **values: Any) -> None:
        self._tally.put("plans", (self._cluster, plan), **values)

    def _count_open(self, plan: str, at_ms: int, *, active: int = 0, waiting: int = 0) -> None:
        """Count what of a plan moves or waits; a cancelled one has finished when nothing is left, and never says so."""
        known = self._head.plans.get(plan)
        if known is None:
            return
        known.active += active
        known.waiting += waiting
        if known.is_cancelled and not known.active and not known.waiting:
            del self._head.plans[plan]
            self._plan(plan, finished_ms=at_ms)

    def _see_plan(self, tag: str, plan: str, row: FoldRow) -> None:
        if tag == "plan-opened":
            self._head.plans[plan] = OpenPlan(requester=row.by or "")
            self._plan(plan, requester=row.by, reason=row.reason, opened_ms=row.at_ms)
        elif tag == "plan-throttle-set":
            self._plan(plan, throttle=row.bytes_per_second)
        elif tag == "plan-cancelled":
            self._plan(plan, cancelled_ms=row.at_ms)
            self._head.plans.setdefault(plan, OpenPlan(requester="")).is_cancelled = True
            self._count_open(plan, row.at_ms)
        elif tag == "plan-finished":
            self._head.plans.pop(plan, None)
            self._plan(plan, finished_ms=row.at_ms)

    def _see_queue(self, tag: str, place: Place, row: FoldRow) -> None:
        name = carry_key("", *place)
        if tag == "queue-entry-added":
            self._head.queue[name] = row.plan or ""
            self._wait(row.plan or "", row.at_ms, 1)
        elif (plan := self._head.queue.pop(name, None)) is not None:
            self._wait(plan, row.at_ms, -1, withdrawn=int(row.why != "started"))

    def _wait(self, plan: str, at_ms: int, number: int, *, withdrawn: int = 0) -> None:
        """Count targets that wait to be begun."""
        self._plan(plan, waiting=number, withdrawn=withdrawn)
        self._count_open(plan, at_ms, waiting=number)

    def _replace(self, tag: str, move: Move, row: FoldRow) -> None:
        """Count the target that waits for the end of this move."""
        if tag not in {"target-replaced", "replacement-withdrawn"}:
            return
        if move.replacement is not None:
            self._wait(move.replacement, row.at_ms, -1, withdrawn=int(tag == "replacement-withdrawn"))
        move.replacement = row.plan if tag == "target-replaced" else None
        if move.replacement is not None:
            self._wait(move.replacement, row.at_ms, 1)


def listed(brokers: tuple[int, ...]) -> str:
    """Write broker ids as the tables do."""
    return ",".join(map(str, brokers))
