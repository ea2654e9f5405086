"""Timers and brakes of healing: which brokers are to be healed now, and what forbids it."""

from collections.abc import Collection, Iterator, Mapping

from drover.healing.evolve import HOUR_MS, brake_key
from drover.healing.state import Absence, Brake, HealingState
from events.healing import (
    BrakeReason,
    BrokerOutageAlarmed,
    HealChoice,
    HealingBraked,
    HealingLimits,
    HealingReleased,
)

_DAY_HOURS = 24


def is_due(outage: Absence, limits: HealingLimits, at_ms: int) -> bool:
    """Whether a broker has been away for so long that it is to be healed, or somebody asked for that (R46-2)."""
    if not outage.seen or outage.choice is HealChoice.SKIP:
        return False
    if outage.choice is HealChoice.START:
        return True
    return limits.failure_interval_ms >= 0 and at_ms - outage.since_ms >= limits.failure_interval_ms


def due_brokers(state: HealingState, limits: HealingLimits, at_ms: int) -> tuple[int, ...]:
    """List the brokers to heal now; one that flaps is left alone unless somebody asked for it."""
    return tuple(
        broker
        for broker, outage in sorted(state.absent_brokers.items())
        if is_due(outage, limits, at_ms)
        and (outage.choice is HealChoice.START or brake_key(BrakeReason.FLAPPING, broker) not in state.healing_brakes)
    )


def is_braked(state: HealingState) -> bool:
    """Whether nothing may be healed at all."""
    return any(brake.broker is None for brake in state.healing_brakes.values())


def next_ms(state: HealingState, limits: HealingLimits, at_ms: int) -> int | None:
    """Return the log time at which the next alarm or heal is due, or a broker no longer flaps; None if none is."""
    times: list[int] = []
    for broker, outage in state.absent_brokers.items():
        if not outage.seen:
            continue
        if limits.alarm_ms >= 0 and not outage.is_alarmed:
            times.append(outage.since_ms + limits.alarm_ms)
        if limits.failure_interval_ms >= 0 and outage.choice is None:
            times.append(outage.since_ms + limits.failure_interval_ms)
        if brake_key(BrakeReason.FLAPPING, broker) in state.healing_brakes:
            times.append(state.recent_returns[broker][-limits.flapping_returns] + limits.flapping_window_ms)
    return min((time for time in times if time > at_ms), default=None)


def alarms(state: HealingState, limits: HealingLimits, at_ms: int) -> Iterator[BrokerOutageAlarmed]:
    """Raise the alarms that are due."""
    for broker, outage in sorted(state.absent_brokers.items()):
        away_ms = at_ms - outage.since_ms
        if outage.seen and not outage.is_alarmed and 0 <= limits.alarm_ms <= away_ms:
            yield BrokerOutageAlarmed(cluster=state.name, broker=broker, away_ms=away_ms)


def brakes(
    state: HealingState, limits: HealingLimits, brokers: Collection[int], next_bytes: int, at_ms: int
) -> Iterator[HealingBraked | HealingReleased]:
    """Put brakes on and release them; `brokers` are all that are known, `next_bytes` what the next chunk would copy."""
    wanted = _wanted(state, limits, brokers, next_bytes, at_ms)
    for key, brake in sorted(state.healing_brakes.items()):
        if key not in wanted:
            yield HealingReleased(cluster=state.name, why=brake.why, broker=brake.broker)
    for key, brake in sorted(wanted.items()):
        if key not in state.healing_brakes:
            yield HealingBraked(cluster=state.name, why=brake.why, detail=brake.detail, broker=brake.broker)


def _wanted(
    state: HealingState, limits: HealingLimits, brokers: Collection[int], next_bytes: int, at_ms: int
) -> Mapping[str, Brake]:
    found: list[Brake] = []
    away = sorted(broker for broker, outage in state.absent_brokers.items() if outage.seen)
    known = len({*brokers, *away})
    most = max(limits.mass_failure_brokers, known * limits.mass_failure_percent // 100)
    if len(away) > most:
        names = ", ".join(map(str, away))
        detail = f"{len(away)} of {known} brokers are away ({names}), at most {most} are healed"
        found.append(Brake(BrakeReason.MASS_FAILURE, detail, at_ms))
    spent = bytes_of_a_day(state, at_ms)
    if limits.max_bytes_per_day is not None and spent and spent + next_bytes > limits.max_bytes_per_day:
        detail = f"{spent:,} bytes were begun within a day, at most {limits.max_bytes_per_day:,} are allowed"
        found.append(Brake(BrakeReason.BYTES_PER_DAY, detail, at_ms))
    for broker in away:
        returns = [one for one in state.recent_returns.get(broker, ()) if at_ms - one < limits.flapping_window_ms]
        if len(returns) >= limits.flapping_returns:
            minutes = limits.flapping_window_ms // 60_000
            detail = f"broker {broker} came back {len(returns)} times within {minutes} minutes"
            found.append(Brake(BrakeReason.FLAPPING, detail, at_ms, broker))
    return {brake_key(brake.why, brake.broker): brake for brake in found}


def bytes_of_a_day(state: HealingState, at_ms: int) -> int:
    """Sum what chunks were to copy that began within the last day."""
    hour = at_ms // HOUR_MS
    return sum(spent for each, spent in state.heal_bytes.items() if each > hour - _DAY_HOURS)
