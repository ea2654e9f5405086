"""Ranking: brokers in order of a figure that changes for few of them at a time."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator


class Ranking:
    """Brokers from the least figure to the largest, and with the same figure from the least number."""

    def __init__(self, brokers: Iterable[int], figure: Callable[[int], float]) -> None:
        self._figure = figure
        self._figures = {broker: figure(broker) for broker in brokers}
        self._order = sorted((value, broker) for broker, value in self._figures.items())

    def __iter__(self) -> Iterator[int]:
        """Yield the brokers in order."""
        return (broker for _, broker in self._order)

    @property
    def first(self) -> tuple[float, int] | None:
        """The least figure, with its broker; None without any."""
        return self._order[0] if self._order else None

    def update(self, *brokers: int) -> None:
        """Look at the figures of these again; those that are not ranked stay out."""
        for broker in brokers:
            if broker in self._figures:
                self.leave_out(broker)
                self._figures[broker] = self._figure(broker)
                insort(self._order, (self._figures[broker], broker))

    def leave_out(self, broker: int) -> None:
        """Rank a broker no more."""
        del self._order[bisect_left(self._order, (self._figures.pop(broker), broker))]
