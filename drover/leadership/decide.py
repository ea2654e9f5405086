"""Deciding about the list of brokers that should not lead."""

from drover.capability.decision import Decision, Facts
from drover.leadership.state import LeadershipState
from events.brokers import BlacklistSet
from events.commands import Blacklist


def decide_blacklist(command: Blacklist, state: LeadershipState, _facts: Facts) -> Decision:
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
