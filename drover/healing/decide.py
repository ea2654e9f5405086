"""Deciding about reports of failed and returned brokers."""

from drover.capability.decision import Decision, Facts
from drover.healing.state import HealingState
from events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from events.commands import BrokerFailed, BrokerReturned


def decide_broker_failed(command: BrokerFailed, state: HealingState, _facts: Facts) -> Decision:
    """R46-1: the first report's time stands until the broker returns."""
    if command.broker in state.failed_brokers:
        return Decision()
    event = BrokerFailureRecorded(
        cluster=state.name,
        broker=command.broker,
        failed_at_ms=command.at_ms,
        by=command.by,
        reason=command.reason,
    )
    return Decision(events=(event,))


def decide_broker_returned(command: BrokerReturned, state: HealingState, _facts: Facts) -> Decision:
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
    return Decision(events=(event,))
