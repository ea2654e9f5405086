"""PURE: marks of brokers with a problem in the log: gone, unreachable, closed for moves, or demoted."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from drover.events.clusters import HoldRole
from drover.state.cluster import ClusterState
from drover.unreachable import unreachable_in_words

_CLOSED_FOR = {
    HoldRole.BOTH: "copies into it and out of it",
    HoldRole.DESTINATION: "copies into it",
    HoldRole.SOURCE: "copies out of it",
}


class BrokerMark(Struct, frozen=True):
    """A mark of a broker: `gone`, `unreachable`, `closed` or `demoted`, with the reason in words."""

    broker: int
    mark: str
    why: str


def broker_marks(state: ClusterState, brokers: Iterable[int], topic: str) -> list[BrokerMark]:
    """Return the marks of these brokers as replicas of a topic, ordered by broker, the gravest mark first."""
    return [mark for broker in sorted({*brokers}) for mark in _marks(state, broker, topic)]


def _marks(state: ClusterState, broker: int, topic: str) -> Iterator[BrokerMark]:
    absence, held = state.absent_brokers.get(broker), state.held_brokers.get(broker)
    if broker in state.failed_brokers:
        yield BrokerMark(broker, "gone", f"broker {broker} was reported as failed")
    elif absence is not None:
        yield BrokerMark(broker, "gone", f"broker {broker} is away: `drover heal status`")
    if broker in state.unreachable_brokers:
        yield BrokerMark(broker, "unreachable", unreachable_in_words((broker,)))
    if held is not None:
        yield BrokerMark(
            broker, "closed", f"broker {broker} is closed for {_CLOSED_FOR[held.role]} by {held.by}: {held.reason}"
        )
    if broker in state.listed_for(topic):
        yield BrokerMark(broker, "demoted", _demoted(state, broker))


def _demoted(state: ClusterState, broker: int) -> str:
    listing = state.listings.get(broker)
    by = "" if listing is None else f" (by {listing.by}: {listing.reason})"
    return f"broker {broker} should not lead{by}"
