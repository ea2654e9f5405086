"""Decide operators' commands about healing: start now, skip a broker, stop."""

from drover.decide.cancellation import Asking, cancel
from drover.decide.decision import Decision, Facts, refuse
from drover.events.commands import HealCommand
from drover.events.healing import HealChoice, HealChosen, HealChunkTakenBack, HealEnd, HealEnded
from drover.events.reassignments import CancelMode
from drover.events.records import AnyEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.state.cluster import ClusterState
from drover.state.healing import RunningChunk


def decide_heal(command: HealCommand, state: ClusterState, _facts: Facts) -> Decision:
    """Record the operator's choice for an absence of a broker; it applies until the broker is back."""
    if state.limits.healing is None:
        detail = f"healing is not set up for {state.name}: add [clusters.{state.name}.healing] and restart the workers"
        return refuse(RefusalCode.HEALING_OFF, detail)
    if command.action == "stop":
        return _stop(command, state)
    broker = command.broker
    assert broker is not None, "checked when the command was made"
    if broker not in state.absent_brokers:
        detail = f"broker {broker} is not known to be away: `drover heal status` lists those that are"
        return refuse(RefusalCode.BROKER_NOT_AWAY, detail)
    choice = HealChoice(command.action)
    ends = choice is HealChoice.SKIP and state.heal is not None and broker in state.heal.brokers
    end = _end(state) if ends else ()
    return Decision(events=(*end, *_choose(command, state, (broker,), choice)))


def _choose(command: HealCommand, state: ClusterState, brokers: tuple[int, ...], choice: HealChoice) -> list[AnyEvent]:
    return [
        HealChosen(cluster=state.name, broker=broker, choice=choice, by=command.by, reason=command.reason)
        for broker in brokers
        if broker in state.absent_brokers and state.absent_brokers[broker].choice is not choice
    ]


def _end(state: ClusterState) -> tuple[AnyEvent, ...]:
    heal = state.heal
    if heal is None:
        return ()
    dropped = len(state.heal_chunks)
    return (HealEnded(cluster=state.name, heal=heal.name, why=HealEnd.STOPPED, dropped=dropped),)


def _stop(command: HealCommand, state: ClusterState) -> Decision:
    """Drop the chunks that have not begun (R46-5); the running one goes on, unless the command rolls it back, too."""
    heal, running = state.heal, state.heal_running
    meant = () if heal is None else heal.brokers
    at_work = set(meant) | set(() if running is None else running.brokers)
    if not at_work or (command.broker is not None and command.broker not in at_work):
        whom = "nothing" if command.broker is None else f"broker {command.broker} is not being healed, so nothing"
        return refuse(RefusalCode.NOTHING_TO_STOP, f"{whom} is to be stopped: `drover heal status` shows what is done")
    chosen = meant if command.broker is None else (command.broker,)
    events = [*_end(state), *_choose(command, state, chosen, HealChoice.SKIP)]
    if command.rollback and running is not None:
        events += _taken_back(command, running, state)
    return Decision(events=tuple(events))


def _taken_back(command: HealCommand, running: RunningChunk, state: ClusterState) -> list[AnyEvent]:
    why = f"stopped by {command.by}: {command.reason}"
    events: list[AnyEvent] = []
    if not running.is_taken_back:
        events.append(HealChunkTakenBack(cluster=state.name, heal=running.heal, chunk=running.number, why=why))
    for key in running.partitions:
        moving = state.reassignments.get(key)
        if moving is not None and moving.plan == running.plan and not moving.is_cancelled:
            cancelled = cancel(moving, CancelMode.ROLLBACK, Asking.of(command), state.name)
            events += () if isinstance(cancelled, Refusal) else cancelled
    return events
