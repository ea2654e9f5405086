"""The fold of throttles: what is in force on a broker, and for how long it was."""

from spark.folding.carry import Throttle
from spark.folding.rows import FoldRow
from spark.folding.tally import Tally


class Throttling:
    """The throttles of one cluster's brokers; `known` is carried on by the owner of the cluster's fold."""

    def __init__(self, cluster: str, known: dict[int, Throttle], tally: Tally) -> None:
        self._cluster = cluster
        self._known = known
        self._tally = tally

    def see(self, tag: str, row: FoldRow) -> None:
        """Fold one event about a broker; what is not about its throttle has no effect."""
        assert row.broker is not None, "only events about brokers come here"
        known = self._known.get(row.broker, Throttle())
        if tag == "broker-throttle-intended":
            # A release puts back what others had set: from then on nothing there is Drover's.
            known.intended = (None, None) if row.release else (row.leader_rate, row.follower_rate)
            self._known[row.broker] = known
        elif tag == "broker-throttle-set" and known.intended is not None:
            self._change(row.broker, known, known.intended, row.at_ms)
        elif tag == "broker-throttle-left":
            self._change(row.broker, known, (None, None), row.at_ms)
        elif tag == "broker-throttle-changed":
            # What somebody deleted is not in force until it is put back.
            self._change(row.broker, known, (row.leader_rate, row.follower_rate), row.at_ms)

    def _change(self, broker: int, throttle: Throttle, rates: tuple[int | None, int | None], at_ms: int) -> None:
        lasted_ms = 0 if throttle.since_ms is None else at_ms - throttle.since_ms
        is_in_force = rates != (None, None)
        self._tally.put(
            "throttles",
            (self._cluster, broker),
            leader_rate=rates[0],
            follower_rate=rates[1],
            since_ms=at_ms,
            throttled_ms=lasted_ms,
            changes=1,
        )
        if is_in_force:
            self._known[broker] = Throttle(leader_rate=rates[0], follower_rate=rates[1], since_ms=at_ms)
        else:
            self._known.pop(broker, None)
