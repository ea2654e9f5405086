"""Decisions: a command, the speculative state and the facts make events, or refusals with their reasons."""

from collections.abc import Callable, Mapping
from typing import Any

from drover.decide.alter import decide_alter, observations_for_alter
from drover.decide.broker_holds import decide_hold, decide_release
from drover.decide.broker_reports import decide_broker_failed, decide_broker_returned
from drover.decide.cancel import decide_cancel
from drover.decide.decision import NONE_NEEDED, Decision, Facts, NeededObservations, refuse
from drover.decide.deferred import with_deferred
from drover.decide.freezes import decide_freeze, decide_unfreeze
from drover.decide.heals import decide_heal
from drover.decide.leaders import decide_balance, decide_blacklist, decide_demote, decide_restore
from drover.decide.limits import decide_limits
from drover.decide.pauses import decide_pause, decide_resume
from drover.decide.plans import decide_throttle
from drover.decide.repair import decide_repair, observations_for_repair
from drover.decide.throttles import decide_restore_throttles
from drover.events import commands
from drover.state.cluster import ClusterState


def decide_request_refused(command: commands.RequestRefused, _state: ClusterState, _facts: Facts) -> Decision:
    """Refuse a request from ZooKeeper for the reason that the intake gave, so that the log has it."""
    return refuse(command.code, f"{command.path}: {command.detail}")


# The function of each command, from the capability that owns it.
DECIDING: Mapping[type[commands.Command], Callable[[Any, ClusterState, Facts], Decision]] = {
    commands.Alter: decide_alter,
    commands.Throttle: decide_throttle,
    commands.RequestRefused: decide_request_refused,
    commands.RestoreThrottles: decide_restore_throttles,
    commands.ChangeLimits: decide_limits,
    commands.Cancel: decide_cancel,
    commands.PausePlan: decide_pause,
    commands.ResumePlan: decide_resume,
    commands.HoldBroker: decide_hold,
    commands.ReleaseBroker: decide_release,
    commands.Freeze: decide_freeze,
    commands.Unfreeze: decide_unfreeze,
    commands.Repair: decide_repair,
    commands.Blacklist: decide_blacklist,
    commands.Demote: decide_demote,
    commands.Restore: decide_restore,
    commands.BalanceLeaders: decide_balance,
    commands.BrokerFailed: decide_broker_failed,
    commands.BrokerReturned: decide_broker_returned,
    commands.HealCommand: decide_heal,
}

# Which partitions must be observed before a command is decided; none for a command that is not listed.
LOOKING: Mapping[type[commands.Command], Callable[[Any, ClusterState], NeededObservations]] = {
    commands.Alter: observations_for_alter,
    commands.Repair: observations_for_repair,
}


def observations_needed(command: commands.AnyCommand, state: ClusterState) -> NeededObservations:
    """Return the partitions to observe before a command is decided."""
    looking = LOOKING.get(type(command))
    return NONE_NEEDED if looking is None else looking(command, state)


def decide(command: commands.AnyCommand, state: ClusterState, facts: Facts) -> Decision:
    """Decide one command; never changes `state`.

    A refusal is a value in the result. A command may be accepted in part, partition by partition (KIP-455).
    """
    return with_deferred(DECIDING[type(command)](command, state, facts), state, facts)
