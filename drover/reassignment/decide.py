"""What may be asked: one command, the state as it will be and the facts make events, or refusals with their reasons."""

from typing import assert_never

from drover.reassignment.alter import decide_alter
from drover.reassignment.cancel import decide_cancel
from drover.reassignment.decision import Decision, Facts
from drover.reassignment.mend import decide_mend
from drover.reassignment.state import ClusterState
from events import commands
from events.brokers import BlacklistSet, BrokerFailureRecorded, BrokerReturnRecorded
from events.clusters import ClusterFrozen, ClusterUnfrozen


def decide(command: commands.AnyCommand, state: ClusterState, facts: Facts) -> Decision:
    """Decide one command; never changes `state`.

    A refusal is a value in the result. A command may be accepted in part: partitions stand for themselves (KIP-455).
    What it names in `after` has been decided before.
    """
    match command:
        case commands.Alter():
            return decide_alter(command, state, facts)
        case commands.Cancel():
            return decide_cancel(command, state)
        case commands.Freeze():
            return _freeze(command, state)
        case commands.Unfreeze():
            return _unfreeze(command, state)
        case commands.Mend():
            return decide_mend(command, state, facts)
        case commands.Blacklist():
            return _blacklist(command, state)
        case commands.BrokerFailed():
            return _broker_failed(command, state)
        case commands.BrokerReturned():
            return _broker_returned(command, state)
        case _:
            assert_never(command)


def _freeze(command: commands.Freeze, state: ClusterState) -> Decision:
    if state.freeze is not None:
        return Decision()
    return Decision(events=(ClusterFrozen(cluster=state.name, by=command.by, reason=command.reason),))


def _unfreeze(command: commands.Unfreeze, state: ClusterState) -> Decision:
    if state.freeze is None:
        return Decision()
    return Decision(events=(ClusterUnfrozen(cluster=state.name, by=command.by, reason=command.reason),))


def _blacklist(command: commands.Blacklist, state: ClusterState) -> Decision:
    """R491-1: the list is always the complete one; R491-4: by itself it moves nothing."""
    brokers = tuple(dict.fromkeys(command.brokers))
    if brokers == state.blacklist:
        return Decision()
    event = BlacklistSet(
        cluster=state.name,
        brokers=brokers,
        previous_brokers=state.blacklist,
        by=command.by,
        reason=command.reason,
    )
    return Decision(events=(event,))


def _broker_failed(command: commands.BrokerFailed, state: ClusterState) -> Decision:
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


def _broker_returned(command: commands.BrokerReturned, state: ClusterState) -> Decision:
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
