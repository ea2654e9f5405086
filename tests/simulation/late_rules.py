"""S11 for late effects: what Drover takes for one is a list that it has really sent."""

from typing import TYPE_CHECKING

from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended, LateChangeFound
from drover.events.records import AnyEvent

if TYPE_CHECKING:
    from tests.simulation.checker import Checker


class LateCalls:
    """The lists that were ever to be sent for each partition."""

    def __init__(self, checker: "Checker") -> None:
        self._checker = checker
        self._sent: dict[tuple[str, TopicPartition], set[tuple[int, ...]]] = {}

    def follow(self, event: AnyEvent) -> None:
        """Note what is to be sent; let a move be taken back that goes where a call of Drover's would have gone.

        Nobody can tell it from the move of somebody who has asked for that very list meanwhile.
        """
        if isinstance(event, CallIntended) and event.replicas is not None:
            self._sent.setdefault((event.cluster, event.key), set()).add(event.replicas)
        elif isinstance(event, LateChangeFound):
            place = event.cluster, event.key
            assert event.sent in self._sent.get(place, ()), f"S11: {event}, but nobody here has sent that"
            if place in self._checker.lives:
                self._checker.lives[place].late = event.sent
