"""Decide to hold a broker, so that no further copy goes into it or out of it, and to release it."""

from drover.decide.decision import Decision, Facts, refuse
from drover.decide.unseen import with_unseen_remark
from drover.events.clusters import BrokerHeld, BrokerReleased
from drover.events.commands import HoldBroker, ReleaseBroker
from drover.events.refusals import RefusalCode
from drover.state.cluster import ClusterState
from drover.state.scheduling import SchedulingState

# More than any cluster has. A command may name any number, and each is remembered until it is released.
MAX_HELD_BROKERS = 1000


def decide_hold(command: HoldBroker, state: ClusterState, facts: Facts) -> Decision:
    """Hold a broker, which need not have joined yet; a later hold of the same broker replaces its role."""
    decision = _hold(command, state)
    return with_unseen_remark(decision, (command.broker,), state.name, state.known_brokers, facts, done="held")


def _hold(command: HoldBroker, state: SchedulingState) -> Decision:
    hold = state.held_brokers.get(command.broker)
    if hold is not None and hold.role is command.role:
        remark = f"broker {command.broker} is held by {hold.by} already ({hold.reason}), and remains so"
        return Decision(remarks=(remark,))
    if hold is None and len(state.held_brokers) >= MAX_HELD_BROKERS:
        detail = f"{MAX_HELD_BROKERS} brokers of {state.name} are held already: release those that need not be"
        return refuse(RefusalCode.TOO_LARGE, detail)
    event = BrokerHeld(
        cluster=state.name, broker=command.broker, by=command.by, reason=command.reason, role=command.role
    )
    return Decision(events=(event,))


def decide_release(command: ReleaseBroker, state: SchedulingState, _facts: Facts) -> Decision:
    """Release a broker, no matter who holds it; no effect on a broker that is not held."""
    if command.broker not in state.held_brokers:
        return Decision(remarks=(f"broker {command.broker} was not held",))
    event = BrokerReleased(cluster=state.name, broker=command.broker, by=command.by, reason=command.reason)
    return Decision(events=(event,))
