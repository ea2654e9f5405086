"""The fold of byte samples: amounts, rates, and what arrived at and left each broker.

It looks at samples only, never at events: the two topics are read side by side, and a table that depended on which came
first would not be the same twice.
"""

from collections.abc import Iterator, Mapping

from msgspec import msgpack

from drover.client.transfers import LEAST_SPAN_MS, WINDOW_MS
from spark.folding.carry import Point, SampleCarry
from spark.folding.rows import CARRY, Carried, Contribution, FoldRow, carry_key, contribution
from spark.folding.tally import Tally, window

# A sample so much later is the first of something new: what was carried of the partition is forgotten by then.
FORGET_MS = 600_000
_CARRY = msgpack.Decoder(SampleCarry)

Place = tuple[str, int]


class SampleFold:
    """The samples of one cluster, each partition's in its order."""

    def __init__(self, cluster: str, carry: Mapping[str, bytes], tally: Tally) -> None:
        self._cluster = cluster
        self._carry = carry
        self._tally = tally
        self._touched: dict[str, SampleCarry] = {}
        self._newest_ms = 0

    def see(self, row: FoldRow) -> None:
        """Fold one sample; one of an older epoch than its partition's last is dropped, and one that is no newer."""
        assert row.topic is not None, "a sample is about a partition"
        assert row.partition is not None, "a sample is about a partition"
        key = carry_key("sample", self._cluster, row.topic, row.partition)
        before = self._before(key, row.at_ms)
        if before is not None and (row.epoch < before.epoch or row.at_ms <= before.at_ms):
            return
        held = {one["broker"]: one["bytes"] for one in row.adding or ()}
        self._gain(row, {} if before is None else before.held, held)
        now = self._touched[key] = _next(before, row, held)
        self._newest_ms = max(self._newest_ms, row.at_ms)
        self._show((row.topic, row.partition), row, now)

    def contributions(self) -> Iterator[Contribution]:
        """Yield what is carried on, and what is forgotten."""
        for key, known in self._touched.items():
            yield contribution(CARRY, Carried(key, msgpack.encode(known)))
        for key, value in self._carry.items():
            is_ours = key.startswith(carry_key("sample", self._cluster, "")) and key not in self._touched
            # Twice the time, since the clocks of workers differ: forgetting must make no difference.
            if is_ours and _CARRY.decode(value).at_ms < self._newest_ms - 2 * FORGET_MS:
                yield contribution(CARRY, Carried(key, None))

    def _before(self, key: str, at_ms: int) -> SampleCarry | None:
        before = self._touched.get(key)
        if before is None and (value := self._carry.get(key)) is not None:
            before = _CARRY.decode(value)
        return None if before is not None and at_ms - before.at_ms > FORGET_MS else before

    def _gain(self, row: FoldRow, before: Mapping[int, int], held: Mapping[int, int]) -> None:
        """Count what each replica has more than before; one that was not there before began with nothing."""
        at = window(row.at_ms)
        for broker, size_bytes in held.items():
            gained = max(0, size_bytes - before.get(broker, 0))
            if gained:
                self._tally.put("brokers", (self._cluster, broker, at), bytes_in=gained)
                if row.leader is not None:
                    self._tally.put("brokers", (self._cluster, row.leader, at), bytes_out=gained)

    def _show(self, place: Place, row: FoldRow, now: SampleCarry) -> None:
        first, last = now.points[0], now.points[-1]
        span_ms = last.at_ms - first.at_ms
        rate = closing_rate = None
        if span_ms >= LEAST_SPAN_MS:
            rate = (last.bytes_done - first.bytes_done) / span_ms * 1000
            closed = (first.bytes_total - first.bytes_done) - (last.bytes_total - last.bytes_done)
            closing_rate = closed / span_ms * 1000
        self._tally.put(
            "samples",
            (self._cluster, *place),
            epoch=row.epoch,
            at_ms=row.at_ms,
            step=row.step,
            bytes_done=row.bytes_done,
            bytes_total=row.bytes_total,
            rate=rate,
            closing_rate=closing_rate,
            grown_ms=now.grown_ms,
        )


def _next(before: SampleCarry | None, row: FoldRow, held: dict[int, int]) -> SampleCarry:
    """Make what is carried of a sample: it continues the one before if it is about the same copies."""
    step, done, total = row.step or 0, row.bytes_done or 0, row.bytes_total or 0
    point = Point(row.at_ms, done, total)
    if before is None or before.step != step or before.held.keys() != held.keys():
        return SampleCarry(epoch=row.epoch, at_ms=row.at_ms, step=step, held=held, points=[point], grown_ms=row.at_ms)
    points = [one for one in before.points if one.at_ms >= row.at_ms - WINDOW_MS]
    grown_ms = row.at_ms if done > before.points[-1].bytes_done else before.grown_ms
    return SampleCarry(
        epoch=row.epoch, at_ms=row.at_ms, step=step, held=held, points=[*points, point], grown_ms=grown_ms
    )
