"""Deciding about reports of failed and returned brokers."""

from drover.capability.decision import Decision, Facts
from drover.state.cluster import ClusterState
from events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from events.commands import BrokerFailed, BrokerReturned
from events.healing import BrokerOutageEnded, BrokerOutageNoted, OutageEnd
from events.records import AnyEvent


def decide_broker_failed(command: BrokerFailed, state: ClusterState, _facts: Facts) -> Decision:
    """R46-1: the first report's time stands until the broker returns.

    Where healing is set up, the timer runs from the record of this very decision: a client's clock moves nothing.
    """
    if command.broker in state.failed_brokers:
        return Decision()
    event = BrokerFailureRecorded(
        cluster=state.name,
        broker=command.broker,
        failed_at_ms=command.at_ms,
        by=command.by,
        reason=command.reason,
    )
    noted: tuple[AnyEvent, ...] = ()
    if state.limits.healing is not None and command.broker not in state.outages:
        noted = (BrokerOutageNoted(cluster=state.name, broker=command.broker, seen=False),)
    return Decision(events=(event, *noted))


def decide_broker_returned(command: BrokerReturned, state: ClusterState, _facts: Facts) -> Decision:
    """R46-2: forget the failure; a return from before the failure is an old report and has no effect."""
    failed_at_ms = state.failed_brokers.get(command.broker)
    if failed_at_ms is None or command.at_ms < failed_at_ms:
        return Decision()
    event = BrokerReturnRecorded(
        cluster=state.name,
        broker=command.broker,
        failed_at_ms=failed_at_ms,
        returned_at_ms=command.at_ms,
        by=command.by,
        reason=command.reason,
    )
    ended: tuple[AnyEvent, ...] = ()
    if command.broker in state.outages:
        why = OutageEnd.REPORTED_BACK
        ended = (BrokerOutageEnded(cluster=state.name, broker=command.broker, why=why),)
    return Decision(events=(event, *ended))
