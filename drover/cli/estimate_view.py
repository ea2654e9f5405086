"""Prints a plan's estimate and its actual figures side by side, for `drover history --plan`."""

from collections.abc import Iterator

from drover.cli.output import amount, console, duration, say, table
from drover.client.views.estimate_rows import Taken
from drover.events.plans import BrokerBytes, PlanEstimate

COLUMNS = ("figure", "estimated", "came true")
UNKNOWN = "?"
# A plan of hundreds of brokers is told by the busiest ones.
SHOWN_BROKERS = 12


def print_taken(taken: Taken) -> None:
    """Print both columns; print nothing if the plan has no estimate."""
    estimate = taken.estimate
    if estimate is None:
        return
    is_over = taken.finished_ms is not None
    told = "what it was likely to take, and what it took" if is_over else "what it is likely to take, and took so far"
    say(f"Plan {taken.plan} in {taken.cluster}: {told}.")
    console().print(table(COLUMNS, _rows(taken, estimate), right=COLUMNS[1:]))


def _rows(taken: Taken, estimate: PlanEstimate) -> Iterator[tuple[str, str, str]]:
    at_least = ">= " if taken.bytes_unknown else ""
    yield "partitions", f"{estimate.partitions:,}", f"{taken.ended:,} of {taken.partitions:,}"
    yield "steps", UNKNOWN if estimate.steps is None else f"{estimate.steps:,}", f"{taken.steps:,}"
    yield "copies", f"{estimate.copies:,}", f"{taken.copies:,}"
    yield "bytes copied", _sized(estimate), at_least + amount(taken.copied_bytes)
    yield "other preferred leader", f"{estimate.leaders_moved:,}", f"{taken.leaders_moved:,}"
    took_ms = taken.took_ms
    yield "time", _time(estimate), UNKNOWN if took_ms is None else duration(took_ms)
    took = {one.broker: one for one in taken.brokers}
    for one in sorted(estimate.brokers, key=_weight)[:SHOWN_BROKERS]:
        came = took.get(one.broker, BrokerBytes(one.broker, 0, 0))
        if one.bytes_in or came.bytes_in:
            yield f"into broker {one.broker}", amount(one.bytes_in), amount(came.bytes_in)
        if one.bytes_out or came.bytes_out:
            yield f"out of broker {one.broker}", amount(one.bytes_out), amount(came.bytes_out)


def _weight(one: BrokerBytes) -> tuple[int, int]:
    return -(one.bytes_in + one.bytes_out), one.broker


def _sized(estimate: PlanEstimate) -> str:
    unknown = f", {estimate.unknown_sizes:,} of unknown size" if estimate.unknown_sizes else ""
    return amount(estimate.copied_bytes) + unknown


def _time(estimate: PlanEstimate) -> str:
    """The shortest and the likely time, at the throttle that was set when the plan was accepted."""
    if estimate.least_ms is None or estimate.throttle_bytes_per_second is None:
        return "no throttle"
    rate = f" at {amount(estimate.throttle_bytes_per_second)}/s"
    likely = "" if estimate.expected_ms is None else f", about {duration(estimate.expected_ms)}"
    return f">= {duration(estimate.least_ms)}{likely}{rate}"
