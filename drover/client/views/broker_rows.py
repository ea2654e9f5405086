"""PURE: the brokers in the log of a cluster, as rows: copies in and out, rates, throttles, failures."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from drover.client.transfers import Transfers
from drover.client.views.status_rows import COPYING
from drover.events.throttles import Rates
from drover.reconcile.gates import limit_of
from drover.state.broker_directions import BrokerDirection, BrokerDirections
from drover.state.cluster import ClusterState
from drover.state.slot_share import WHOLE_SLOT

NO_RATES = Rates(None, None)


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """One broker; a broker without a move, throttle or report is not in the log and has no row.

    `copies_in` and `copies_out` count the running copies to and from it; their rates, in bytes per second, come from
    samples. `moves` counts the copies that use its slots, of at most `moves_limit` in both directions. The throttles
    are the rates that Drover last decided to write, None if it writes none. `is_full` says that copies into it, or out
    of it, must wait. `failed_ms` is the time of the failure in the first report, and `absent_ms` the time when healing
    noticed its absence. `should_not_lead` is KIP-491's list; with `until_in_sync` the broker leaves it once its
    replicas are in sync. `held_role` is the role in which it is held (`both`, `destination` or `source`), and `held_by`
    the requester; None if it is not held. `unreachable_ms` is the time since which it is alive but unreachable.
    """

    cluster: str
    broker: int
    copies_in: int
    copies_out: int
    rate_in: float
    rate_out: float
    moves: int
    moves_limit: int
    throttle_in: int | None
    throttle_out: int | None
    failed_ms: int | None
    should_not_lead: bool
    is_full: bool
    absent_ms: int | None = None
    held_role: str | None = None
    held_by: str | None = None
    unreachable_ms: int | None = None
    until_in_sync: bool = False

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def broker_rows(state: ClusterState, transfers: Transfers, now_ms: int = 0) -> list[BrokerRow]:
    """Return every broker in the log of a cluster, by id, with the rates at `now_ms` (wall clock)."""
    copies_in: Counter[int] = Counter()
    copies_out: Counter[int] = Counter()
    rates_in: Counter[int] = Counter()
    rates_out: Counter[int] = Counter()
    for key in state.moves.in_flight:
        entry = state.reassignments[key]
        if entry.step is None or entry.phase not in COPYING:
            continue
        copies_in.update(entry.step.adding)
        arriving = transfers.arriving(state.name, key, entry.step.number, now_ms, entry.created_ms)
        source = entry.step.leader if arriving is None else arriving.source
        if source is not None:
            copies_out[source] += len(entry.step.adding)
        if arriving is not None:
            for broker, rate in arriving.rates.items():
                rates_in[broker] += round(rate)
                if source is not None:
                    rates_out[source] += round(rate)
    rows = []
    for broker in sorted(_known_brokers(state)):
        absence, held = state.absent_brokers.get(broker), state.held_brokers.get(broker)
        listing = state.listings.get(broker)
        rows.append(
            BrokerRow(
                cluster=state.name,
                broker=broker,
                copies_in=copies_in[broker],
                copies_out=copies_out[broker],
                rate_in=rates_in[broker],
                rate_out=rates_out[broker],
                moves=sum(state.moves.loads.get(direction, 0) for direction in _directions(broker)),
                moves_limit=state.limits.max_incoming + state.limits.max_outgoing,
                throttle_in=_intended(state, broker).follower,
                throttle_out=_intended(state, broker).leader,
                failed_ms=state.failed_brokers.get(broker),
                should_not_lead=broker in state.blacklist,
                is_full=any(_has_no_slot(state, direction) for direction in _directions(broker)),
                absent_ms=None if absence is None else absence.since_ms,
                held_role=None if held is None else held.role.value,
                held_by=None if held is None else held.by,
                unreachable_ms=state.unreachable_brokers.get(broker),
                until_in_sync=listing is not None and listing.until_in_sync,
            )
        )
    return rows


def _has_no_slot(state: ClusterState, direction: BrokerDirection) -> bool:
    slots = state.slots_of(direction.broker, limit_of(state.limits, direction))
    return state.moves.slots.get(direction, 0) > (slots - 1) * WHOLE_SLOT


def _directions(broker: int) -> BrokerDirections:
    return BrokerDirection(broker, "in"), BrokerDirection(broker, "out")


def _intended(state: ClusterState, broker: int) -> Rates:
    throttle = state.broker_throttles.get(broker)
    return NO_RATES if throttle is None else throttle.intended


def _known_brokers(state: ClusterState) -> set[int]:
    brokers = {direction.broker for direction in state.moves.loads} | {*state.broker_throttles, *state.failed_brokers}
    brokers |= {*state.blacklist, *state.held_brokers, *state.absent_brokers, *state.unreachable_brokers}
    lists = {lists for entry in state.reassignments.values() for lists in (entry.original, entry.target)}
    lists |= {replicas for move in state.unmanaged.values() for replicas in (move.replicas, move.adding)}
    return brokers.union(*lists)
