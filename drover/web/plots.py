"""PURE: the rates of the last minutes by broker, so that the small plots are filled when the page is opened."""

from collections import defaultdict, deque
from dataclasses import dataclass, field

from drover.client.live_view import View
from drover.client.views.broker_rows import broker_rows

EVERY_MS = 2_000
POINTS = 300

Point = tuple[int, int, int]


@dataclass(slots=True)
class Plots:
    """Per cluster and broker: time (ms since the epoch), bytes per second in, and out."""

    points: dict[str, dict[int, deque[Point]]] = field(default_factory=lambda: defaultdict(dict))
    _sampled_ms: int = 0

    def sample(self, view: View, now_ms: int) -> None:
        """Add a point for every broker with copies now or recently; does nothing if the last point is too recent."""
        if now_ms - self._sampled_ms < EVERY_MS:
            return
        self._sampled_ms = now_ms
        for fold in view.log.folds.values():
            for name, state in fold.state.clusters.items():
                series = self.points[name]
                for row in broker_rows(state, view.transfers, now_ms):
                    if row.copies_in or row.copies_out or row.broker in series:
                        points = series.setdefault(row.broker, deque(maxlen=POINTS))
                        points.append((now_ms, round(row.rate_in), round(row.rate_out)))

    def of(self, cluster: str) -> dict[str, list[Point]]:
        """Return a cluster's points by broker, in order of time."""
        return {str(broker): list(points) for broker, points in self.points[cluster].items()}
