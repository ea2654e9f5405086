"""Timers and brakes of healing: which brokers are due, and why none may be healed."""

from collections.abc import Collection, Iterator, Mapping

from drover.events.healing import (
    BrakeReason,
    BrokerOutageAlarmed,
    HealChoice,
    HealingBraked,
    HealingLimits,
    HealingReleased,
)
from drover.fold.healing import HOUR_MS, brake_key
from drover.reconcile.messages import Timestamp
from drover.state.healing import Absence, Brake, HealingState

_DAY_HOURS = 24


class Watched:
    """How long this owner has watched each absence itself, by the monotonic clock.

    Log time follows the clocks of the brokers that append. A wrong one must not make an absence of seconds look like
    one of an hour. For absences that a predecessor noted, a successor has log time only.
    """

    def __init__(self) -> None:
        self._since_ms: dict[int, int | None] = {}

    def begin(self, absent: Collection[int]) -> None:
        """Start over with absences that predecessors noted."""
        self._since_ms = dict.fromkeys(absent)

    def follow(self, absent: Collection[int], now_ms: int) -> None:
        """Begin to watch absences that are new at this time (monotonic), and forget those that are over."""
        self._since_ms = {broker: self._since_ms.get(broker, now_ms) for broker in absent}

    def remaining_ms(self, broker: int, outage: Absence, threshold_ms: int, now: Timestamp) -> int:
        """Return how long it is until an absence has lasted for the threshold; at most 0 once it has."""
        remaining_ms = outage.since_ms + threshold_ms - now.wall_ms
        since_ms = self._since_ms.get(broker, now.monotonic_ms)
        return remaining_ms if since_ms is None else max(remaining_ms, since_ms + threshold_ms - now.monotonic_ms)


def is_due(broker: int, outage: Absence, limits: HealingLimits, watched: Watched, now: Timestamp) -> bool:
    """Whether a broker has been away long enough to be healed, or an operator asked to heal it (R46-2)."""
    if not outage.seen or outage.choice is HealChoice.SKIP:
        return False
    if outage.choice is HealChoice.START:
        return True
    interval_ms = limits.failure_interval_ms
    return interval_ms >= 0 and watched.remaining_ms(broker, outage, interval_ms, now) <= 0


def due_brokers(state: HealingState, limits: HealingLimits, watched: Watched, now: Timestamp) -> tuple[int, ...]:
    """List the brokers to heal now; a flapping one only if an operator asked for it."""
    return tuple(
        broker
        for broker, outage in sorted(state.absent_brokers.items())
        if is_due(broker, outage, limits, watched, now)
        and (outage.choice is HealChoice.START or brake_key(BrakeReason.FLAPPING, broker) not in state.healing_brakes)
    )


def is_braked(state: HealingState) -> bool:
    """Whether a brake on all brokers is set."""
    return any(brake.broker is None for brake in state.healing_brakes.values())


def wait_ms(state: HealingState, limits: HealingLimits, watched: Watched, now: Timestamp) -> int | None:
    """Return how long it is until the next alarm or heal is due, or a broker no longer flaps; None if none is."""
    waits: list[int] = []
    for broker, outage in state.absent_brokers.items():
        if not outage.seen:
            continue
        if limits.alarm_ms >= 0 and not outage.is_alarmed:
            waits.append(watched.remaining_ms(broker, outage, limits.alarm_ms, now))
        if limits.failure_interval_ms >= 0 and outage.choice is None:
            waits.append(watched.remaining_ms(broker, outage, limits.failure_interval_ms, now))
        if brake_key(BrakeReason.FLAPPING, broker) in state.healing_brakes:
            returns = state.recent_returns.get(broker, ())
            # If the limit was raised above the recorded returns, the brake is released after the next survey.
            if len(returns) >= limits.flapping_returns:
                waits.append(returns[-limits.flapping_returns] + limits.flapping_window_ms - now.wall_ms)
    return min((wait for wait in waits if wait > 0), default=None)


def alarms(
    state: HealingState, limits: HealingLimits, watched: Watched, now: Timestamp
) -> Iterator[BrokerOutageAlarmed]:
    """Raise the alarms that are due."""
    for broker, outage in sorted(state.absent_brokers.items()):
        if not outage.seen or outage.is_alarmed or limits.alarm_ms < 0:
            continue
        if watched.remaining_ms(broker, outage, limits.alarm_ms, now) <= 0:
            yield BrokerOutageAlarmed(cluster=state.name, broker=broker, away_ms=now.wall_ms - outage.since_ms)


def brakes(
    state: HealingState, limits: HealingLimits, brokers: Collection[int], next_bytes: int, at_ms: int
) -> Iterator[HealingBraked | HealingReleased]:
    """Set and release brakes; `brokers` are all of the cluster, `next_bytes` is the size of the next chunk's copies."""
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
    wanted: list[Brake] = []
    away = sorted(broker for broker, outage in state.absent_brokers.items() if outage.seen)
    count = len({*brokers, *away})
    most = max(limits.mass_failure_brokers, count * limits.mass_failure_percent // 100)
    if len(away) > most:
        names = ", ".join(map(str, away))
        detail = f"{len(away)} of {count} brokers are away ({names}), at most {most} are healed"
        wanted.append(Brake(BrakeReason.MASS_FAILURE, detail, at_ms))
    spent = bytes_of_a_day(state, at_ms)
    if limits.max_bytes_per_day is not None and spent and spent + next_bytes > limits.max_bytes_per_day:
        detail = f"{spent:,} bytes were begun within a day, at most {limits.max_bytes_per_day:,} are allowed"
        wanted.append(Brake(BrakeReason.BYTES_PER_DAY, detail, at_ms))
    for broker in away:
        returns = [
            returned_ms
            for returned_ms in state.recent_returns.get(broker, ())
            if 0 <= at_ms - returned_ms < limits.flapping_window_ms
        ]
        if len(returns) >= limits.flapping_returns:
            minutes = limits.flapping_window_ms // 60_000
            detail = f"broker {broker} came back {len(returns)} times within {minutes} minutes"
            wanted.append(Brake(BrakeReason.FLAPPING, detail, at_ms, broker))
    return {brake_key(brake.why, brake.broker): brake for brake in wanted}


def bytes_of_a_day(state: HealingState, at_ms: int) -> int:
    """Sum the bytes to copy of the chunks that began within the last day."""
    hour = at_ms // HOUR_MS
    return sum(spent for each, spent in state.heal_bytes.items() if hour - _DAY_HOURS < each <= hour)
