"""Estimates of one plan put together: each covers what was accepted since the one before."""

from collections.abc import Iterable

from drover.events.plans import BrokerBytes, PlanEstimate


def together(first: PlanEstimate, second: PlanEstimate) -> PlanEstimate:
    """Add what a plan takes later to what it took before.

    The least time is that of the busiest way into or out of a broker, or of what comes later. Nobody can tell when a
    plan ends that may go on, so there is no expected time.
    """
    brokers = _together(first.brokers, second.brokers)
    rate = second.throttle_bytes_per_second
    return PlanEstimate(
        partitions=first.partitions + second.partitions,
        copies=first.copies + second.copies,
        copied_bytes=first.copied_bytes + second.copied_bytes,
        leaders_moved=first.leaders_moved + second.leaders_moved,
        steps=None if first.steps is None or second.steps is None else first.steps + second.steps,
        unknown_sizes=first.unknown_sizes + second.unknown_sizes,
        throttle_bytes_per_second=rate,
        least_ms=None if rate is None else max(busiest_ms(brokers, rate), second.least_ms or 0),
        brokers=brokers,
    )


def busiest_ms(brokers: Iterable[BrokerBytes], bytes_per_second: int) -> int:
    """Return how long the busiest way into or out of a broker takes at a rate, in milliseconds."""
    return max((max(one.bytes_in, one.bytes_out) for one in brokers), default=0) * 1000 // bytes_per_second


def _together(first: Iterable[BrokerBytes], second: Iterable[BrokerBytes]) -> tuple[BrokerBytes, ...]:
    found = {one.broker: one for one in first}
    for one in second:
        known = found.get(one.broker, BrokerBytes(one.broker, 0, 0))
        found[one.broker] = BrokerBytes(one.broker, known.bytes_in + one.bytes_in, known.bytes_out + one.bytes_out)
    return tuple(found[broker] for broker in sorted(found))
